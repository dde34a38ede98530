"""Loops under way, and which layers of a container they go through: all of them, or perhaps not.

A loop that is not executed turn by turn takes any of the layers, and what it gives is made of each.
That says nothing of a layer that no turn comes to. So the loop tells at its end what it has gone
through: ``all layers`` where it has as many turns as the container has layers and no way out before
its end, ``some layers`` otherwise. How many there are is often not known and yet the same number,
so numbers are compared by the value that was given for both (``as_many``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.machine import PROCESS, Frame, Going, Machine
from dpmigrate.execution.names import NameParts
from dpmigrate.execution.objects import EXISTS, LENGTH, Object
from dpmigrate.execution.values import (
    NONE,
    SETTING,
    Const,
    Items,
    Ref,
    Setting,
    Value,
    const,
    only,
    value,
)

ALL, SOME = "all layers", "some layers"
_GRAD = (PROCESS, "mode grad")
_CONTAINER = "container"


# ------------------------------------------------------------ how many


def as_many(m: Machine, v: Value) -> Value | None:
    """How many items something has, as a value by which the number is known again; None where
    nothing says it.
    """
    if len(v) != 1:
        return None
    (atom,) = v
    if isinstance(atom, Setting):
        return v
    listed = m.known_elements(v)
    if listed is not None:
        return const(len(listed))
    made = m.object(atom)
    if made is None:
        return None
    if made.kind == "iterator":
        if not isinstance(made.extra, int):
            return m.counted.get(made.number) or m.heap.read((made.number, LENGTH))
        found = [as_many(m, s) for s in _sources(m, made) if s != SETTING]
        first = found[0] if found else None
        alike = first is not None and all(f is not None and same_number(first, f) for f in found)
        return first if alike else None
    if made.number in m.counted:
        return m.counted[made.number]
    return layers_of(made) if _CONTAINER in m.kinds(made) else None


def layers_of(made: Object) -> Value:
    """The number of the layers of a container of which no more is known."""
    return value(Setting(f"the number of layers of {made.number}"))


def same_number(a: Value, b: Value) -> bool:
    """Whether two values of numbers are one number: not known options are equal and may differ."""
    if a is b:
        return True
    a, b = _number(a), _number(b)
    if len(a) == len(b) == 1 and isinstance(a[0], Items) and isinstance(b[0], Items):
        return all(map(same_number, a[0].items, b[0].items))
    return a == b and len(a) == 1 and (isinstance(a[0], Const) or getattr(a[0], "word", "") != "")


def _number(v: Value) -> Value:
    """A number that may be None as well, which counts nothing."""
    return tuple(a for a in v if a not in NONE)


def told(m: Machine, made: Object, count: Value | None) -> None:
    """A container has as many items as something else, or no more; said otherwise once more, it
    has a number that is not known.
    """
    before = m.counted.get(made.number, count)
    alike = count is not None and before is not None and same_number(before, count)
    m.counted[made.number] = count if alike else None


def appended(m: Machine, made: Object, before: list[Value] | None, node: ast.AST) -> None:
    """A container is given one more item in a turn of a loop that began after it was made, when it
    had none ``before``: at the end it has as many as the loop has turns. Of two places that do so
    it has more.
    """
    at = (made.number, EXISTS)
    since = [g for g in m.going if not m.heap.written_since(g.level, at)]
    first = made.number not in m.appending
    known = m.appending.setdefault(made.number, node)
    if len(since) != 1 or known is not node or (first and before != []):
        m.counted[made.number] = None
    else:
        told(m, made, as_many(m, since[0].iterable))


def shifted(m: NameParts, node: ast.AST, frame: Frame) -> Value | None:
    """What ``range(n - 1)`` and ``range(len(layers) - 1)`` count: the number and what is added to it,
    as a tuple.
    """
    given = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else None
    if not isinstance(given, ast.BinOp) or not isinstance(given.right, ast.Constant):
        return None
    by, left = given.right.value, given.left
    if not isinstance(by, int) or not isinstance(given.op, ast.Add | ast.Sub):
        return None
    if isinstance(left, ast.Call):
        length = isinstance(left.func, ast.Name) and left.func.id == "len" and len(left.args) == 1
        held = as_many(m, _held(m, left.args[0], frame)) if length else None
    else:
        held = _held(m, left, frame)
    if not held or len(_number(held)) != 1:
        return None
    return value(Items((held, const(by if isinstance(given.op, ast.Add) else -by))))


def _parts(count: Value) -> tuple[Value, int]:
    """A number and what is added to it."""
    if len(count) == 1 and isinstance(count[0], Items):
        return count[0].items[0], only(count[0].items[1])
    return count, 0


def _sources(m: Machine, made: Object) -> list[Value]:
    found = (m.heap.read((made.number, f"source {i}")) for i in range(made.extra))
    return [m.bound(v or ()) for v in found]


def _covers(m: Machine, count: Value | None, made: Object) -> bool:
    """Whether so many turns come to each layer of a container."""
    own = as_many(m, value(Ref(made.number)))
    if count is None or own is None:
        return False
    if isinstance(own[0], Const) and len(count) == 1 and isinstance(count[0], Const):
        turns, layers = count[0].value, own[0].value
        return isinstance(turns, int) and isinstance(layers, int) and turns >= layers
    (base, more), (other, added) = _parts(count), _parts(own)
    return same_number(base, other) and more >= added


# ------------------------------------------------------------ what is taken


def picked(m: Machine, made: Object, node: ast.AST, frame: Frame) -> None:
    """A layer of a container is taken by a number or a name that is not known."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    for loop in reversed(m.going):
        if index is not None and loop.frame == frame.number and _numbers(loop.target, index):
            if _covers(m, as_many(m, loop.iterable), made):
                loop.picked[(made.number, node)] = None
                return
    tell(m, SOME, made.number, node, frame)


