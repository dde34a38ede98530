"""Which layers of a container a program goes through: all of them, or perhaps not.

A loop that is not executed turn by turn takes any of the layers, and what it gives is made of each.
That says nothing of a layer that no turn comes to. So each place that takes layers notes which part
of the container it takes, from where and to where as in a slice: ``layers[:-1]`` and ``layers[-1]``
are all together. ``NOT_SEEN`` is a part of which that is not seen: a loop that may be left before
its end, a number that is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dpmigrate.execution import arms
from dpmigrate.execution.counting import as_many, looked_up, sources_of
from dpmigrate.execution.machine import PROCESS, Frame, Going, Machine
from dpmigrate.execution.names import NameParts
from dpmigrate.execution.objects import Object
from dpmigrate.execution.syntax import below
from dpmigrate.execution.values import Items, Ref, Value, const, value

_GRAD = (PROCESS, "mode grad")
_CONTAINER = "container"
_ENDLESS = ("count", "cycle", "repeat")


class Part(NamedTuple):
    """The layers between two bounds of a slice."""

    first: int = 0
    end: int | None = None


ALL = Part()
NOT_SEEN = Part(0, 0)


def complete(parts: Iterable[Part]) -> bool:
    """Whether parts of a container are together all of it."""
    found = set(parts) - {NOT_SEEN}
    reached: set[int | None] = {0}
    while True:
        more = {p.end for p in found if p.first in reached} - reached
        if not more:
            return None in reached
        reached |= more


# ------------------------------------------------------------ what is taken


def takes(m: Machine, number: int, part: Part, witnesses: frozenset[int] = frozenset()) -> None:
    """A part of a container is gone through, and gradients are made, of all layers where a loss is
    made of the witnesses (``arms``).
    """
    if m.heap.read(_GRAD) == const(False):
        return
    m.taken_parts.setdefault(number, {}).setdefault(part, set()).add(witnesses)
    if number in m.slices:
        whole, cut = m.slices[number]
        takes(m, whole, _within(part, cut), witnesses)


def _within(part: Part, cut: Part) -> Part:
    """The part of a slice, as one of the container that it is a slice of."""
    if part == ALL:
        return cut
    if part == NOT_SEEN or part.first < 0 or cut.first < 0 or (part.end or 0) > 0:
        return NOT_SEEN
    end = cut.end if part.end is None else part.end + (cut.end or 0)
    return Part(cut.first + part.first, end) if (cut.end or 0) <= 0 else NOT_SEEN


def by_place(m: Machine, made: Object, place: int) -> None:
    """A layer is taken by its place."""
    takes(m, made.number, Part(place, place + 1 if place != -1 else None))


def by_turn(m: Machine, made: Object, place: int, node: ast.AST, frame: Frame) -> None:
    """A layer is taken by its place, which is that of a turn where a loop is executed turn by turn."""
    by_place(m, made, place)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant | ast.UnaryOp):
        picked(m, made, node, frame)


def picked(m: Machine, made: Object, node: ast.AST, frame: Frame) -> None:
    """A layer of a container is taken by a number or a name that is not known."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    for loop in reversed(m.going):
        if index is not None and loop.frame == frame.number and numbers(loop.target, index):
            part, spare = _by_number(m, loop, index, made)
            if part != NOT_SEEN:
                loop.picked[(made.number, node)] = part, spare
                return
    takes(m, made.number, NOT_SEEN)


def _by_number(m: Machine, loop: Going, index: ast.expr, made: Object) -> tuple[Part, bool]:
    """What of a container the turns of a loop take, each another layer; and whether there are more
    turns than layers: then a test keeps those from it that would find none.
    """
    count, own = as_many(m, loop.iterable), as_many(m, value(Ref(made.number)))
    more = count.beyond(own) if count is not None and own is not None else None
    if more is None:
        return NOT_SEEN, False
    if more >= 0:
        return ALL, more > 0
    first = _first(m, loop) if isinstance(index, ast.Name) else None
    if first is None:
        return NOT_SEEN, False
    return Part(first, first + more if first + more < 0 else None), False


def _first(m: Machine, loop: Going) -> int | None:
    """The first of the numbers that a loop goes through."""
    made = m.object(loop.iterable[0]) if len(loop.iterable) == 1 else None
    if made is None or made.kind != "iterator":
        return 0 if made is not None and made.kind == "list" else None
    if isinstance(made.extra, int):
        return 0 if made.name == "enumerate" else None
    return m.beginning.get(made.number)


def numbers(target: ast.expr, index: ast.expr) -> bool:
    """Whether an index is another one in each turn: what a loop gives, shifted, or from the end."""
    names = names_in(target)
    used = [n for n in ast.walk(index) if isinstance(n, ast.Name) and n.id in names]
    return len(used) == 1 and _shifted(index, used[0])


def names_in(target: ast.expr) -> set[str]:
    """The variables of the target of a loop."""
    return {n.id for n in below(target) if isinstance(n, ast.Name)}


def _shifted(index: ast.expr, name: ast.Name) -> bool:
    if index is name:
        return True
    if isinstance(index, ast.UnaryOp):
        return isinstance(index.op, ast.USub | ast.Invert) and _shifted(index.operand, name)
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add | ast.Sub):
        return _shifted(index.left, name) or _shifted(index.right, name)
    if isinstance(index, ast.Call) and isinstance(index.func, ast.Name) and index.func.id == "str":
        return len(index.args) == 1 and _shifted(index.args[0], name)
    return False


