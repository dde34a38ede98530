"""What a step has of the steps before it is the same on all ranks where training goes by it.

A number that each rank moves by its own part of the batches, wherever it is kept, is another one on each: the
original has one, which all samples move. In a loss it shows by itself, as what is made of it is no mean over the samples
(``totals``); here is where it would not show.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Const, Data, Value, const, data
from dpmigrate.judge.aging import KEPT
from dpmigrate.judge.lying import Lying, span
from dpmigrate.judge.totals import by_a_draw, trained_on
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.module_tree import is_module

NAME = "what a step has of those before it is the same on all ranks"


def faults(trial: Trial) -> Iterator[Fault]:
    """Where gradients, layers, losses with draws in them and the weights of further models go by numbers of a rank's own."""
    for event in trial.backwards:  # what is left of a loss when the next turn begins is kept as well
        if any(by_a_draw(d) and d.placement.kind is Kind.PER_RANK and _carried(trial, d) for d in data(event.values["loss"])):
            words = "beside what each rank draws, the loss is made of what earlier steps have kept of its own part of the batches"
            yield trial.fault(event.node, NAME, words, established=False)
    for event in trial.result.trace.of("clip"):
        yield from _own(trial, event, event.values["by"], "each rank clips its gradients by a number of its own")
    for event in trial.result.trace.of("hooked gradient"):
        given = tuple(a for a in event.values["by"] if not (isinstance(a, Data) and a.placement == placements.MEAN))
        yield from _own(trial, event, given, "each rank changes the gradients of its part by more than a factor that all have")
    for event in trial.result.trace.of("differentiated"):
        yield from _of_its_own(trial, event)
    for event in trial.result.trace.of("in place"):
        if any(d.origin is not None and d.origin.word == "gradient" for d in data(event.values["target"])):
            yield from _own(trial, event, event.values["new"], "each rank changes its gradients by a number of its own", drawn=True)
        elif any(d.placement.kind is Kind.UNIFORM and _of_models(trial, d) for d in data(event.values["target"])):
            yield from _own(trial, event, event.values["new"], "each rank writes values of its own into a model")
    for event in trial.result.trace.of("attribute"):
        if _of_gradients(event):
            yield from _own(trial, event, event.values["new"], "each rank gives parameters a gradient of its own", drawn=True)
        if any(o.kind in ("module", "criterion") for o in trial.objects(event.values["owner"])):
            name = event.values["name"]
            yield from _own(trial, event, event.values["new"], f"each rank sets {_text(name)} of a layer by a number of its own")


def _of_its_own(trial: Trial, event: Event) -> Iterator[Fault]:
    """Gradients of the program's own functions that are no sums over the samples. Those of a mean are
    divided by the number of a rank's samples, which DDP's average makes right.
    """
    assert isinstance(trial.result, Lying)
    sized = trial.result.sized
    for d in data(event.values["by"], deep=True):
        bent = any(not (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) and span(n.right) in sized) for n in d.bent)
        if d.placement.kind in (Kind.PER_RANK, Kind.RATIO) and bent and trained_on(trial, d):
            words = f"backward gives gradients that are no sums over the samples: {trial.since(d)}"
            yield trial.fault(event.node, NAME, words, established=False)
            return


def _of_gradients(event: Event) -> bool:
    """Whether an attribute is the gradient of a parameter (``weight.grad = …``), or the elements of one."""
    name, owners = event.values["name"], data(event.values["owner"])
    if name == const("data"):
        return any(d.origin is not None and d.origin.word == "gradient" for d in owners)
    return name == const("grad") and any(d.reached and d.placement.kind is Kind.UNIFORM for d in owners)


def _own(trial: Trial, event: Event, v: Value, words: str, *, drawn: bool = False) -> Iterator[Fault]:
    """A fault where a value differs between the ranks for certain, by their parts of the batches; or, where
    that counts as well (``drawn``), by what each of them draws.
    """
    if trial.on_main(event):
        return
    for d in data(v, deep=True):
        own = trained_on(trial, d) or (drawn and by_a_draw(d))
        if d.placement.kind not in (*placements.EQUAL, Kind.UNKNOWN) and not d.whole and own:
            yield trial.fault(event.node, NAME, f"{words}: {trial.since(d)}")
            return


def _carried(trial: Trial, d: Data) -> bool:
    return any(trial.result.heap.objects[n].kind == KEPT for n in d.marks)


def _of_models(trial: Trial, d: Data) -> bool:
    """Whether data are weights or buffers of a module, as it has them."""
    objects = trial.result.heap.objects
    return any(objects[n].kind == "parameter" or is_module(trial.result, objects[n]) for n in d.reached)


def _text(name: Value) -> str:
    return next((str(a.value) for a in name if isinstance(a, Const)), "an attribute")
