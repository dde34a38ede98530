"""Every training pass has an order of its own: its sampler is told the epoch before the iterator is made."""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.values import Const
from dpmigrate.judge.trial import Fault, Trial

NAME = "every pass has an order of its own"


def faults(trial: Trial) -> Iterator[Fault]:
    """Training passes that may begin without a word of the epoch since the last one."""
    training = {o.number for o in trial.loaders()}
    for event in trial.result.trace.of("judge pass"):
        made = trial.object(event.values["loader"])
        if made is None or made.number not in training:
            continue
        told = {a.value for a in event.values["told"] if isinstance(a, Const)}
        # one pass alone needs no word; a first one that is not told, and later ones that are, tell it too late
        if "used" in told or {"fresh", "told"} <= told:
            words = "the sampler is not told the epoch before this pass begins"
            yield trial.fault(event.node, NAME, words)
