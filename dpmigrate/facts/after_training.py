"""Which statements run loops over batches, and which come after all that trains."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode, position

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles


def reaches_loop(roles: Roles, stmt: ast.stmt, *, training: bool = False) -> bool:
    """Whether a loop over batches runs where the statement does, or stands in the definition that it is; ``training``: one
    that trains, not one that evaluates.
    """
    loops = [b.node for b in roles.batch_loops if b.trains or (b.evaluates and not training)]
    functions = {roles.names.function(x) for x in loops}
    if any(roles.names.is_inside(x, stmt) for x in loops):
        return True
    return not isinstance(stmt, FunctionNode | ast.ClassDef) and bool(functions & roles.all_entered(stmt))


def follows_training(roles: Roles, stmt: ast.stmt) -> bool:
    """Whether a statement comes after all that trains in its function, and no loop leads back there."""
    names = roles.names
    way = [stmt, *(a for a in names.ancestors(stmt) if isinstance(a, ast.stmt))]
    way = way[: next((i for i, a in enumerate(way) if isinstance(a, FunctionNode)), len(way))]
    if any(isinstance(a, ast.For | ast.While) for a in way):
        return False
    beside = [(s, a) for a in way for s in names.block(a) if s is not a and not isinstance(s, FunctionNode | ast.ClassDef)]
    before = [position(s) < position(a) for s, a in beside if reaches_loop(roles, s, training=True)]
    return bool(before) and all(before)
