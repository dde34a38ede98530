"""Which binding of a variable a read of it sees: the reaching definition, where there is exactly one.

The order of statements decides, so that a name used again for another thing means the right one in each place:
``bar = tqdm(train_loader)`` … ``for x in bar:`` … ``bar = tqdm(test_loader)`` … ``for x in bar:``.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dpmigrate.facts.names import FunctionNode, Names
from dpmigrate.facts.scopes import Binding


def reaching(names: Names, node: ast.Name) -> Binding | None:
    """The binding that has run last whenever the name is read here; None where that may be one or another.

    Only variables of the read's own function, or of its module outside of any function, are looked at.
    """
    scope = names.scope_of[node]
    if names.owner(scope, node.id) is not scope:
        return None
    bound = list(names.bindings(scope, node.id))
    here = names.function(node)
    if any(names.function(b.target) is not here for b in bound if b.how != "param"):
        return None  # a function that declares it global, or nonlocal
    return _Search(names, bound).upward(node)


#: what goes elsewhere than to the next statement
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


class _Search:
    def __init__(self, names: Names, bound: Sequence[Binding]) -> None:
        self.names = names
        self.bound = bound

    def upward(self, node: ast.Name) -> Binding | None:
        """From the read's statement through what stands before it, block by block."""
        inside: ast.AST = self.names.statement(node)
        if isinstance(inside, ast.While) and self._in(inside):
            return None  # its test is evaluated again after each turn
        while True:
            parent = self.names.parent[inside]
            before = _before(parent, inside)
            for statement in reversed(before):
                if found := self._in(statement):
                    return found[0] if len(found) == 1 and self._always(statement, found[0]) else None
            if isinstance(parent, FunctionNode | ast.Module):
                given = [b for b in self.bound if b.how == "param"]
                return given[0] if given else None
            headed, known = self._headed(parent, inside)
            if known:
                return headed
            inside = parent

    def _in(self, node: ast.AST) -> list[Binding]:
        return [b for b in self.bound if self.names.is_inside(b.target, node)]

    def _always(self, statement: ast.stmt, b: Binding) -> bool:
        """Whether a statement that has run has bound the name there for certain."""
        if isinstance(statement, ast.With | ast.AsyncWith):
            return any(self.names.is_inside(b.target, item) for item in statement.items)
        return isinstance(statement, ast.Assign | ast.AnnAssign) and b.how == "assign"

    def _headed(self, parent: ast.AST, inside: ast.AST) -> tuple[Binding | None, bool]:
        """What the statement round a block says of its beginning: a binding or none, and whether that is all there is to know."""
        if isinstance(parent, ast.For | ast.AsyncFor):
            targets = self._in(parent.target)
            if inside in parent.body and len(targets) == 1:
                return targets[0], True
            return None, bool(self._in(parent))
        if isinstance(parent, ast.With | ast.AsyncWith):
            items = [b for item in parent.items for b in self._in(item)]
            return (items[0] if len(items) == 1 else None), bool(items)
        if isinstance(parent, ast.If):
            return None, bool(self._in(parent.test))  # what its other branch binds is not seen here
        return None, bool(self._in(parent))  # bound in a turn before, in the body of a ``try``, by a pattern


def may_reach(names: Names, b: Binding, read: ast.Name) -> bool:
    """Whether a read may see a binding: not where another one of the name stands between them on every way."""
    if b.how not in ("assign", "aug", "for", "with") or names.function(b.target) is not names.function(read):
        return True
    inside: ast.AST = names.statement(read)
    while True:
        parent = names.parent[inside]
        for statement in reversed(_before(parent, inside)):
            if names.is_inside(b.target, statement):
                return True
            if _binds(statement, read.id):
                return False
        if isinstance(parent, FunctionNode | ast.Module):
            return False
        if isinstance(parent, ast.If):
            if names.is_inside(b.target, parent.test):
                return True
        elif names.is_inside(b.target, parent):
            return True  # in a turn before, at the head of the loop, in a ``try``
        elif isinstance(parent, ast.For | ast.AsyncFor) and inside in parent.body and _stored(parent.target, read.id):
            return False
        inside = parent


def _binds(statement: ast.stmt, name: str) -> bool:
    """Whether a statement binds a name on each way behind it."""
    if isinstance(statement, ast.Assign):
        return any(_stored(t, name) for t in statement.targets)
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None and _stored(statement.target, name)
    if isinstance(statement, ast.If):
        return all(any(_binds(s, name) or isinstance(s, _LEAVES) for s in block) for block in (statement.body, statement.orelse))
    return isinstance(statement, ast.With | ast.AsyncWith) and any(_binds(s, name) for s in statement.body)


def _stored(target: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(target))


def _before(parent: ast.AST, inside: ast.AST) -> Sequence[ast.stmt]:
    """What stands before a statement in its block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and inside in block:
            return block[: block.index(inside)]
    return ()