# ------------------------------------------------------------ loops


def ended(m: Machine, loop: Going) -> None:
    """The end of a loop: what it has gone through."""
    direct = any(ast.dump(n) in loop.left_out for n in map(_loaded, names_in(loop.target)))
    for made, part in _gone_over(m, loop.iterable):
        takes(m, made.number, NOT_SEEN if loop.left or direct else part, frozenset(loop.witnesses))
    for (number, place), (part, spare) in loop.picked.items():
        out = loop.left or (ast.dump(place) in loop.left_out and not spare)
        takes(m, number, NOT_SEEN if out else part, frozenset(loop.witnesses))


def _loaded(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _gone_over(m: Machine, iterable: Value) -> Iterator[tuple[Object, Part]]:
    """The containers that a loop goes over, also beside others, and which part of them: beside what
    has fewer items not to their ends.
    """
    for made in m.objects(iterable):
        if _CONTAINER in m.kinds(made):
            yield made, ALL
        elif made.number in m.paired or (made.kind in ("iterator", "bar") and isinstance(made.extra, int)):
            sources = m.paired.get(made.number) or sources_of(m, made)
            for one in sources:
                others = [s for s in sources if s is not one] if made.name in ("zip", "list") else []
                for inner, part in _gone_over(m, one):
                    short = next((p for s in others if (p := _shorter(m, s, inner))), None)
                    yield inner, short or part


def _shorter(m: Machine, v: Value, made: Object) -> Part | None:
    """What of a container goes together with something that may have fewer items; None where it is
    seen to have none fewer.
    """
    if _without_end(m, v):
        return None
    count, own = as_many(m, v), as_many(m, value(Ref(made.number)))
    more = count.beyond(own) if count is not None and own is not None else None
    if more is None:
        return NOT_SEEN
    return Part(0, more) if more < 0 else None


def _without_end(m: Machine, v: Value) -> bool:
    """Whether it is ``itertools.count()`` and the like."""
    found = m.objects(v)
    return len(found) == len(v) and all(o.kind == "iterator" and o.name in _ENDLESS for o in found)


def undecided(m: Machine, node: ast.If, frame: Frame) -> Going | None:
    """A test of what a turn of a loop is given is not decided: the layers that only one of its arms
    uses are perhaps left out. Gives the loop where both use them.
    """
    loop = next((g for g in reversed(m.going) if g.frame == frame.number), None)
    if loop is None:
        return None
    found = m.left_out.get((node, loop.target))
    if found is None:
        found = m.left_out[node, loop.target] = _left_out(node, loop)
    loop.left_out |= found[0]
    return loop if found[1] else None


def _left_out(node: ast.If, loop: Going) -> tuple[set[str], bool]:
    """The layers that only one arm of a test uses, where it is one of what a turn is given; and
    whether there are such as both use.
    """
    names, found = names_in(loop.target), set[str]()
    if not any(isinstance(n, ast.Name) and n.id in names for n in below(node.test)):
        return found, False
    rest = [s for s in loop.body if s is not node]
    body, orelse, beside = (_used(loop.target, arm) for arm in (node.body, node.orelse, rest))
    found |= (body ^ orelse) - beside
    for arm, used in ((node.body, body), (node.orelse, orelse)):
        if any(isinstance(s, ast.Continue) for s in arm):
            found |= beside - used
    return found, bool(body & orelse)


def arm_ended(
    m: Machine, loop: Going | None, node: ast.If, which: str, before: tuple[int, int, int], frame: Frame
) -> None:
    """The end of an arm of a test, both of which use the layers of a loop."""
    if loop is not None and m.heap.read(_GRAD) != const(False):
        gone = [made.number for made, _ in _gone_over(m, loop.iterable)]
        made_of = arms.layers(m, [*gone, *(number for number, _ in loop.picked)])
        loop.witnesses.add(arms.ended(m, node, which, made_of, before, frame))


def _used(target: ast.expr, block: list[ast.stmt]) -> set[str]:
    """What of a turn's layers a block calls: the element, or one by the number of the turn."""
    names, found = names_in(target), set[str]()
    for n in (n for s in block for n in below(s)):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in names:
            found.add(ast.dump(n.func))
        elif isinstance(n, ast.Subscript) and numbers(target, n.slice):
            found.add(ast.dump(n))
    return found


# ------------------------------------------------------------ one by one


def chooses_layers(
    m: NameParts, node: ast.For | ast.AsyncFor, elements: list[Value], frame: Frame
) -> bool:
    """Whether a loop goes over layers, or takes one by the number of its turn."""
    if any(_layers(m, v) for v in elements):
        return True
    return any(
        isinstance(n, ast.Subscript)
        and numbers(node.target, n.slice)
        and any(_CONTAINER in m.kinds(o) for o in m.objects(looked_up(m, n.value, frame)))
        for s in node.body
        for n in ast.walk(s)
    )


def _layers(m: Machine, v: Value) -> bool:
    for a in v:
        if isinstance(a, Items):
            if any(_layers(m, i) for i in a.items):
                return True
        elif isinstance(a, Ref):
            if not m.kinds(m.heap.objects[a.object]).isdisjoint(("module", _CONTAINER)):
                return True
    return False
