"""Which statements run loops over batches, and which come after all of them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles


def reaches_loop(roles: Roles, stmt: ast.stmt) -> bool:
    """Whether a loop over batches, which trains or evaluates, runs where the statement does."""
    loops = [b.node for b in roles.batch_loops if b.trains or b.evaluates]
    functions = {roles.names.function(x) for x in loops}
    if any(roles.names.is_inside(x, stmt) for x in loops):
        return True
    return not isinstance(stmt, FunctionNode | ast.ClassDef) and bool(functions & roles.all_entered(stmt))


def follows_training(roles: Roles, stmt: ast.stmt) -> bool:
    """Whether a statement comes after the loops over batches of its function, and no loop leads back to them."""
    names = roles.names
    way = [stmt, *(a for a in names.ancestors(stmt) if isinstance(a, ast.stmt))]
    way = way[: next((i for i, a in enumerate(way) if isinstance(a, FunctionNode)), len(way))]
    if any(isinstance(a, ast.For | ast.While) for a in way):
        return False
    blocks = [(names.block(a), a) for a in way]
    return any(reaches_loop(roles, s) for block, a in blocks for s in block[: block.index(a)])
