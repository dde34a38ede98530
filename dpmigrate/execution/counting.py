"""How many items containers have, where that is the number of something else.

A number that is not known, an option, is yet the same one where a list of layers is made with it and
where a loop takes its turns. A count is such a number with what is added to it: ``range(n - 1)`` has
one turn fewer than ``n``.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.names import NameParts
from dpmigrate.execution.objects import EXISTS, LENGTH, Object
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Ref,
    Setting,
    Value,
    const,
    value,
)

_CONTAINER = "container"


class Count(NamedTuple):
    """A number that is not known, none for 0, and what is added to it."""

    base: Value
    more: int

    def plus(self, more: int) -> Count:
        """So many more."""
        return Count(self.base, self.more + more)

    def beyond(self, other: Count) -> int | None:
        """How many more these are than others; None where that is not known."""
        if not self.base and not other.base:
            return self.more - other.more
        return self.more - other.more if _same(self.base, other.base) else None


def _same(a: Value, b: Value) -> bool:
    """Whether two values are one number: options that are not known are equal and may differ."""
    if a is b:
        return True
    return a == b and len(a) == 1 and getattr(a[0], "word", "") != ""


def number(m: Machine, v: Value) -> Count | None:
    """The number that a value is; it may be None as well, which counts nothing."""
    v = _there(v)
    if len(v) != 1:
        return None
    (atom,) = v
    if isinstance(atom, Const) and type(atom.value) is int:
        return Count(NOTHING, atom.value)
    if isinstance(atom, Setting):
        owner = m.lengths.get(atom.word)
        return m.counted.get(owner) or Count(v, 0) if owner is not None else Count(v, 0)
    return None


def _there(v: Value) -> Value:
    return v if not any(a in NONE for a in v) else tuple(a for a in v if a not in NONE)


def length_of(m: Machine, made: Object) -> Value:
    """``len()`` of a container of layers."""
    count = as_many(m, value(Ref(made.number)))
    if count is not None and not count.base:
        return const(count.more)
    word = f"the number of layers of {made.number}"
    m.lengths[word] = made.number
    return value(Setting(word))


def as_many(m: Machine, v: Value) -> Count | None:
    """How many items something has; it may be None as well, over which no loop goes."""
    v = _there(v)
    if len(v) != 1:
        return None
    (atom,) = v
    if isinstance(atom, Setting):
        return Count(v, 0)
    listed = m.known_elements(v)
    if listed is not None:
        return Count(NOTHING, len(listed))
    made = m.object(atom)
    if made is None:
        return None
    if made.kind == "iterator":
        if not isinstance(made.extra, int):
            held = m.heap.read((made.number, LENGTH))
            return m.counted.get(made.number) or (number(m, held) if held else None)
        found = [as_many(m, s) for s in sources_of(m, made) if s != SETTING]
        first = found[0] if found else None
        alike = first is not None and all(f is not None and first.beyond(f) == 0 for f in found)
        return first if alike else None
    known = m.counted.get(made.number)
    if known is None and _CONTAINER in m.kinds(made):
        return number(m, value(Setting(f"the number of layers of {made.number}")))
    return known


def sources_of(m: Machine, made: Object) -> list[Value]:
    """What an iterator goes over."""
    found = (m.heap.read((made.number, f"source {i}")) for i in range(made.extra))
    return [m.bound(v or NOTHING) for v in found]


# ------------------------------------------------------------ what makes a number


def told(m: Machine, made: Object, count: Count | None) -> None:
    """A container is made with as many items as something else has."""
    _grows(m, made, None, count)


def _grows(m: Machine, made: Object, by: ast.AST | None, count: Count | None) -> None:
    """A place adds so many items to a container; said otherwise once more, it is not known."""
    parts = m.grown.setdefault(made.number, {})
    same = by not in parts or _equal(parts[by], count)
    parts[by] = count if same else None
    found = list(parts.values())
    bases = [c.base for c in found if c is not None and c.base]
    if None in found or len(bases) > 1:
        m.counted[made.number] = None
    else:
        more = sum(c.more for c in found if c is not None)
        m.counted[made.number] = Count(bases[0] if bases else NOTHING, more)


def _equal(a: Count | None, b: Count | None) -> bool:
    return a is not None and b is not None and a.beyond(b) == 0


def appended(m: Machine, made: Object, before: int | None, node: ast.AST) -> None:
    """A place gives a container one more item, in each turn of the loops that have begun since it
    was made; ``before`` is how many it had, where they are known one by one.
    """
    at = (made.number, EXISTS)
    since = [g for g in m.going if not m.heap.written_since(g.level, at)]
    if made.number not in m.grown:
        if not since and before is not None:
            return  # its items are counted one by one
        _grows(m, made, None, Count(NOTHING, before) if before is not None else None)
    counts = [as_many(m, g.iterable) for g in since]
    if len(counts) > 1:
        known = [c.more for c in counts if c is not None and not c.base]
        total = 1
        for n in known:
            total *= n
        _grows(m, made, node, Count(NOTHING, total) if len(known) == len(counts) else None)
    else:
        _grows(m, made, node, counts[0] if counts else Count(NOTHING, 1))


def otherwise(m: Machine, made: Object) -> None:
    """A container has more or fewer items in another way."""
    if made.number in m.grown:
        _grows(m, made, made.node, None)


def counted_turns(m: NameParts, node: ast.AST, given: list[Value], frame: Frame) -> tuple[Count, int] | None:
    """How many numbers ``range`` gives, and the least of them."""
    args = node.args if isinstance(node, ast.Call) and len(node.args) == len(given) else []
    bounds = [_bound(m, a, v, frame) for a, v in zip(args, given, strict=False)]
    if not bounds or None in bounds:
        return None
    first, last = (Count(NOTHING, 0), bounds[0]) if len(bounds) == 1 else bounds[:2]
    assert first is not None and last is not None
    step = bounds[2] if len(bounds) == 3 else Count(NOTHING, 1)
    if step == Count(NOTHING, -1):
        first, last = last.plus(1), first.plus(1)
    elif step != Count(NOTHING, 1):
        return None
    return None if first.base else (last.plus(-first.more), first.more)


def _bound(m: NameParts, node: ast.expr, given: Value, frame: Frame) -> Count | None:
    """A bound of a range: a number, or one with another added to it."""
    known = number(m, given)
    if known is not None and not known.base:
        return known
    if not isinstance(node, ast.BinOp):
        return known
    by = node.right.value if isinstance(node.right, ast.Constant) else None
    if type(by) is not int or not isinstance(node.op, ast.Add | ast.Sub):
        return known
    left = node.left
    if isinstance(left, ast.Call):
        length = isinstance(left.func, ast.Name) and left.func.id == "len" and len(left.args) == 1
        count = as_many(m, looked_up(m, left.args[0], frame)) if length else None
    else:
        count = number(m, looked_up(m, left, frame))
    return count.plus(by if isinstance(node.op, ast.Add) else -by) if count is not None else known


def looked_up(m: NameParts, node: ast.expr, frame: Frame) -> Value:
    """What a name or an attribute holds, looked up and not evaluated."""
    if isinstance(node, ast.Name):
        return m.bound(m.heap.read(m.place(node.id, frame)) or NOTHING)
    if isinstance(node, ast.Attribute):
        owners = m.objects(looked_up(m, node.value, frame))
        if len(owners) == 1:
            return m.bound(m.heap.read((owners[0].number, node.attr)) or NOTHING)
    return NOTHING
