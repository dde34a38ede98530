"""An execution that knows which data a step has of the steps before it."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache

from dpmigrate.execution import placements
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import Atom, Data, Items, Value
from dpmigrate.judge.accumulating import Accumulating
from dpmigrate.program import Program

#: the kind of what marks data that an earlier turn of a loop over batches has left
KEPT = "kept"
#: how names of fields begin in which the judge notes something, and no program keeps it
_NOTES = ("judge ", "mode ")


class Aging(Accumulating):
    """Data that differ between ranks are marked when a turn begins in which batches are taken: whatever holds
    them, and whatever way a later step reads them.
    """

    #: the kinds of the marks that are handed on to what is chosen by marked data
    _handed_on: frozenset[str] = frozenset({KEPT})

    def parting(self, condition: Value, node: ast.AST) -> Parting | None:
        """Why ranks may decide differently; what they choose goes by what earlier turns have left, where that decides."""
        found = super().parting(condition, node)
        if found is None or not found.marks or found.handed_on:
            return found
        kept = frozenset(n for n in found.marks if self.heap.objects[n].kind in self._handed_on)
        return replace(found, handed_on=kept) if kept else found

    def _one_turn(self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, *rest: object) -> bool | None:
        if node in self._taking and node not in _in_generators(self.program):
            mark = self.heap.new(KEPT, KEPT, None, 0, key=KEPT).number
            for at, held in self.heap.since(self.heap.level - 1).items():
                noted = isinstance(at[1], str) and at[1].startswith(_NOTES)
                if not held or noted:
                    continue
                aged = _aged(held, mark)
                if aged is not held:
                    self.heap.narrow(at, aged)  # it is no other value
        return super()._one_turn(node, frame, *rest)


@lru_cache(maxsize=4)
def _in_generators(program: Program) -> frozenset[ast.AST]:
    """The loops of the program's generators, which go on where they were left: with marks they do not settle."""
    functions = (*program.every(ast.FunctionDef), *program.every(ast.AsyncFunctionDef))
    each = ([*ast.walk(f)] for f in functions)
    return frozenset(n for nodes in each if any(isinstance(y, ast.Yield | ast.YieldFrom) for y in nodes) for n in nodes)


def _aged(v: Value, mark: int) -> Value:
    """A value with the mark, itself where nothing in it differs."""
    found = tuple(_older(a, mark) for a in v)
    return v if all(a is b for a, b in zip(found, v, strict=True)) else found


def _older(a: Atom, mark: int) -> Atom:
    if isinstance(a, Data):
        own = a.sources and a.placement.kind not in placements.EQUAL and mark not in a.marks
        return a._replace(marks=a.marks | {mark}) if own else a
    if isinstance(a, Items):
        parts = tuple(_aged(v, mark) for v in a.items)
        return a if all(x is y for x, y in zip(parts, a.items, strict=True)) else a._replace(items=parts)
    return a
