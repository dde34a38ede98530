"""Normalisation over the batch: a rank's BatchNorm sees its part of each batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import shorten

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import NOTHING, const, known
from dpmigrate.judge.batch_norms import layers, of_one_value
from dpmigrate.judge.notes import CALLED, OF_LAYER, SYNCHRONISED
from dpmigrate.judge.trial import Trial
from dpmigrate.library.environment import SET


def sentences(trial: Trial) -> Iterator[str]:
    """That BatchNorm takes other statistics, where a trained model has it, or may have it, and was
    given whole batches before.
    """
    yield from _unwrapped(trial)
    wrappers = set(_wrappers(trial.result)) if trial.divided else set()
    found = layers(trial.result, wrappers)
    if not found or not (trial.original is None or _whole_batches(trial.original)):
        return
    which = "BatchNorm" if any(known for _, known in found) else "BatchNorm, if the model has any,"
    pooled = of_one_value(trial.result, wrappers)
    flat = pooled or any(not known or "Norm1d" in name for name, known in found)
    behind = "a pooling to one value" if pooled else "a linear layer"
    dropping = all(trial.held(o.number, "drop_last") == const(True) for o in trial.loaders())
    yield (
        f"{which} takes its statistics from a rank's part of the batch, not from the whole batch: "
        "other numbers than on one GPU; --sync-bn keeps them (on GPUs)."
        + (f" With one sample it fails after {behind}: {_remedy(dropping)}.{_most(trial)}" if flat else "")
    )


def _unwrapped(trial: Trial) -> Iterator[str]:
    """That layers of a module which no wrapper holds do so, too: a frozen backbone, a teacher, a loss. SyncBatchNorm is made of those in wrappers alone."""
    if not trial.divided or not (trial.original is None or _whole_batches(trial.original, OF_LAYER)):
        return
    apart = (e for e in trial.result.trace.of(OF_LAYER) if e.values["own"] == const(True))
    called = [o for e in apart for o in trial.result.objects(e.values["module"])]
    for node in dict.fromkeys(o.node for o in called):
        made = shorten(ast.unparse(node), 60, placeholder=" …") if isinstance(node, ast.Call) else "a module"
        yield (
            f"The BatchNorm of {made} ({trial.line(node)}), which is not wrapped and is in train() mode while it is given training batches, takes its "
            "statistics from a rank's part of each: other numbers than on one GPU, and --sync-bn does not reach it. If it is frozen for good, "
            "call eval() on it; else nn.SyncBatchNorm.convert_sync_batchnorm keeps them (on GPUs)."
        )


#: smaller batches than this are named: eight ranks, as many GPUs as a machine has, would leave one sample to some
_FEW = 16


def _most(trial: Trial) -> str:
    """For how many ranks the batches of the program are enough, where their size is written, and small."""
    before = trial.original
    held = [before.heap.read((o.number, "batch_size")) for o in trial.original_loaders()] if before is not None else []
    asked = [known(v) for v in held if v]
    sizes = [n for n in asked if isinstance(n, int) and 0 < n < _FEW]
    if not sizes:
        return ""
    most = min(sizes) // 2
    return f" Batches of {min(sizes)}, as here, are enough for {f'{most} ranks' if most > 1 else 'one rank alone'}."


def _remedy(dropping: bool) -> str:
    """What keeps a rank from having a single sample."""
    size = "a batch needs two samples or more for each rank"
    return size if dropping else f"{size}, and drop_last=True leaves out a shorter last batch"


def _wrappers(result: Execution) -> Iterator[int]:
    """The wrappers that the program trains through, by whichever of their methods, but those of
    which ranks share statistics.
    """
    for event in result.trace.of(CALLED, "through a method"):
        for made in result.objects(event.values["module"]):
            if made.name in SYNCHRONISED and result.heap.read((made.number, "sync_bn")) is None:
                yield made.number


def _whole_batches(original: Execution, kind: str = CALLED) -> bool:
    """Whether the original gave whole batches to a model that normalises: one that was not in
    DataParallel, or in one of a single GPU. Of unseen code it is not known whether it is called.
    """
    events = original.trace.of(kind)
    called = [made for event in events for made in original.objects(event.values["module"])]
    whole = [made for made in called if not divides(original, made)]
    return len(whole) == len(called) or any(layers(original, {made.number}) for made in whole)


def divides(execution: Execution, made: Object) -> bool:
    """Whether it is a DataParallel of several GPUs, as far as is known."""
    if made.kind != "wrapper" or made.name in SYNCHRONISED or _sees_one(execution):
        return False
    given = execution.heap.read((made.number, "device_ids")) or NOTHING
    known = [execution.known_elements((a,)) for a in given]
    return not any(k is not None and len(k) == 1 for k in known)


def _sees_one(execution: Execution) -> bool:
    """Whether the program leaves itself one GPU: ``os.environ["CUDA_VISIBLE_DEVICES"] = "0"``."""
    chosen = [known(e.values.get("$CUDA_VISIBLE_DEVICES", NOTHING)) for e in execution.trace.of(SET)]
    return any(isinstance(ids, str) and ids.strip().isdecimal() for ids in chosen)
