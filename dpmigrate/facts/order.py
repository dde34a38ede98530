"""What runs before what, as far as the order of statements and the calls in the module tell."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from dpmigrate.facts.names import FunctionNode, Names, position


class Order:
    """The order of one module's statements; ``callers`` are the calls of each function, or the reads of a property, known to grow."""

    def __init__(self, names: Names, callers: Mapping[ast.AST, list[ast.expr]]) -> None:
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
        around = self._beside_calls(node, there)
        if new and not around and not isinstance(here, FunctionNode) and not isinstance(there, FunctionNode):
            return "after" if position(node) > position(stmt) else "before"  # of two files that which is imported runs first
        if around or not isinstance(here, FunctionNode) or here in seen:
            return around
        if attribute and isinstance(self.names.parent.get(here), ast.ClassDef) and isinstance(there, FunctionNode):
            first = self._constructs(there) or self._begins(there)
            if first and not self._constructs(here) and not self._called_from(here, there):
                return "after"
        found = {self.when(c, stmt, attribute=attribute, new=new, seen=seen | {here}) for c in self.callers.get(here, [])}
        return found.pop() if len(found) == 1 else ""

    def _beside_calls(self, node: ast.AST, function: ast.AST) -> str:
        """Whether the node runs before or after all calls of the function, where they stand in the node's own function."""
        calls = self.callers.get(function, [])
        if not calls or any(self.names.function(c) is not self.names.function(node) or self.other_branch(node, self.names.statement(c)) for c in calls):
            return ""
        later = {position(c) < position(node) for c in calls}
        return "" if len(later) > 1 else "after" if later == {True} else "before"

    def _constructs(self, function: FunctionNode, seen: frozenset[ast.AST] = frozenset()) -> bool:
        """Whether the method runs while its object is made: ``__init__``, and what only such methods call (``self.build_model()``)."""
        calls = self.callers.get(function, [])
        callers = [self.names.function(c) for c in calls]
        if function.name == "__init__" or function in seen:
            return function.name == "__init__"
        return bool(calls) and all(isinstance(c, FunctionNode) and self._constructs(c, seen | {function}) for c in callers)

    def _begins(self, function: FunctionNode) -> bool:
        """Whether a method that makes the object always calls this one, which others may call again: ``self.build_model()`` before a last test."""
        calls = [c for c in self.callers.get(function, []) if isinstance(f := self.names.function(c), FunctionNode) and self._constructs(f)]
        return any(self.names.parent[self.names.statement(c)] is self.names.function(c) for c in calls)

    def _called_from(self, function: ast.AST, caller: ast.AST) -> bool:
        return any(self.names.is_inside(c, caller) for c in self.callers.get(function, []))

    def amid(self, node: ast.AST, first: ast.stmt, last: ast.stmt, seen: frozenset[ast.AST] = frozenset()) -> bool:
        """Whether the node runs between two statements of one function, also where it is called from there."""
        here = self.names.function(node)
        if here is self.names.function(first):
            up_to = position(node) < position(last) or self.names.is_inside(node, last)
            return position(first) < position(node) and up_to and not self.names.is_inside(node, first)
        return here not in seen and any(self.amid(c, first, last, seen | {here}) for c in self.callers.get(here, []))

    def apart(self, one: ast.AST, other: ast.AST, depth: int = 4) -> bool:
        """Whether only one of the two runs: they stand in different branches of one ``if``, or all calls that lead to them do."""
        if self.names.function(one) is self.names.function(other):
            stmts = (self.names.statement(one), self.names.statement(other))
            return self.other_branch(stmts[0], stmts[1])
        if not depth:
            return False
        ways = [self.callers.get(self.names.function(n), []) for n in (one, other)]
        up = [(one, c) for c in ways[1]], [(c, other) for c in ways[0]]
        return any(bool(pairs) and all(self.apart(a, b, depth - 1) for a, b in pairs) for pairs in up)

    def other_branch(self, node: ast.AST, stmt: ast.stmt) -> bool:
        """Whether the two stand in different branches of one ``if``."""
        for a in self.names.ancestors(stmt):
            if isinstance(a, ast.If) and self.names.is_inside(node, a):
                side = [any(self.names.is_inside(x, s) for s in a.body) for x in (stmt, node)]
                return side[0] != side[1] and not self.names.is_inside(node, a.test)
        return False
