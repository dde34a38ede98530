"""An execution that notes tests by drawn numbers which say what the loss is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.branches import Chain
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import Value, const, data
from dpmigrate.judge.accumulating import Accumulating
from dpmigrate.judge.notes import INSIDE
from dpmigrate.library.streams import DRAW


class Choosing(Accumulating):
    """Tests by draws of each rank's own are noted where they say what is differentiated."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: tests of what each rank has drawn for itself
        self._by_draws: set[ast.AST] = set()
        #: of those, where a test says what has a gradient
        self.chosen: dict[ast.AST, None] = {}

    def parting(self, condition: Value, node: ast.AST) -> Parting | None:
        """Why ranks may decide differently."""
        found = super().parting(condition, node)
        if found is not None and found.certain and found.origin.word == DRAW:
            self._by_draws.add(node)
        return found

    def _if(self, node: ast.If, frame: Frame, chain: Chain | None = None) -> bool:
        alive = super()._if(node, frame, chain)  # such a test is joined by itself, and not in a chain
        # what a model draws for its samples is the rank's own
        if node.test in self._by_draws and self.heap.read(INSIDE) != const(True):
            for target in _bound(node):
                at = self.location(target, frame)
                held = self.heap.read(at) if at is not None else None
                if any(
                    d.gradient != "none" and d.placement.kind is Kind.PER_RANK and d.reached
                    for d in data(held or ())
                ):
                    self.chosen.setdefault(node.test, None)
        return alive


def _bound(node: ast.If) -> Iterator[ast.expr]:
    """The variables and attributes that the sides of a test are given."""
    for stmt in (n for side in (node.body, node.orelse) for s in side for n in ast.walk(s)):
        if isinstance(stmt, ast.Assign):
            yield from (t for t in stmt.targets if isinstance(t, ast.Name | ast.Attribute))
        elif isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name | ast.Attribute):
            yield stmt.target
