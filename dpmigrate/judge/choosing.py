"""An execution that notes tests by drawn numbers which say what the loss is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from dpmigrate.execution.branches import Chain
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import Data, Value, const, data
from dpmigrate.judge.aging import Aging
from dpmigrate.judge.notes import INSIDE, is_loader
from dpmigrate.library.sites import GRAD
from dpmigrate.library.streams import DRAW


class Choosing(Aging):
    """Tests by draws of each rank's own are noted where they say what is differentiated, and where
    they say what a step makes of its batch.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: tests of what each rank has drawn for itself
        self._by_draws: set[ast.AST] = set()
        #: of those, where a test says what has a gradient
        self.chosen: dict[ast.AST, None] = {}
        #: of those, where a test says what a batch becomes, as in teacher forcing
        self.chosen_for_batches: dict[ast.AST, None] = {}

    def parting(self, condition: Value, node: ast.AST) -> Parting | None:
        """Why ranks may decide differently."""
        found = super().parting(condition, node)
        if found is not None and found.certain and found.origin.word == DRAW:
            self._by_draws.add(node)
            if self.heap.read(INSIDE) == const(True):  # whichever rows a rank takes are its own
                return replace(found, drawn=True)
        return found

    def _if(self, node: ast.If, frame: Frame, chain: Chain | None = None) -> bool:
        alive = super()._if(node, frame, chain)  # such a test is joined by itself, and not in a chain
        for target in _bound(node) if self._beside_models(node.test) else ():
            at = self.location(target, frame)
            self._note(node.test, (self.heap.read(at) if at is not None else None) or ())
        return alive

    def chosen_apart(self, node: ast.IfExp, made: Value) -> Value:
        """What a conditional expression gives where ranks may choose differently."""
        if self._beside_models(node.test):
            self._note(node.test, made)
        return super().chosen_apart(node, made)

    def _beside_models(self, test: ast.AST) -> bool:
        """Whether it is such a test, and none of a model: what that draws for its samples is the
        rank's own.
        """
        return test in self._by_draws and self.heap.read(INSIDE) != const(True)

    def _note(self, test: ast.AST, made: Value) -> None:
        """Note a test for what ranks make differently by it."""
        own = [d for d in data(made) if d.placement.kind is Kind.PER_RANK]
        if any(d.gradient != "none" and d.reached for d in own):
            self.chosen.setdefault(test, None)
        if self.heap.read(GRAD) != const(False) and any(self._of_batch(d) for d in own):
            self.chosen_for_batches.setdefault(test, None)

    def _of_batch(self, d: Data) -> bool:
        return d.kind == "tensor" and any(is_loader(self, self.heap.objects[n]) for n in d.sources)


def _bound(node: ast.If) -> Iterator[ast.expr]:
    """The variables and attributes that the sides of a test are given."""
    for stmt in (n for side in (node.body, node.orelse) for s in side for n in ast.walk(s)):
        if isinstance(stmt, ast.Assign):
            yield from (t for t in stmt.targets if isinstance(t, ast.Name | ast.Attribute))
        elif isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name | ast.Attribute):
            yield stmt.target
