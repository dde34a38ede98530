"""Counts of samples that steer the training are those of all ranks, and so is the number of a batch times
its size where it is shown; sums of sizes that are shown are told to the user.

A rank's batch is a part of the global one: the number of a batch times its size, and the sizes of the
batches so far, are as many times too small as there are ranks. All ranks have the same number, so that
nothing else notices.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import shorten

from dpmigrate.execution.placements import EQUAL, Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Data, data
from dpmigrate.judge import totals
from dpmigrate.judge.accumulating import TOTAL
from dpmigrate.judge.notes import TOLD_OF
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.runtime import LOCAL_BATCH
from dpmigrate.library.torch_data import RANKS_BATCH

NAME = "counts of samples are those of all ranks"
_TOO_SMALL = "it is as many times too small as there are ranks"


def faults(trial: Trial) -> Iterator[Fault]:
    """Products of the size of a rank's batch that are told; counts over the batches that steer."""
    for event, d, alone in _shown(trial):
        if not _counted(trial, d) and alone:
            words = f"this tells how many samples one rank has had ({trial.since(d)}): {_TOO_SMALL}"
            yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("step", "schedule", "rank 0 decides"):
        for v in event.values.values():
            for d in data(v, deep=True):
                if d.placement.kind is Kind.SIZE and _counted(trial, d) and totals.trained_on(trial, d):
                    words = f"this goes by how many samples one rank has had ({trial.since(d)}): {_TOO_SMALL}"
                    yield trial.fault(event.node, NAME, words)
                elif (asked := _of_loader(d)) is not None:
                    words = f"this goes by the batch size of one rank ({trial.line(asked)}): {_TOO_SMALL}"
                    yield trial.fault(event.node, NAME, words)


def sentences(trial: Trial) -> Iterator[str]:
    """Sums of the sizes of a rank's batches that are shown: the first place of each; and numbers for which another loop has given the batch."""
    for event, d, alone in _shown(trial):
        shown = shorten(ast.unparse(event.node), 70, placeholder=" …")
        if _counted(trial, d):
            yield f"{shown} tells how many samples rank 0 has had: {_TOO_SMALL}. Multiply it by ddp.world_size()."
        elif not alone:
            yield f"{shown} goes by the size of a batch that rank 0 has, of the training or of another loop: the number may not be that of one process."


def _shown(trial: Trial) -> Iterator[tuple[Event, Data, bool]]:
    """Numbers of samples of one rank that are shown, with whether nothing of another loader is shown with them: an evaluation within the turn may have left
    a batch of its own in the variable that is asked for its size.
    """
    for event in trial.result.trace.of(*TOLD_OF):
        numbers = data(event.values["numbers"])
        alone = all(totals.trained_on(trial, d) or not d.sources for d in numbers)
        yield from ((event, d, alone) for d in numbers if _of_one_rank(d) and totals.trained_on(trial, d))


def _counted(trial: Trial, d: Data) -> bool:
    """Whether data are added up over the turns of a loop over batches."""
    return any(trial.result.heap.objects[n].kind == TOTAL for n in d.marks)


def _of_loader(d: Data) -> ast.AST | None:
    """Where a rank's batch size comes from (``loader.batch_size``), of which a number is made that is not that of all ranks."""
    origin = d.origin if d.placement.kind not in EQUAL and not d.sources else None
    while origin is not None and origin.word not in (RANKS_BATCH, LOCAL_BATCH):
        origin = origin.before
    return origin.node if origin is not None else None


def _of_one_rank(d: Data) -> bool:
    """Whether data are a number of samples of one rank, and more than that of a batch."""
    return d.placement.kind is Kind.SIZE and not d.placement.times
