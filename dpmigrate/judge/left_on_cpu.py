"""Batches are moved to the rank's device for bare models as they are for others: a wrapper moves what it
is given, a model that is called by itself does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Data, Method, Value, const, data
from dpmigrate.judge.notes import is_loader
from dpmigrate.library.forward_pass import each_data
from dpmigrate.library.module_tree import owned

if TYPE_CHECKING:
    from dpmigrate.execution.engine import Execution
    from dpmigrate.judge.trial import Fault, Trial

NAME = "bare models get batches on the rank's device"
#: the kind of the mark of data that were moved
_MOVED = "moved data"
#: methods that may move data; a type may be one of a device, ``x.type(torch.cuda.FloatTensor)``
_MOVES = frozenset({"to", "cuda", "type"})
_MODELS = frozenset({"module", "container", "wrapper"})


def moved(
    m: Machine, callee: Value, arguments: Arguments, result: Value, node: ast.AST, frame: Frame
) -> Value:
    """What a call gives, with a mark on data that ``.to(…)``, ``.cuda()`` or ``device=`` has moved, and on
    what models make, which lie on the device.
    """
    receivers = tuple(a.receiver for a in callee if isinstance(a, Method) and a.name in _MOVES)
    called = any(o.kind in _MODELS for o in m.objects(callee))
    if not (receivers or called or "device" in arguments.keywords) or not data(result, deep=True):
        return result
    if any(_fresh(d) for d in data(receivers, deep=True)):
        m.event("judge moved batch", node, frame)
    mark = m.heap.new(_MOVED, _MOVED, None, 0, key=_MOVED).number
    return each_data(m, result, lambda d: d._replace(marks=d.marks | {mark}))


def faults(trial: Trial) -> Iterator[Fault]:
    """Models with a wrap that are called by themselves with a batch as its loader gives it, where the
    program moves other batches to the rank's device itself: they come on the CPU. A program that has
    given a model such a batch before was right to: its data lie on the device, or the model on the CPU.
    """
    own = {e.node for e in trial.result.trace.of("judge runtime") if e.values["name"] == const("device")}
    moves = [e.node for e in trial.result.trace.of("judge moved batch")]
    if not any(isinstance(n, ast.Call) and own & set(n.args) for n in moves):
        return
    if trial.original is not None and any(left(trial.original, e) for e in trial.original.trace.of("judge bare")):
        return
    wrapped = {
        n for e in trial.result.trace.of("wrap") for o in trial.objects(e.values["module"])
        for n in owned(trial.result, o.number) | {o.number}
    }  # fmt: skip
    for event in trial.result.trace.of("judge bare"):
        called = {o.number for o in trial.objects(event.values["module"])}
        if called & wrapped and left(trial.result, event):
            words = "a model without its wrapper is given a batch that nothing has moved to the rank's device"
            yield trial.fault(event.node, NAME, words)


def left(execution: Execution, event: Event) -> bool:
    """Whether a model is given samples of a batch alone that nothing has moved."""
    given = [d for d in data(event.values["given"], deep=True) if d.placement.kind is Kind.ROWS or _of_all(execution, d)]
    return bool(given) and all(_as_it_came(execution, d) for d in given)


def _as_it_came(execution: Execution, d: Data) -> bool:
    """Whether data are those of a batch, which nothing has moved."""
    marks = {execution.heap.objects[n].kind for n in d.marks}
    return (_fresh(d) or _of_all(execution, d)) and _MOVED not in marks


def _of_all(execution: Execution, d: Data) -> bool:
    """Whether data are samples of a loader that every rank goes through in full."""
    uniform = d.kind in ("tensor", "batch") and d.placement.kind is Kind.UNIFORM
    return uniform and any(is_loader(execution, execution.heap.objects[n]) for n in d.sources)


def _fresh(d: Data) -> bool:
    """Whether data lie as their loader gives them."""
    return d.origin is not None and d.origin.word == "batch"
