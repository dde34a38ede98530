"""The tree of a model: which modules and parameters it holds."""

from __future__ import annotations

from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import (
    Data,
    Items,
    Ref,
    Value,
)

#: kinds of objects that hold parameters
MODULES = frozenset({"module", "wrapper", "criterion", "container", "library model"})


def is_module(m: Machine, made: Object) -> bool:
    """Whether an object is a model or a part of one, as far as is seen."""
    return "module" in made.marks or not m.kinds(made).isdisjoint(MODULES)


def owned(m: Machine, top: int) -> set[int]:
    """The modules and parameters that a module holds, itself included."""
    heap = m.heap
    seen: set[int] = set()
    looked: dict[int, int] = {}
    todo = [top]
    while todo:
        number = todo.pop()
        if number not in seen:
            seen.add(number)
            for _, held in heap.peek(number):
                todo += _inside(m, held, 3, looked)
    return seen


def _inside(m: Machine, v: Value, depth: int, looked: dict[int, int]) -> list[int]:
    """The modules and parameters in a value, and in lists and dictionaries, each of which is looked
    at once; ``looked`` are those already, with how deep.
    """
    found: list[int] = []
    for a in v:
        if isinstance(a, Ref):
            made = m.heap.objects[a.object]
            if made.kind in ("list", "dict"):
                if depth > looked.get(a.object, 0):
                    looked[a.object] = depth
                    for _, held in m.heap.peek(a.object):
                        found += _inside(m, held, depth - 1, looked)
            elif made.kind == "parameter" or is_module(m, made):
                found.append(a.object)
        elif isinstance(a, Items):
            if depth:
                for v2 in a.items:
                    found += _inside(m, v2, depth - 1, looked)
        elif isinstance(a, Data) and a.gradient == "whole":
            found += [n for n in a.reached if m.heap.objects[n].kind == "parameter"]
    return found
