"""Gradients that carry the scale of a GradScaler are stepped by it, and no others are; they are
clipped without it, and it is updated between two steps
(https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Data, Ref, const, data
from dpmigrate.judge.trial import Fault, Trial

NAME = "scaled gradients are stepped by their scaler"

#: what a scaler does with an optimizer once until its update: else torch raises
_ONCE = {
    "scaler step": (("stepped",), "the scaler steps again without update(): torch raises an error"),
    "unscale": (
        ("unscaled", "stepped"),
        "the scale is taken off again without update(): torch raises an error",
    ),
}  # fmt: skip


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
    for kind, (done, words) in _ONCE.items():
        for event in trial.result.trace.of(kind):
            if any(const(word)[0] in event.values["before"] for word in done):
                yield event, words
    for event in trial.result.trace.of("scaler update"):
        if const("nothing")[0] in event.values["before"]:
            yield event, "the scaler is updated where it has not stepped: torch raises an error"
    for event in trial.result.trace.of("clip"):
        if event.values["scaled"] == const(True):
            words = "these gradients still carry the scale of a GradScaler"
            yield event, f"{words}: the bound is not that of the program"


def _scaled(trial: Trial, d: Data) -> bool:
    return any(trial.result.heap.objects[n].kind == "scaler" for n in d.reached)
