"""The numbers of a batch by which training goes in later steps, or beside its loss, and what makes of them those of the global batch.

A number that steps keep and move is the same on all ranks where what moves it is: by induction over the steps. So the program is executed once to
see which calls make such numbers, wherever these are kept and whichever way they go, and once with them taken for those of the global batch. What lies there as
a rank's part of a mean or a sum is put together where it is made. The judge holds the result against an execution of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dpmigrate.execution import placements
from dpmigrate.facts.kept import NOT_NUMBERS, kept
from dpmigrate.facts.library import CUTS
from dpmigrate.facts.names import last
from dpmigrate.facts.origins import origins
from dpmigrate.facts.randomness import drawing

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script
    from dpmigrate.judge import Lies

#: what takes a number as it is: of ``x.mean().cpu().item()`` the whole is put together
_TAKES = CUTS | {"item", "detach", "cpu", "numpy", "float", "double", "clone"}
#: the rule that puts them together, which a user may not want
_SAID = "DPM332"
#: what only chooses between numbers, or puts them together
_DESCENDED = (ast.IfExp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.BinOp)


@dataclass(frozen=True, slots=True)
class Part:
    """A number of the batch, and the runtime's function that makes of it that of the global batch."""

    node: ast.expr
    by: str


class Moving:
    """How numbers lie, where all of those by which training goes later on are those of the global batch."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @property
    def parts(self) -> list[Part]:
        """Those that are a rank's part of a mean or a sum; looked for where something is seen to go by numbers of the batch, or a result has not been right."""
        silent = self._script.silences(_SAID)
        return self._parts if not silent and (self._script.shown_steering or self._seen) else []

    @cached_property
    def _seen(self) -> bool:
        course = self._script.course
        return bool(course.tests or course.numbers) or any(k.used for k in kept(self._script))

    @cached_property
    def numbers(self) -> list[ast.expr]:
        """The calls, and quotients of sums, that make such numbers; an evaluation's are left to its totals, since the ranks have other batches of it."""
        made = self._script.executed.steering
        found = [self._taken(n) for n in self._script.names.nodes if isinstance(n, ast.Call | ast.BinOp) and made(n)]
        return [n for n in found if not self._asked_for_finite(n) and self._script.roles.batches_at(n) != "eval"]

    @cached_property
    def _parts(self) -> list[Part]:
        return [Part(n, by) for n in dict.fromkeys(self.numbers) if (by := _by(self._lies(n)))]

    @cached_property
    def _lies(self) -> Callable[[ast.AST], frozenset[Lies]]:
        """How expressions lie where the numbers are those of the global batch which can be made so: what is made of the others is each rank's own."""
        return self._script.executed.settled(self.numbers, lambda lies: _same(lies) or bool(_by(lies)))

    def alike(self, node: ast.expr) -> bool:
        """Whether a value is the same on all ranks then: one that was come to, in all contexts, and no draw."""
        if any(p.node is node for p in self.parts):
            return True
        lies = self._lies(node) if self.parts else frozenset()
        return _same(lies) and not any(self._draws(n) for n, _ in origins(self._script.roles, node, set(self.numbers)))

    def _draws(self, node: ast.AST) -> bool:
        """Whether a step draws here, each rank for itself."""
        return isinstance(node, ast.Call) and drawing(self._script.roles, node) and self._script.modules.in_step(node)

    def within(self, node: ast.expr) -> list[Part] | None:
        """The numbers of the batch in a test; None where one is not known to be a rank's part of a mean or a sum."""
        if self.alike(node):
            return []
        by = _by(self._lies(node))
        inner = [n for n in _operands(node) if not self.alike(n)]
        if by and not (isinstance(node, ast.BinOp) and len(inner) == 1):
            return [Part(node, by)]
        deeper = [self.within(n) for n in inner]
        if inner and None not in deeper:
            return [p for parts in deeper for p in parts or ()]
        return [Part(node, by)] if by else None

    def _asked_for_finite(self, node: ast.expr) -> bool:
        """Whether it is only asked if it is a number: one rank's answer is enough."""
        above = self._script.names.parent[node]
        return isinstance(above, ast.Call) and last(above.func) in NOT_NUMBERS

    def _taken(self, node: ast.expr) -> ast.expr:
        """The number with what only takes it: ``x.mean()`` in ``x.mean().item()``."""
        names = self._script.names
        above = names.parent[node]
        call = names.parent.get(above)
        if isinstance(above, ast.Attribute) and above.attr in _TAKES and isinstance(call, ast.Call) and call.func is above and not call.args:
            return self._taken(call)
        if isinstance(above, ast.Call) and above.args == [node] and names.dotted(above.func) == "?.float":
            return self._taken(above)
        return node


def _same(lies: frozenset[Lies]) -> bool:
    """Whether an expression is the same on all ranks, in all contexts in which it was come to."""
    return bool(lies) and all(one.placement.kind in placements.EQUAL for one in lies)


def _by(lies: frozenset[Lies]) -> str:
    """What puts the parts together that an expression is in all contexts; '' where it is none, or has a gradient."""
    found = {one.placement for one in lies if one.placement.kind not in placements.EQUAL}
    if not all(one.plain for one in lies):
        return ""
    if found == {placements.MEAN}:
        return "mean_all"
    return "sum_all" if found == {placements.SUM} and len(lies) == 1 else ""


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    """What an operator, a choice or a call is made of."""
    if isinstance(node, ast.Call):
        yield from (node.func.value for _ in range(1) if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name))
        yield from node.args
        yield from (k.value for k in node.keywords)
    elif isinstance(node, _DESCENDED):
        yield from (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
