"""In which kind of loop a node runs: training, evaluation, both or none; by the loop round it, else by the calls of its function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

_EVAL = frozenset({"eval"})
_TRAIN = frozenset({"train"})
_NONE: frozenset[str] = frozenset()
_Kinds = dict[ast.AST, frozenset[str]]


class Regions:
    """The regions of one program. What a function is called for is found once, for all functions together.

    ``quiet``: what a training loop does under ``no_grad`` counts as evaluation, as which it may go through the bare model. Otherwise it is asked whose
    batches a node sees, with or without gradients.
    """

    def __init__(self, roles: Roles, *, quiet: bool = True) -> None:
        self._roles = roles
        self._quiet = quiet
        self._loop_of = {b.node: b for b in roles.batch_loops}
        self._known: dict[ast.AST, str] = {}
        self._by_calls = self._spread()

    def of(self, node: ast.AST) -> str:
        """``train``, ``eval``, ``both`` or ``outside`` of any loop over a loader."""
        if node not in self._known:
            kinds = self._kinds(node, self._by_calls)
            self._known[node] = "both" if len(kinds) > 1 else next(iter(kinds), "outside")
        return self._known[node]

    def _kinds(self, node: ast.AST, by_calls: _Kinds) -> frozenset[str]:
        function = self._roles.names.function(node)
        for a in self._roles.names.ancestors(node, below=function):
            b = self._loop_of.get(a)  # type: ignore[call-overload]
            if b is not None and (b.trains or b.evaluates):
                return _EVAL if self._measures(node) or not b.trains else _EVAL | _TRAIN if b.branches else _TRAIN
        kinds = by_calls.get(function, _NONE)
        return _EVAL if kinds and self._measures(node) else kinds

    def _measures(self, node: ast.AST) -> bool:
        return self._quiet and self._roles.quiet(node)

    def _spread(self) -> _Kinds:
        """The kinds of every function's calls; what a function is called for, so are those that it calls, until nothing is added."""
        callers = {f: calls for f, calls in self._roles.values.ways.items() if isinstance(f, FunctionNode)}
        called: dict[ast.AST, list[FunctionNode]] = {}
        for function, calls in callers.items():
            for c in calls:
                called.setdefault(self._roles.names.function(c), []).append(function)
        found: _Kinds = {}
        todo = list(callers)
        while todo:
            function = todo.pop()
            kinds = _NONE.union(*(self._kinds(c, found) for c in callers[function]))
            if kinds != found.get(function, _NONE):
                found[function] = kinds
                todo += called.get(function, [])
        return found
