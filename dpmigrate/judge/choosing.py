"""An execution that notes tests by drawn numbers, and by numbers that are not finite, which say what
the loss is made of.
"""

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
from dpmigrate.library.natures import DRAW
from dpmigrate.library.sites import GRAD

#: functions that ask whether numbers are finite: of a whole batch they are where each rank's are
_FINITE = frozenset({"isnan", "isinf", "isfinite"})
#: methods that take a number out of a tensor and leave it what it is
_TAKES = frozenset({"item", "detach", "cpu", "float", "clone"})
#: how numbers lie of which the whole batch has one that is not finite where a rank has
_WHOLE = (Kind.ROWS, Kind.PARTIAL, Kind.UNIFORM, Kind.ZERO)


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
        #: tests whether numbers of a rank's own part of the batch are finite, where gradients are
        #: recorded: what comes of them is that of one process if all ranks decide them together
        self.finite: dict[ast.AST, None] = {}
        self._of_finite: set[ast.AST] = set()

    def parting(self, condition: Value, node: ast.AST) -> Parting | None:
        """Why ranks may decide differently."""
        found = super().parting(condition, node)
        if found is not None and self.heap.read(GRAD) != const(False):
            if any(_finite(node)) and any(is_loader(self, self.heap.objects[n]) for n in found.sources):
                self._of_finite.add(node)
        if found is not None and found.certain and found.origin.word == DRAW:
            self._by_draws.add(node)
            if self.heap.read(INSIDE) == const(True):  # whichever rows a rank takes are its own
                return replace(found, drawn=True)
        return found

    def _if(self, node: ast.If, frame: Frame, chain: Chain | None = None) -> bool:
        whole = self._asks_of_whole(node.test, frame)
        alive = super()._if(node, frame, chain)  # such a test is joined by itself, and not in a chain
        if whole and any(n in self._of_finite for n in ast.walk(node.test)) and _makes(node):
            self.finite.setdefault(node.test, None)
        for target in _bound(node) if self._beside_models(node.test) else ():
            at = self.location(target, frame)
            self._note(node.test, (self.heap.read(at) if at is not None else None) or ())
        return alive

    def chosen_apart(self, node: ast.IfExp, made: Value) -> Value:
        """What a conditional expression gives where ranks may choose differently."""
        if self._beside_models(node.test):
            self._note(node.test, made)
        return super().chosen_apart(node, made)

    def _asks_of_whole(self, test: ast.expr, frame: Frame) -> bool:
        """Whether a test asks for numbers that are not finite among those of all samples, or in a mean
        or sum over them: not for one sample, nor for those of one turn.
        """
        asked = [call.args[0] if len(call.args) == 1 else call for call in _finite(test)]
        return bool(asked) and all(self._of_whole(a, frame) for a in asked)

    def _of_whole(self, node: ast.expr, frame: Frame) -> bool:
        while isinstance(node, ast.Call) and _word(node) in _TAKES and isinstance(node.func, ast.Attribute):
            node = node.func.value
        at = self.location(node, frame) if isinstance(node, ast.Name | ast.Attribute) else None
        found = data((self.heap.read(at) if at is not None else None) or ())
        return bool(found) and all(d.placement.kind in _WHOLE and not d.turn for d in found)

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


def _makes(node: ast.If) -> bool:
    """Whether a side of a test gives something a value, or gives one back: it does not only tell."""
    inside = (n for side in (node.body, node.orelse) for s in side for n in ast.walk(s))
    return any(isinstance(n, ast.Assign | ast.AugAssign | ast.Return) for n in inside)


def _finite(node: ast.AST) -> Iterator[ast.Call]:
    """The calls that ask whether numbers are finite."""
    yield from (n for n in ast.walk(node) if isinstance(n, ast.Call) and _word(n) in _FINITE)


def _word(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _bound(node: ast.If) -> Iterator[ast.expr]:
    """The variables and attributes that the sides of a test are given."""
    for stmt in (n for side in (node.body, node.orelse) for s in side for n in ast.walk(s)):
        if isinstance(stmt, ast.Assign):
            yield from (t for t in stmt.targets if isinstance(t, ast.Name | ast.Attribute))
        elif isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name | ast.Attribute):
            yield stmt.target
