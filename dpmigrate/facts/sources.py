"""Which variables may go into what is differentiated: through assignments, what functions return and what they are given.

A variable is told from others of its name. What stands under ``no_grad`` or in an evaluation brings no gradient and leads nowhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.scopes import Variable

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

#: a variable; an attribute, or a name that nothing binds, as it is written
Mark = Variable | str


def marks(roles: Roles, *nodes: ast.AST) -> set[Mark]:
    """The variables and attributes in some expressions."""
    found: set[Mark] = set()
    for n in (n for node in nodes for n in ast.walk(node)):
        if isinstance(n, ast.Attribute):
            found.add(ast.unparse(n))
        elif isinstance(n, ast.Name) and n.id != "self":
            found.add(roles.names.meant(n) or n.id)
    return found


def loss_sources(roles: Roles) -> frozenset[Mark]:
    """What may go into a ``backward()``."""
    left = [(marks(roles, *targets), value, stmt) for stmt, targets, value in _assignments(roles)]
    found: set[Mark] = set()
    new = _of(roles, [*(b.func for b in roles.backwards), *_handed_out(roles)])
    while not new <= found:
        arguments = list(_arguments(roles, new - found))
        found |= new
        into = [value for targets, value, stmt in left if targets & found and not _without_gradient(roles, stmt)]
        left = [one for one in left if not one[0] & found]
        new = _of(roles, [*into, *arguments])
    return frozenset(found)


def _of(roles: Roles, nodes: list[ast.expr]) -> set[Mark]:
    """What is read in the expressions, and in what the functions return that they call."""
    functions = [f for f in roles.all_entered(ast.Module([ast.Expr(n) for n in nodes], [])) if not roles.inside_module(f)]
    return marks(roles, *nodes, *(r.value for f in functions for r in roles.names.returns(f) if r.value is not None and not _without_gradient(roles, r)))


def _assignments(roles: Roles) -> Iterator[tuple[ast.stmt, list[ast.expr], ast.expr]]:
    for stmt in roles.names.nodes:
        if isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign) and stmt.value is not None:
            yield stmt, stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target], stmt.value


def _arguments(roles: Roles, found: set[Mark]) -> Iterator[ast.expr]:
    """What calls give for parameters that go into the loss."""
    for mark in found:
        if isinstance(mark, tuple) and isinstance(function := mark[0].node, FunctionNode):
            calls = (c for c in roles.values.callers.get(function, []) if not _without_gradient(roles, c))
            yield from (e for c in calls if (e := roles.passed(c, function, mark[1])) is not None)


def _handed_out(roles: Roles) -> Iterator[ast.expr]:
    """What functions return that nothing is seen to call: who takes it is not known."""
    for function in roles.names.opened:
        if isinstance(function, FunctionNode) and not roles.values.callers.get(function) and not roles.inside_module(function):
            yield from (r.value for r in roles.names.returns(function) if r.value is not None and not _without_gradient(roles, r))


def _without_gradient(roles: Roles, node: ast.AST) -> bool:
    return roles.quiet(node) or roles.region(node) == "eval"