def _numbers(target: ast.expr, index: ast.expr) -> bool:
    """Whether an index is another one in each turn: what a loop gives, shifted, or from the end."""
    names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    used = [n for n in ast.walk(index) if isinstance(n, ast.Name) and n.id in names]
    return len(used) == 1 and _shifted(index, used[0])


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


def tell(m: Machine, word: str, number: int, node: ast.AST, frame: Frame) -> None:
    """All layers of a container are gone through, or some of them, and gradients are made."""
    if m.heap.read(_GRAD) != const(False):
        m.event(word, node, frame, container=value(Ref(number)))


def ended(m: Machine, loop: Going, node: ast.AST, frame: Frame) -> None:
    """The end of a loop: what it has gone through."""
    for made, covered in _gone_over(m, loop.iterable):
        tell(m, SOME if loop.left or not covered else ALL, made.number, node, frame)
    for number, place in loop.picked:
        tell(m, SOME if loop.left else ALL, number, place, frame)


def _gone_over(m: Machine, iterable: Value) -> Iterator[tuple[Object, bool]]:
    """The containers that a loop goes over, also beside others, and whether to their ends: beside
    what has another number of items not.
    """
    for made in m.objects(iterable):
        if _CONTAINER in m.kinds(made):
            yield made, True
        elif made.kind in ("iterator", "bar") and isinstance(made.extra, int):
            sources = _sources(m, made)
            for one in sources:
                others = [s for s in sources if s is not one] if made.name == "zip" else []
                for inner, whole in _gone_over(m, one):
                    yield inner, whole and not any(_fewer(m, s, inner) for s in others)


def _fewer(m: Machine, v: Value, made: Object) -> bool:
    """Whether it is seen that something may have fewer items than a container."""
    counted = made.number in m.counted or m.known_elements(value(Ref(made.number))) is not None
    count = as_many(m, v) if counted and not any(isinstance(a, Setting) for a in v) else None
    return count is not None and not _covers(m, count, made)


# ------------------------------------------------------------ one by one


def chooses_layers(
    m: NameParts, node: ast.For | ast.AsyncFor, elements: list[Value], frame: Frame
) -> bool:
    """Whether a loop goes over layers, or takes one by the number of its turn."""
    if any(_layers(m, v) for v in elements):
        return True
    return any(
        isinstance(n, ast.Subscript)
        and _numbers(node.target, n.slice)
        and any(_CONTAINER in m.kinds(o) for o in m.objects(_held(m, n.value, frame)))
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


def _held(m: NameParts, node: ast.expr, frame: Frame) -> Value:
    """What a name or an attribute holds, looked up and not evaluated."""
    if isinstance(node, ast.Name):
        return m.bound(m.heap.read(m.place(node.id, frame)) or ())
    if isinstance(node, ast.Attribute):
        owners = m.objects(_held(m, node.value, frame))
        return tuple(a for o in owners for a in m.heap.read((o.number, node.attr)) or ())
    return ()
