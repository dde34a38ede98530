"""What the arms of a test make of the layers that a loop goes through.

``if i < n: h = layer(h)`` with ``else: aux = aux + layer(h)`` uses the layer of each turn, and a loss
that is made of ``h`` alone has no gradient for those of the other arm. Each arm has a witness, an
object that a gradient comes to with what the arm has made of a layer: a loss that has all witnesses
is made of all layers.
"""

from __future__ import annotations

import ast

from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.objects import Delta
from dpmigrate.execution.values import Atom, Data, Items, Ref, Value

#: the kind of a witness
WITNESS = "witness"
_HOLDERS = frozenset(("module", "container", "parameter"))


def layers(m: Machine, containers: list[int]) -> frozenset[int]:
    """What a gradient may come to in containers of layers."""
    seen: set[int] = set()
    todo = list(containers)
    while todo:
        number = todo.pop()
        if number in seen:
            continue
        seen.add(number)
        for _, held in m.heap.peek(number):
            for a in held or ():
                if isinstance(a, Ref) and not m.kinds(m.heap.objects[a.object]).isdisjoint(_HOLDERS):
                    todo.append(a.object)
    return frozenset(seen)


def ended(
    m: Machine, node: ast.AST, which: str, made_of: frozenset[int], before: tuple[int, int, int],
    frame: Frame,
) -> int:  # fmt: skip
    """The end of an arm: its witness, which what it has made of layers has from here on."""
    number = m.heap.new(WITNESS, which, node, frame.context, key=which).number

    def seen(v: Value) -> Value:
        return tuple(_seen(a, made_of, number) for a in v)

    for at, v in m.heap.since(m.heap.level - 1).items():
        if v and (new := seen(v)) != v:
            m.heap.write(at, new)
    frame.returns[before[0] :] = [(seen(v), delta) for v, delta in frame.returns[before[0] :]]
    left: list[Delta] = [*(d for _, d in frame.returns[before[0] :]), *frame.breaks[before[1] :]]
    for delta in (*left, *frame.continues[before[2] :]):
        delta.update({at: seen(v) for at, v in delta.items() if v})
    return number


def _seen(a: Atom, made_of: frozenset[int], number: int) -> Atom:
    if isinstance(a, Items):
        return a._replace(items=tuple(tuple(_seen(b, made_of, number) for b in v) for v in a.items))
    if isinstance(a, Data) and a.reached & made_of:
        return a._replace(reached=a.reached | {number})
    return a
