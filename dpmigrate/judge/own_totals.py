"""What a pass over the training batches adds up is put together before it is told.

A number of the last batch, or of the batches so far, may be told as rank 0 has it while it trains; what
stands for a whole pass is read as that of all samples, and decides as such what is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.arithmetic import PART_BY_WHOLE
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Data, Ref
from dpmigrate.judge import totals
from dpmigrate.judge.accumulating import TOTAL
from dpmigrate.judge.trial import Fault, Trial

NAME = "totals of a pass over the training batches are told as those of all ranks"


def faults(trial: Trial) -> Iterator[Fault]:
    """Totals of rank 0's own batches that are told, or decide, after the loop that has made them."""
    for event, d in _told(trial):
        words = f"what the loop adds up is that of rank 0's own batches here ({trial.since(d)})"
        yield trial.fault(event.node, NAME, words)
    for event, by in totals.decisions(trial):
        if _passed(trial, event, by.marks) and (not isinstance(by, Data) or _own(by)):
            since = f" ({by.origin.word}, {trial.line(by.origin.node)})" if by.origin is not None else ""
            words = f"this goes by what the loop adds up of rank 0's own batches{since}, and not by those of all"
            yield trial.fault(event.node, NAME, words)


def after_their_loops(trial: Trial) -> Iterator[Event]:
    """Where such totals are told."""
    yield from (event for event, _ in _told(trial))


def _told(trial: Trial) -> Iterator[tuple[Event, Data]]:
    trial = totals.telling(trial)
    for event, d, _ in totals.numbers_told(trial):
        if event.kind == "schedule" or not _passed(trial, event, d.marks) or not totals.trained_on(trial, d):
            continue
        if d not in event.values["perhaps"] and not totals.is_told(trial, d) and _own(d):
            yield event, d


def _passed(trial: Trial, event: Event, marks: frozenset[int]) -> bool:
    """Whether a loop that data were added up in is over."""
    loops = {n for n in marks if trial.result.heap.objects[n].kind == TOTAL}
    return bool(loops - {a.object for a in event.values["within"] if isinstance(a, Ref)})


def _own(d: Data) -> bool:
    """Whether data are those of a rank's own part for certain."""
    if d.placement == placements.MEAN:
        return not d.whole
    divided = d.placement == placements.SUM and d.origin is not None and d.origin.word == PART_BY_WHOLE
    return divided or d.placement in totals.ADDED_UP or totals.of_samples(d)
