"""Models that one branch of a program makes and the others do without: ``if args.gan: critic = Critic()``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode
from dpmigrate.model import is_main_guard

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles


def branches(stmt: ast.If | ast.Try) -> list[list[ast.stmt]]:
    """The blocks of a statement with several ways."""
    if isinstance(stmt, ast.If):
        return [stmt.body, stmt.orelse]
    return [stmt.body, *(h.body for h in stmt.handlers), stmt.orelse, stmt.finalbody]


def without(roles: Roles, node: ast.AST, stmt: ast.stmt) -> bool:
    """Whether the variable of ``node`` has a model, or any value but None, in one branch of the statement alone.

    A wrap behind the statement would be asked for where there is no model.
    """
    if not isinstance(stmt, ast.If) or is_main_guard(stmt) or not isinstance(node, ast.Name | ast.Attribute):
        return False
    names = roles.names
    if isinstance(node, ast.Name):
        bound = [(names.statement(b.target), b.value if b.how == "assign" else b.target) for b in names.bindings(names.scope_of[node], node.id)]
        if any(isinstance(s, FunctionNode | ast.ClassDef) for s, _ in bound):  # a parameter
            return False
    else:
        bound = [(w, getattr(w, "value", None)) for key in roles.values.keys(node) for w in roles.writes(key)]
    made = [s for s, value in bound if not (isinstance(value, ast.Constant) and value.value is None)]
    return any(made and all(any(names.is_inside(s, b) for b in branch) for s in made) for branch in branches(stmt))
