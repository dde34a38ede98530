"""Batches are moved to the rank's device for bare models as they are for others: DataParallel moves what
it is given, and so does a wrapper with ``move_inputs``; a model that is called by itself does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import NONE, Atom, Const, Data, Foreign, Method, Setting, Unknown, Value, const, data, unknown
from dpmigrate.judge.moved_in_part import sets_default
from dpmigrate.judge.notes import is_loader
from dpmigrate.library.forward_pass import each_data
from dpmigrate.library.module_tree import owned
from dpmigrate.library.sites import Site

if TYPE_CHECKING:
    from dpmigrate.execution.engine import Execution
    from dpmigrate.judge.trial import Fault, Trial

NAME = "bare models get batches on the rank's device"
#: the event that says what a wrapper is given
PASSED_IN = "judge passed in"
#: the value of such an event in a call with ``*`` or ``**``
UNPACKED = "unpacked"
#: the event of a batch that the program moves to a device
MOVED_BATCH = "judge moved batch"
#: the kinds of the marks of data that were moved to a device, and of data that are on the CPU
_MOVED, _ON_CPU = "moved data", "data on the CPU"
#: methods that may move data; a type may be one of a device, ``x.type(torch.cuda.FloatTensor)``
_MOVES = frozenset({"to", "cuda", "type"})
_MODELS = frozenset({"module", "container", "wrapper"})
#: functions of torch whose tensors are on the device of something else
_ELSEWHERE = ("torch.cuda.", "torch.load", "torch.hub.", "torch.jit.", "torch.nn.")


def moved(
    m: Machine, callee: Value, arguments: Arguments, result: Value, node: ast.AST, frame: Frame
) -> Value:
    """What a call gives, with a mark on data that ``.to(…)``, ``.cuda()`` or ``device=`` has moved and on
    what models make, which lie on the device, and on data that torch makes on the CPU, or that come back
    to it.
    """
    if not data(result, deep=True):
        return result
    receivers = tuple(a.receiver for a in callee if isinstance(a, Method) and a.name in _MOVES)
    if any(isinstance(a, Method) and a.name == "cpu" for a in callee) or _names_cpu(receivers, arguments):
        return _marked(m, result, _ON_CPU)
    called = any(o.kind in _MODELS for o in m.objects(callee))
    if receivers or called or "device" in arguments.keywords:
        if any(_fresh(d) for d in data(receivers, deep=True)):
            m.event(MOVED_BATCH, node, frame)
        return _marked(m, result, _MOVED)
    if any(not isinstance(a, Foreign | Method) for a in callee):
        return result  # what the program's own functions give has its marks
    given = Site(cast("Execution", m), "", arguments, node, frame).flat(arguments.joined())
    if callee and all(isinstance(a, Foreign) and _makes(a.name, given) for a in callee):
        return _marked(m, result, _ON_CPU)
    return carried(m, result, (*(a.receiver for a in callee if isinstance(a, Method)), *given))


def carried(m: Machine, result: Value, operands: Value) -> Value:
    """A result that is on the devices of its operands, also where it is the same on all ranks."""
    places = frozenset(n for d in data(operands, deep=True) for n in d.marks if m.heap.objects[n].kind in (_MOVED, _ON_CPU))
    own = data(result, deep=True)
    if not places or all(d.marks >= places or d.kind != "tensor" for d in own):
        return result
    return each_data(m, result, lambda d: d._replace(marks=d.marks | places) if d.kind == "tensor" else d)


def passed(m: Machine, module: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> None:
    """Notes what a wrapper is given, by the place or the name of each argument."""
    given = {**{str(i): v for i, v in enumerate(arguments.positional)}, **arguments.keywords}
    if arguments.star or arguments.stars:
        given[UNPACKED] = unknown("what * or ** gives")
    m.event(PASSED_IN, node, frame, **{"the wrapper": module, **given})


def tensor_on_cpu(execution: Execution, v: Value, *, always: bool) -> bool:
    """Whether a value may be a tensor that nothing has moved from the CPU, and is nothing else that is
    known; nor None, where it is ``always`` something.
    """
    found = [a for a in v if isinstance(a, Data)]
    rest = [a for a in v if not isinstance(a, Data | Unknown) and not (a in NONE and not always)]
    return not rest and any(_on_cpu(execution, d) for d in found) and all(d.kind == "tensor" for d in found)


def _names_cpu(receivers: Value, arguments: Arguments) -> bool:
    """``x.to("cpu")``, ``torch.ones(3, device="cpu")``"""
    place = arguments.keywords.get("device") or (arguments.get(0) if receivers else None)
    return place == const("cpu")


def _makes(name: str, given: Value) -> bool:
    """Whether a function of torch makes tensors of what are none: numbers, arrays and sizes."""
    if not name.startswith("torch.") or name.startswith(_ELSEWHERE):
        return False
    return not any(isinstance(a, Unknown | Method) or (isinstance(a, Data) and a.kind == "tensor") for a in given)


def _marked(m: Machine, v: Value, kind: str) -> Value:
    """A value whose data have a mark of a place, and none of another one."""
    mark = m.heap.new(kind, kind, None, 0, key=kind).number

    def at(d: Data) -> Data:
        others = frozenset(n for n in d.marks if m.heap.objects[n].kind in (_MOVED, _ON_CPU))
        return d._replace(marks=d.marks - others | {mark})

    return each_data(m, v, at)


def faults(trial: Trial) -> Iterator[Fault]:
    """Models with a wrap that are called by themselves with a tensor that the program has made on the
    CPU; or with a batch as its loader gives it, where the program moves other batches to the rank's
    device itself. A program that has given a model such a thing before was right to: its data lie on
    the device, or the model on the CPU.
    """
    own = {e.node for e in trial.result.trace.of("judge runtime") if e.values["name"] == const("device")}
    moves = [e.node for e in trial.result.trace.of(MOVED_BATCH)]
    kinds = {
        _made: "a model without its wrapper is given a tensor on the CPU, which the wrapper moved to its device",
        left: "a model without its wrapper is given a batch that nothing has moved to the rank's device",
    }
    if not any(isinstance(n, ast.Call) and own & set(n.args) for n in moves):
        del kinds[left]
    if trial.original is None or sets_default(trial.result.program):
        del kinds[_made]
    if (original := trial.original) is not None:
        bare = list(original.trace.of("judge bare"))
        before = {_made: _made_at_times, left: left}
        kinds = {is_left: words for is_left, words in kinds.items() if not any(before[is_left](original, e) for e in bare)}
    wrapped = {
        n for e in trial.result.trace.of("wrap") for o in trial.objects(e.values["module"])
        for n in owned(trial.result, o.number) | {o.number}
    }  # fmt: skip
    for event in trial.result.trace.of("judge bare") if kinds else ():
        called = {o.number for o in trial.objects(event.values["module"])}
        words = next((w for is_left, w in kinds.items() if is_left(trial.result, event)), None)
        if called & wrapped and words is not None:
            yield trial.fault(event.node, NAME, words)


def _made(execution: Execution, event: Event) -> bool:
    """Whether a model is given a tensor that is on the CPU for certain."""
    return any(_on_cpu(execution, d) for d in data(event.values["given"], deep=True))


def _made_at_times(execution: Execution, event: Event) -> bool:
    """Whether a model is given tensors of which some are on the CPU: one event may stand for several calls."""
    return any(execution.heap.objects[n].kind == _ON_CPU for d in data(event.values["given"], deep=True) for n in d.marks)


def _on_cpu(execution: Execution, d: Data) -> bool:
    """Whether data were made on the CPU, or moved to it, and nothing has moved them from it."""
    kinds = {execution.heap.objects[n].kind for n in d.marks}
    return d.kind == "tensor" and _ON_CPU in kinds and _MOVED not in kinds


def all_moved(execution: Execution, v: Value) -> bool:
    """Whether a value is seen to have been moved to a device, or is no tensor."""
    return bool(v) and all(isinstance(a, Const | Setting) or _is_moved(execution, a) for a in v)


def some_moved(execution: Execution, event: Event) -> bool:
    """Whether something that a wrapper is given is seen to have been moved to a device."""
    return any(_is_moved(execution, a) for v in event.values.values() for a in v)


def _is_moved(execution: Execution, a: Atom) -> bool:
    return isinstance(a, Data) and any(execution.heap.objects[n].kind == _MOVED for n in a.marks)


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
