"""What rank 0 makes and saves in its turn, and the others load: whether they have the same then, and what they must be given by rank 0 instead.

A file need not give back what was put into it (``library/round_trips``): JSON makes texts of all keys and lists of tuples.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import Const, Differs, Foreign, Ref, Value, const
from dpmigrate.judge.cached import Trip, bound_by_both, by_turn, cached, conversions, hands_out, loads_or_makes, undivided
from dpmigrate.library.files import FIRST
from dpmigrate.library.round_trips import READERS, WRITERS, Format

if TYPE_CHECKING:
    from dpmigrate.execution.engine import Execution
    from dpmigrate.execution.machine import Frame
    from dpmigrate.judge.judged import Judged

#: what a tensor is saved as, and what makes it one again
_TENSORS: dict[tuple[str, ...], tuple[str, ...]] = {("numpy",): ("from_numpy", "tensor", "as_tensor")}
#: a variable by its text and an expression in the test or its branches, or a call and ''
Given = tuple[ast.expr, str]


@dataclass(slots=True)
class Notes:
    """What has been seen of the files of a turn: the formats that a call reads or writes, None where no table has it; whether all that was given to a
    call at a place comes back as it was; at which places it was objects of the program, or arrays.
    """

    formats: dict[ast.AST, set[Format | None]] = field(default_factory=dict)
    lost: set[tuple[ast.AST, int]] = field(default_factory=set)
    others: set[tuple[ast.AST, int]] = field(default_factory=set)
    #: places of variables that hold what rank 0 has made, and the others have loaded, with their texts, and calls that give it: it need not be the same
    given: dict[Given, None] = field(default_factory=dict)


def given(result: Execution) -> tuple[Given, ...]:
    """What the other ranks must be given by rank 0."""
    return tuple(cast("Judged", result).made_first.given)


def noted(m: Judged, callee: Value, arguments: Arguments, node: ast.AST) -> None:
    """A call in a turn: what it writes or reads."""
    names = [a.name if isinstance(a, Foreign) else "" for a in callee]
    formats = {WRITERS.get(n) or READERS.get(n) for n in names}
    if not any(formats) or m.heap.read(FIRST) != const(True):
        return
    notes = m.made_first
    notes.formats.setdefault(node, set()).update(formats)
    for i, v in enumerate(arguments.positional):
        if not all(f is not None and f.keeps(m, v) for f in formats):
            notes.lost.add((node, i))
        if not all(isinstance(a, Ref) for a in v):
            notes.others.add((node, i))


def tested(m: Judged, node: ast.If, frame: Frame) -> None:
    """A test in a turn: variables that rank 0 makes and the others load are the same then, or are noted."""
    done: set[str] = set()
    for trip in cached(node):
        same = _kept(m, trip)
        for target in trip.targets:
            done.add(ast.unparse(target))
            _settled(m, target, node, frame, same=same)
    for target in bound_by_both(node):
        if ast.unparse(target) not in done:
            done.add(ast.unparse(target))
            _settled(m, target, node, frame, same=False)
    for name in _receivers(node):
        at = m.location(name, frame)
        for made in m.objects(m.heap.read(at) or ()) if at is not None else ():
            for attribute, held in m.heap.names(made.number) if made.kind == "instance" else ():
                text = f"{name.id}.{attribute}"
                if isinstance(attribute, str) and attribute.isidentifier() and text not in done and not _flag(held) and by_turn(m, held, node):
                    m.made_first.given.setdefault((node.test, text))


def _settled(m: Judged, target: ast.expr, node: ast.If, frame: Frame, *, same: bool) -> None:
    at = m.location(target, frame)
    held = m.heap.read(at) if at is not None else None
    if at is None or not held:
        return
    if same:
        m.heap.write(at, undivided(m, held, node))
    elif by_turn(m, held, node):
        m.made_first.given.setdefault((target, ast.unparse(target)))


def _receivers(node: ast.If) -> list[ast.Name]:
    """The variables of which both branches call methods: ``self.load()``, and else ``self.build()``."""
    called = [{c.func.value.id: c.func.value for s in b for c in ast.walk(s) if _of_variable(c)} for b in (node.body, node.orelse)]
    return [name for text, name in called[0].items() if text in called[1]]


def _of_variable(node: ast.AST) -> TypeGuard[Any]:
    """Whether it calls a method of a variable."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)


def _flag(v: Value) -> bool:
    """Whether it says no more than which branch was taken."""
    return all(isinstance(a, Const | Differs) for a in v)


def handed_out(m: Judged, given: Value, function: ast.AST, node: ast.AST) -> Value:
    """What a call of a function gives that loads it, or has made and saved it."""
    if not by_turn(m, given, function):
        return given
    trip = hands_out(function)
    if trip is not None and _kept(m, trip):
        return undivided(m, given, function)
    if isinstance(node, ast.expr) and (trip is not None or loads_or_makes(function)):
        m.made_first.given.setdefault((node, ""))
    return given


def _kept(m: Judged, trip: Trip) -> bool:
    """Whether what is loaded is what was saved."""
    return all(_comes_back(m, call, arg, loaded) for call, arg in trip.saved for loaded in trip.loaded)


def _comes_back(m: Judged, call: ast.Call, arg: ast.expr, loaded: ast.expr) -> bool:
    notes = m.made_first
    saving, (loading, source) = conversions(arg)[0], conversions(loaded)
    formats = notes.formats.get(call, {None}) | notes.formats.get(source, {None})
    at = (call, call.args.index(arg))
    if len(formats) != 1 or None in formats or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    if loading == ("item",) and not saving and formats == {READERS["numpy.load"]}:
        return at not in notes.others  # an object that stands in an array of its own
    if saving or loading:
        return at not in notes.lost and len(loading) == 1 and loading[0] in _TENSORS.get(saving, ())
    return at not in notes.lost
