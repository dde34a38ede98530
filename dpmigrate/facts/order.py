"""What runs before what, as far as the order of statements and the calls in the module tell."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from dpmigrate.facts.names import FunctionNode, Names, position


class Order:
    """The order of one module's statements; ``callers`` are the calls of each function, known to grow."""

    def __init__(self, names: Names, callers: Mapping[ast.AST, list[ast.Call]]) -> None:
        self.names = names
        self.callers = callers

    def when(self, node: ast.AST, stmt: ast.stmt, *, attribute: bool = False, new: bool = False, seen: frozenset[ast.AST] = frozenset()) -> str:
        """Whether ``node`` runs ``before`` or ``after`` the statement, or cannot be told (``''``).

        ``attribute``: the statement sets an attribute of self, so ``__init__`` comes before the other methods. ``new``: the statement always runs.
        """
        here, there = self.names.function(node), self.names.function(stmt)
        if here is there:
            if self.names.is_inside(node, stmt):
                return "before"
            later = position(node) > position(stmt)
            if later and not new and self.other_branch(node, stmt):
                return ""
            return "after" if later else "before"
        if not isinstance(here, FunctionNode) or here in seen:
            return "before" if isinstance(here, ast.Module) and self._runs_before(node, there) else ""
        if attribute and isinstance(self.names.parent.get(here), ast.ClassDef) and isinstance(there, FunctionNode):
            if there.name == "__init__" and here.name != "__init__" and not self._called_from(here, there):
                return "after"
        found = {self.when(c, stmt, attribute=attribute, new=new, seen=seen | {here}) for c in self.callers.get(here, [])}
        return found.pop() if len(found) == 1 else ""

    def _runs_before(self, node: ast.AST, function: ast.AST) -> bool:
        calls = self.callers.get(function, [])
        return bool(calls) and all(self.names.function(c) is self.names.tree and position(c) > position(node) for c in calls)

    def _called_from(self, function: ast.AST, caller: ast.AST) -> bool:
        return any(self.names.is_inside(c, caller) for c in self.callers.get(function, []))

    def other_branch(self, node: ast.AST, stmt: ast.stmt) -> bool:
        """Whether the two stand in different branches of one ``if``."""
        for a in self.names.ancestors(stmt):
            if isinstance(a, ast.If) and self.names.is_inside(node, a):
                side = [any(self.names.is_inside(x, s) for s in a.body) for x in (stmt, node)]
                return side[0] != side[1] and not self.names.is_inside(node, a.test)
        return False
