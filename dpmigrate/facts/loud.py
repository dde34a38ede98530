"""Evaluations that record gradients although nobody asks for them: in these the runtime's functions of losses exchange numbers, as in a step."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from dpmigrate.facts.nodes import walk
from dpmigrate.facts.roles import Roles

#: what asks for a gradient, or whether there is one
_GRADIENTS = frozenset({"backward", "grad", "requires_grad", "requires_grad_", "enable_grad", "set_grad_enabled", "grad_fn", "retain_grad", "hessian"})


def loud(roles: Roles, losses: Collection[ast.AST]) -> Iterator[ast.stmt]:
    """The statements of the loops that evaluate with gradients and come to one of ``losses``, as far as nothing in them takes a gradient."""
    seen: set[ast.AST] = set()
    for loop in roles.batch_loops:
        statement = roles.names.statement(loop.node)
        if loop.trains or statement in seen or roles.quiet_always(loop.node) or not isinstance(statement, ast.stmt):
            continue
        seen.add(statement)
        entered = roles.all_entered(loop.node)
        inside = [n for n in losses if roles.names.is_inside(n, loop.node) or roles.names.function(n) in entered]
        if inside and not any(_gradient(n) for part in (loop.node, *entered) for n in walk(part)):
            yield statement


def _gradient(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _GRADIENTS
