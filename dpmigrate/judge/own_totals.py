"""What a pass over the training batches adds up is put together before it is told.

A number of the last batch, or of the batches so far, may be told as rank 0 has it while it trains; what
stands for a whole pass is read as that of all samples.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.arithmetic import PART_BY_WHOLE
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Data, Ref
from dpmigrate.judge import totals
from dpmigrate.judge.trial import Fault, Trial

NAME = "totals of a pass over the training batches are told as those of all ranks"


def faults(trial: Trial) -> Iterator[Fault]:
    """Totals of rank 0's own batches that are told after the loop that has made them."""
    for event, d, _ in totals.numbers_told(trial):
        if event.kind != "schedule" and _passed(trial, event, d) and _own(d):
            words = f"what the loop adds up is that of rank 0's own batches here ({trial.since(d)})"
            yield trial.fault(event.node, NAME, words)


def _passed(trial: Trial, event: Event, d: Data) -> bool:
    """Whether data are a total of a loop over training batches that is over."""
    within = {a.object for a in event.values["within"] if isinstance(a, Ref)}
    return bool(d.loops - within) and bool(totals.trained_on(trial, d))


def _own(d: Data) -> bool:
    """Whether data are those of a rank's own part for certain."""
    if d.placement == placements.MEAN:
        return not d.whole
    divided = d.placement == placements.SUM and d.origin is not None and d.origin.word == PART_BY_WHOLE
    return divided or d.placement.kind is Kind.RATIO or d.placement == placements.SUM
