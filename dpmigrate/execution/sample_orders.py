"""In which order the samples of a batch are, where a function puts it together: as it is given them, or changed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.execution import placements
from dpmigrate.execution.joins import normal
from dpmigrate.execution.objects import LENGTH
from dpmigrate.execution.samples import OF_A_SAMPLE, element, twin
from dpmigrate.execution.values import OTHERS, PLACE, Atom, Data, Items, Origin, Ref, Setting, Value

if TYPE_CHECKING:
    from dpmigrate.execution.machine import Machine

#: the order in which a function is given the samples of which it makes a batch
IN_ORDER: frozenset[object] = frozenset({"as given"})
#: how the order of samples is said that is turned round, and that leads back from another one
REVERSED, BACK = "reversed", "back from"


def given(v: Value, order: frozenset[object]) -> Value:
    """Samples, or their places, which are in an order."""
    return tuple(a._replace(order=order) if isinstance(a, Data) else a for a in v)


def back(order: frozenset[object]) -> frozenset[object]:
    """The places that lead back from an order, as those that sort the places of it do: ``_, back = order.sort()``."""
    return frozenset({(BACK, order)})


def put_in(v: Value, by: frozenset[object]) -> Value:
    """Samples that are taken at places in an order of their own."""
    return tuple(a._replace(order=_by(a.order, by)) if isinstance(a, Data) and a.order else a for a in v)


def reordered(m: Machine, v: Value, node: ast.AST, by: object) -> Value:
    """What has an item for each sample, in another order: that of ``by``."""
    return normal(tuple(_reordered(m, a, node, by) for a in v))


def _reordered(m: Machine, a: Atom, node: ast.AST, by: object) -> Atom:
    match a:
        case Items():
            return a._replace(items=tuple(reordered(m, v, node, by) for v in a.items))
        case Ref() if OF_A_SAMPLE in m.heap.objects[a.object].marks:
            made = m.heap.objects[a.object]
            own = twin(m, made, node, ("by", by), lambda held: reordered(m, held, node, by))
            own.marks.add(OF_A_SAMPLE)
            count = m.heap.read((own.number, LENGTH))
            if count:
                m.heap.write((own.number, LENGTH), reordered(m, count, node, by))
            return Ref(own.number)
        case Data() if a.order and a.whose != OTHERS:
            return a._replace(order=_by(a.order, by))
        case Setting() if a.word == PLACE:
            return Data("number", placements.UNIFORM, origin=Origin(node, PLACE), order=_by(IN_ORDER, by))
    return a


def _by(order: frozenset[object], by: object) -> frozenset[object]:
    """An order that was changed: turned round, which twice is the order before; to that of the places at which samples are taken; to
    one that nothing else has.
    """
    if isinstance(by, frozenset):
        if by == back(order):
            return IN_ORDER
        return by if order == IN_ORDER else frozenset({(by, order)})
    if by == REVERSED and len(order) == 1 and isinstance(one := next(iter(order)), tuple) and one[0] == REVERSED:
        return frozenset(one[1])
    return frozenset({(by, order) if by == REVERSED else by})


def at_place(m: Machine, v: Value, place: Value, node: ast.AST) -> Value:
    """What the turn's own sample has, which is at a place; samples that are gone through in an order of their own are in that one then."""
    order = frozenset[object]().union(*(a.order for a in place if isinstance(a, Data)))
    own = element(m, v, node)
    return reordered(m, own, node, order) if order else own
