"""Comparisons of a number of samples with a number that all ranks have are noted (``compared``)."""

from __future__ import annotations

import ast

from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Atom, Const, Setting, Value, const, data

#: the event of such a comparison, with the numbers of samples and the text of the other side
COMPARED = "judge compared"


def noted(m: Machine, node: ast.Compare, left: Value, rights: list[Value], frame: Frame) -> None:
    """Notes where a number of samples is compared with a number that all ranks have."""
    if len(rights) != 1:
        return
    for one, other, text in ((left, rights[0], node.comparators[0]), (rights[0], left, node.left)):
        sizes = tuple(d for d in data(one) if d.placement.kind is Kind.SIZE)
        if sizes and other and all(map(_limit, other)):
            m.event(COMPARED, node, frame, sizes=sizes, limit=const(ast.unparse(text)))


def _limit(a: Atom) -> bool:
    """Whether a number is the same on all ranks, and asks for more than whether there is a sample."""
    return isinstance(a, Setting) or (isinstance(a, Const) and isinstance(a.value, int | float) and a.value > 1)
