"""Gradients that carry the scale of a GradScaler are stepped by it, and no others are; they are
clipped without it, and it is updated between two steps
(https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import shorten

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Data, Ref, const, data
from dpmigrate.judge.files import states
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
    before = {w for _, w in _unfit(Trial(trial.original))} if trial.original is not None else ()
    for event, words in _unfit(trial):
        if words not in before:
            yield trial.fault(event.node, NAME, words)
    asked, always = _of_precision(trial.original) if trial.original is not None else ((), ())
    _, now = _of_precision(trial.result)
    if asked and len(now) > len(always):
        words = "half precision is not asked whether it is wanted (enabled=), as the program asks"
        yield trial.fault(list(now)[-1], NAME, words)


def _of_precision(execution: Execution) -> tuple[dict[ast.AST, None], dict[ast.AST, None]]:
    """Where scalers and contexts of half precision are made: with ``enabled=``, and without it."""
    found: tuple[dict[ast.AST, None], dict[ast.AST, None]] = {}, {}
    for made in execution.heap.objects.values():
        if made.node is not None and (made.kind == "scaler" or made.name == "autocast"):
            given = execution.heap.read((made.number, "enabled"))
            found[given is None].setdefault(made.node, None)
    return found


def sentences(trial: Trial) -> Iterator[str]:
    """That a checkpoint leaves the scaler out, where the optimizer is in it and the scaler is new."""
    if trial.original is not None and any(trial.original.trace.of("scaler step")):
        return
    scalers = {
        a: frozenset(e.values["scaler"])
        for e in trial.result.trace.of("scaler step") for a in e.values["optimizer"]
    }  # fmt: skip
    loaded = {a for e in trial.result.trace.of("load state") for a in e.values["target"]}
    for event in trial.result.trace.of("save", "save by rank 0"):
        of = {a for n in states(trial, event.values["what"], set()) for a in trial.held(n, "of")}
        if any(o in scalers and not scalers[o] & of for o in of):
            yield (
                f"{shorten(ast.unparse(event.node), 70, placeholder=' …')} saves the optimizer without its "
                "GradScaler: whoever goes on from the file begins with another scale."
            )
            return
    if any(o in scalers and not scalers[o] & loaded for o in loaded):
        yield "A state of the optimizer is loaded, and none of its GradScaler: its scale begins again."


def _unfit(trial: Trial) -> Iterator[tuple[Event, str]]:
    stepping = list(trial.result.trace.of("scaler step"))
    by_scaler = {a for e in stepping for a in e.values["optimizer"]}
    calls = {e.node for e in stepping}  # an optimizer may step alone as well, where no half precision is wanted
    for event in trial.steps:
        numbers = [a.object for a in event.values["gradients"] if isinstance(a, Ref)]
        losses = [d for n in numbers for d in data(trial.held(n, "loss"))]
        known = set(event.values["optimizer"])
        if not losses:
            continue
        if all(_scaled(trial, d) for d in losses) and not known & by_scaler:
            yield event, "the gradients carry the scale of a GradScaler, and the optimizer steps alone"
        elif event.node in calls and not any(_scaled(trial, d) for d in losses):
            yield event, "the scaler steps, and the loss was not scaled: it divides by a scale that is not there"
    for kind, (done, words) in _ONCE.items():
        for event in trial.result.trace.of(kind):
            if any(const(word)[0] in event.values["before"] for word in done):
                yield event, words
    for event in trial.result.trace.of("scaler update"):
        if const("nothing")[0] in event.values["before"]:
            yield event, "the scaler is updated where it has not stepped: torch raises an error"
    for event in trial.result.trace.of("scaler step"):
        if const(True)[0] in event.values["anew"]:
            yield event, "the scaler is made anew between the steps: each time its scale begins again"
    for event in trial.result.trace.of("backward", "step"):
        if event.values["autocast"] == const(True):
            words = "it keeps copies of the weights in half precision, which the step does not change"
            yield event, f"autocast() is round the {event.kind}, and not round the forward alone: {words}"
    for event in trial.backwards:
        if const(True)[0] in event.values["unscaled"]:
            yield event, "this comes after unscale_(): the optimizer steps by gradients that carry the scale"
    for event in trial.result.trace.of("clip"):
        if event.values["scaled"] == const(True):
            words = "these gradients still carry the scale of a GradScaler"
            yield event, f"{words}: the bound is not that of the program"


def _scaled(trial: Trial, d: Data) -> bool:
    return any(trial.result.heap.objects[n].kind == "scaler" for n in d.reached)
