"""Tests that fall out alike on all ranks because samplers give them equal shares: as many batches, of the same sizes.

``control`` proves by names alone what is uniform. What is told here wants to know the loaders: the size of a batch as a loader gives it, and the number of
its batches.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.batch import size_as_loaded, stacked_size
from dpmigrate.facts.control import uniform
from dpmigrate.facts.nodes import children
from dpmigrate.facts.ranks import asks_files

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


class Shares:
    """Questions about tests in training loops."""

    def __init__(self, script: Script) -> None:
        self.roles = script.roles
        self.names = script.names
        self.sizes = script.sizes

    def alike(self, test: ast.expr) -> bool:
        """Whether the test falls out alike on every rank: ``x.size(0) != batch_size``, ``i == self.len_epoch``."""
        if asks_files(self.roles, test):
            return False  # a file may come between two ranks' questions
        if uniform(self.names, test):
            return True
        if isinstance(test, ast.Compare):
            sides = [test.left, *test.comparators]
            if any(size_as_loaded(self.roles, s) for s in sides):
                return all(size_as_loaded(self.roles, s) or self.sizes.means(s) or _least(s) for s in sides)
            return all(map(self._same, sides))
        return isinstance(test, ast.BoolOp | ast.UnaryOp) and all(self.alike(n) for n in children(test) if isinstance(n, ast.expr))

    # ------------------------------------------------------------------ numbers of batches
    def _same(self, node: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> bool:
        """Whether the number is the same on every rank, being made of settings, counters, lengths of loaders and what all samples have the same."""
        if node in seen or uniform(self.names, node) or stacked_size(self.roles, node):
            return True
        seen |= {node}
        if isinstance(node, ast.Call):
            return self.names.dotted(node.func) == "?.len" and len(node.args) == 1 and bool(self.roles.loaders_of(node.args[0]))
        if isinstance(node, ast.BinOp | ast.BoolOp):
            return all(self._same(n, seen) for n in children(node) if isinstance(n, ast.expr))
        if isinstance(node, ast.IfExp):
            return all(self._same(n, seen) for n in (node.test, node.body, node.orelse))
        return isinstance(node, ast.Name | ast.Attribute) and self._given(node, seen)

    def _given(self, node: ast.Name | ast.Attribute, seen: frozenset[ast.AST]) -> bool:
        """Whether all that the variable is given is the same, and every rank gives it."""
        given = self.roles.given(node)
        stores = [s for key in self.roles.values.keys(node) for s in self.roles.writes(key)]
        if isinstance(node, ast.Name):
            known = all(b.how in ("assign", "param") for b in self.names.bindings(self.names.scope_of[node], node.id))
        else:
            others = [a for a in self.names.attributes(node.attr) if isinstance(a.ctx, ast.Store)]
            known = all(isinstance(self.names.statement(a), ast.Assign | ast.AnnAssign) for a in others)
        tests = [a.test for s in stores for a in self.names.ancestors(s) if isinstance(a, ast.If | ast.While)]
        return bool(given) and known and all(self._same(g, seen) for g in given) and all(uniform(self.names, t) for t in tests)


def _least(node: ast.expr) -> bool:
    """0, 1 or 2: what any batch has to have, for statistics over it."""
    return isinstance(node, ast.Constant) and node.value in (0, 1, 2)
