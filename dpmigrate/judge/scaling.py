"""Gradients that carry the scale of a GradScaler are stepped by it, and no others are
(https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Data, Ref, data
from dpmigrate.judge.trial import Fault, Trial

NAME = "scaled gradients are stepped by their scaler"


def faults(trial: Trial) -> Iterator[Fault]:
    """Steps of which scale and scaler do not fit; where the program did so before, it stays."""
    if trial.original is not None and any(_unfit(Trial(trial.original))):
        return
    for event, words in _unfit(trial):
        yield trial.fault(event.node, NAME, words)


def _unfit(trial: Trial) -> Iterator[tuple[Event, str]]:
    by_scaler = {a for e in trial.result.trace.of("scaler step") for a in e.values["optimizer"]}
    for event in trial.steps:
        numbers = [a.object for a in event.values["gradients"] if isinstance(a, Ref)]
        losses = [d for n in numbers for d in data(trial.held(n, "loss"))]
        known = set(event.values["optimizer"])
        if not losses:
            continue
        if all(_scaled(trial, d) for d in losses) and not known & by_scaler:
            yield event, "the gradients carry the scale of a GradScaler, and the optimizer steps alone"
        elif known <= by_scaler and not any(_scaled(trial, d) for d in losses):
            yield event, "the scaler steps, and the loss was not scaled: it divides by a scale that is not there"


def _scaled(trial: Trial, d: Data) -> bool:
    return any(trial.result.heap.objects[n].kind == "scaler" for n in d.reached)
