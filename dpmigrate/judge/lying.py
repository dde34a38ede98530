"""An execution that notes how expressions lie across the ranks where gradients are recorded."""

from __future__ import annotations

import ast
from typing import NamedTuple

from dpmigrate.execution import placements
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.machine import Frame, Library
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.samples import is_place
from dpmigrate.execution.values import Data, Foreign, Value, const, data, placement_of
from dpmigrate.judge.notes import is_loader
from dpmigrate.library.sites import GRAD
from dpmigrate.program import Program


class Lies(NamedTuple):
    """How an expression lies, whether it has a gradient, and the call that has made it where it
    numbers the samples of the batch.
    """

    placement: Placement
    learns: bool
    numbers: ast.AST | None = None


Span = tuple[int, ...]
#: kinds of data that number the samples of a batch
_NUMBERS = ("order", "places")


def span(node: ast.AST) -> Span:
    """Where a node stands."""
    return tuple(getattr(node, name, 0) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))


class Lying(Execution):
    """What losses may be made of is noted with the way it lies, by its place."""

    def __init__(self, program: Program, library: Library) -> None:
        super().__init__(program, library)
        #: how expressions lie that are not the same on all ranks
        self.lying: dict[Span, dict[Lies, None]] = {}
        #: where numbers of samples stand
        self.sized: set[Span] = set()
        #: where modules, classes and functions of libraries stand
        self.foreign: set[Span] = set()

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        found = super().evaluate(node, frame)
        for a in found:
            if type(a) is Data:
                self._note_lying(node, found)
                break
            if type(a) is Foreign:
                self.foreign.add(span(node))
                break
        return found

    def _note_lying(self, node: ast.expr, found: Value) -> None:
        held = data(found)
        if any(d.kind in ("array", "text") for d in held) or self.heap.read(GRAD) == const(False):
            return
        if is_place(found):
            for d in held:
                if d.origin is not None:
                    self.lying.setdefault(span(node), {})[Lies(placements.rows(), False, d.origin.node)] = None
            return
        p = placement_of(found)
        if p.kind in placements.EQUAL or all(d.whole for d in held):
            return
        if p.kind is Kind.SIZE:
            self.sized.add(span(node))
        learns = any(d.gradient != "none" for d in held)
        if p.segments > 1 and len(self._loaders(held)) > 1:
            p = p._replace(segments=0)  # which may be of unlike length
        numbers = next((d.origin.node for d in held if d.kind in _NUMBERS and d.origin is not None), None)
        self.lying.setdefault(span(node), {})[Lies(placements.SUM if p.kind is Kind.SIZE else p, learns, numbers)] = None

    def _loaders(self, held: list[Data]) -> set[int]:
        return {n for d in held for n in d.sources if is_loader(self, self.heap.objects[n])}
