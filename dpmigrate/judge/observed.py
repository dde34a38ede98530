"""What layers of libraries keep of the batches, beside BatchNorm: ranges of values for quantisation, running statistics."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import shorten

from dpmigrate.judge.batch_norms import observing
from dpmigrate.judge.normalised import divides
from dpmigrate.judge.notes import CALLED
from dpmigrate.judge.trial import Trial
from dpmigrate.library.batch_state import OBSERVES


def sentences(trial: Trial) -> Iterator[str]:
    """That a trained model keeps something of a rank's part of each batch, where it was given whole batches before."""
    result = trial.result
    called = [o for e in result.trace.of(CALLED, "through a method") for o in result.objects(e.values["module"])]
    wrappers = {o.number for o in called if o.kind == "wrapper"} if trial.divided else set()
    found = observing(result, wrappers)
    if not found or not (trial.original is None or _whole_batches(trial)):
        return
    put = [e.node for e in result.trace.of(OBSERVES) if any(o in found for o in result.objects(e.values["module"]))]
    nodes = dict.fromkeys([*put, *(o.node for o in found if o.node is not None and isinstance(o.node, ast.Call))])
    node = next(iter(nodes), None)
    what = f"{shorten(ast.unparse(node), 70, placeholder=' …')} ({trial.line(node)})" if node is not None else "the model"
    yield (
        f"What {what} keeps of the batches (ranges of values, running statistics) is that of a rank's part of each batch, in the end rank 0's, "
        "and not of the whole batch: other numbers than on one GPU; --sync-bn does not reach it. Observers that are not switched off see evaluations, too."
    )


def _whole_batches(trial: Trial) -> bool:
    """Whether the original gave whole batches to a model."""
    original = trial.original
    assert original is not None
    called = [o for e in original.trace.of(CALLED) for o in original.objects(e.values["module"])]
    return any(not divides(original, o) for o in called)
