"""Which tensor it is that a value is: what is written into one of its places is in all of them.

A tensor is a value here and no object. So where one is stored that no place has held yet, it is
given the number of that place (``Data.held``), which goes with it wherever it is stored, put into
a container, returned or viewed. What is made of it is another tensor and has none.
"""

from __future__ import annotations

from collections.abc import Callable

from dpmigrate.execution.joins import same
from dpmigrate.execution.values import Data, Items, Value

NOWHERE: frozenset[int] = frozenset()
#: tuples whose tensors all have numbers, by identity, with these numbers
Held = dict[int, tuple[Items, frozenset[int]]]
#: methods that give the same elements, or some of them
VIEWS = frozenset((
    "view", "view_as", "reshape", "detach", "numpy", "squeeze", "unsqueeze", "flatten", "t",
    "transpose", "permute", "narrow", "select", "expand", "ravel", "to", "cpu", "contiguous",
    "diagonal", "requires_grad_",
))  # fmt: skip
#: functions and methods that may do so
_ALIASES = frozenset((
    "chunk", "split", "unbind", "swapaxes", "movedim", "unfold", "from_numpy", "asarray", "as_tensor",
    "cuda", "type", "float", "double", "half", "Buffer",
))  # fmt: skip
#: attributes that do
VIEWED = ("data", "T", "mT")
#: functions of Python that give what they are given
_GIVING = ("builtins.", "itertools.", "functools.", "operator.", "collections.", "typing.", "dataclasses.")


def has_elements(d: Data) -> bool:
    """Whether it is a tensor or an array into which something can be written. Without axes that is a
    tensor alone: numpy gives a number, of which ``+=`` makes another one.
    """
    return d.kind not in ("number", "text", "shape") and (d.axes != 0 or d.kind == "tensor")


def places_of(v: Value) -> frozenset[int]:
    """The numbers of the tensors that a value may be."""
    found = [a.held for a in v if isinstance(a, Data) and a.held]
    return frozenset().union(*found) if found else NOWHERE


def the_same(v: Value, held: frozenset[int]) -> Value:
    """A value that is the tensors of some places, or a part of one of them."""
    if not held:
        return v
    return _mapped(v, lambda d: d._replace(held=d.held | held) if has_elements(d) else d)


def another(v: Value) -> Value:
    """A value that has been computed: no tensor of any place."""
    if not any(isinstance(a, Data) and a.held for a in v):
        return v
    return tuple(a._replace(held=NOWHERE) if isinstance(a, Data) else a for a in v)


def unrecorded(v: Value) -> Value:
    """A value that is computed while autograd does not record; what a place holds stays as it is."""
    return _mapped(
        v, lambda d: d if d.held or d.gradient == "none" else d._replace(gradient="none", reached=NOWHERE)
    )


def held_at(
    v: Value, number: Callable[[tuple[int, ...]], int], known: Held, path: tuple[int, ...] = (),
) -> tuple[Value, frozenset[int]]:  # fmt: skip
    """A value in a place: tensors that no place has held have the number of this one; and the
    numbers of all tensors in it.
    """
    out, held, changed = list(v), NOWHERE, False
    for i, a in enumerate(v):
        if isinstance(a, Data):
            if not a.held and has_elements(a):
                a = out[i] = a._replace(held=frozenset((number(path),)))
                changed = True
            held |= a.held
        elif isinstance(a, Items):
            found = known.get(id(a))
            if found is None:
                parts = [held_at(x, number, known, (*path, n)) for n, x in enumerate(a.items)]
                if any(x is not y for (x, _), y in zip(parts, a.items, strict=True)):
                    a = a._replace(items=tuple(x for x, _ in parts))
                found = known[id(a)] = (a, NOWHERE.union(*(h for _, h in parts)))
                changed = changed or a is not v[i]
                out[i] = a
            held |= found[1]
    return (tuple(out) if changed else v), held


def is_held(v: Value) -> frozenset[int]:
    """The numbers of all tensors in a value."""
    found = NOWHERE
    for a in v:
        if isinstance(a, Data):
            found |= a.held
        elif isinstance(a, Items):
            for x in a.items:
                found |= is_held(x)
    return found


def holds(v: Value, tensor: int, known: Held) -> bool:
    """Whether a tensor is in a value."""
    for a in v:
        if isinstance(a, Data):
            if tensor in a.held:
                return True
        elif isinstance(a, Items):
            found = known.get(id(a))
            if tensor in found[1] if found is not None else any(holds(x, tensor, known) for x in a.items):
                return True
    return False


def renumbered(v: Value, old: int, new: int) -> Value:
    """A value with another number for a tensor."""
    return _mapped(
        v, lambda d: d._replace(held=d.held - {old} | {new}) if old in d.held else d
    )


def alike(a: Value | None, b: Value | None) -> bool:
    """Whether two values are the same, whichever tensors they are."""
    if a is None or b is None:
        return a is b
    return same(*(_mapped(v, lambda d: d._replace(held=NOWHERE)) for v in (a, b)))


def written(v: Value, held: frozenset[int], write: Callable[[Value], Value]) -> Value:
    """A value after something was written into the tensors of some places."""
    out: list[object] = []
    for a in v:
        if isinstance(a, Data) and a.held & held:
            out += [x for x in write((a,)) if x not in out]
        elif isinstance(a, Items):
            out.append(a._replace(items=tuple(written(x, held, write) for x in a.items)))
        else:
            out.append(a)
    return tuple(out)  # type: ignore[arg-type]


def views(name: str) -> bool:
    """Whether a function or method gives the tensor that it is called for, or a part of it."""
    last = name.rpartition(".")[2]
    return last in VIEWS or last in _ALIASES or (last.endswith("_") and not last.endswith("__"))


def gives(name: str) -> bool:
    """Whether a function gives things that it is given, and computes none."""
    return name.startswith(_GIVING)


def _mapped(v: Value, change: Callable[[Data], Data]) -> Value:
    """A value with other data; tuples in which none is another one stay the objects that they are."""
    out = list(v)
    for i, a in enumerate(v):
        if isinstance(a, Data):
            out[i] = change(a)
        elif isinstance(a, Items):
            parts = tuple(_mapped(x, change) for x in a.items)
            if any(p is not q for x, y in zip(parts, a.items, strict=True) for p, q in zip(x, y, strict=True)):
                out[i] = a._replace(items=parts)
    return tuple(out)
