"""What a test of a loop's turn will say, read at an earlier place of that turn."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dpmigrate.facts.names import Loop, position
from dpmigrate.facts.roles import Roles

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def early(script: Script, loop: Loop, test: ast.expr, forward: tuple[int, int], asked: tuple[int, int]) -> ast.expr | None:
    """The test as it reads before the forward pass at ``forward``, if it can be known there; it is asked at ``asked``."""

    def read(node: ast.Name | ast.Attribute, inlined: bool) -> ast.expr | None:
        between = [s for s in stores(script.roles, loop, node) if forward <= position(s) < asked]
        if _elsewhere(script, loop, node) or (between and inlined) or len(between) > 1:
            return None
        if not between:
            return node
        stmt = between[0]
        if stmt not in loop.body:
            return None
        if isinstance(stmt, ast.AugAssign) and isinstance(stmt.op, ast.Add) and isinstance(stmt.value, ast.Constant):
            return ast.BinOp(node, ast.Add(), stmt.value)
        return walk(stmt.value, True) if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and not isinstance(stmt.targets[0], ast.Tuple) else None

    def walk(node: ast.expr, inlined: bool) -> ast.expr | None:
        if isinstance(node, ast.Name | ast.Attribute):
            return read(node, inlined)
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.BinOp):
            left, right = walk(node.left, inlined), walk(node.right, inlined)
            return None if left is None or right is None else node if (left, right) == (node.left, node.right) else ast.BinOp(left, node.op, right)
        if isinstance(node, ast.UnaryOp):
            operand = walk(node.operand, inlined)
            return None if operand is None else node if operand is node.operand else ast.UnaryOp(node.op, operand)
        if isinstance(node, ast.BoolOp):
            values = [walk(v, inlined) for v in node.values]
            known = [v for v in values if v is not None]
            return None if len(known) < len(values) else node if known == node.values else ast.BoolOp(node.op, known)
        if isinstance(node, ast.Compare):
            sides = [walk(v, inlined) for v in (node.left, *node.comparators)]
            found = [v for v in sides if v is not None]
            if len(found) < len(sides):
                return None
            return node if found == [node.left, *node.comparators] else ast.Compare(found[0], node.ops, found[1:])
        if isinstance(node, ast.Call) and script.names.dotted(node.func) == "?.len" and len(node.args) == 1 and plain(script, loop, node.args[0]):
            return node
        return None

    return walk(test, False)


def _elsewhere(script: Script, loop: Loop, node: ast.Name | ast.Attribute) -> bool:
    """Whether a function that the loop calls may give the variable another value."""
    functions = script.roles.all_entered(loop)
    if isinstance(node, ast.Name):
        return any(script.names.function(b.target) in functions for b in script.names.bindings(script.names.scope_of[node], node.id))
    return any(isinstance(s.ctx, ast.Store) and script.names.function(s) in functions for s in script.names.attributes(node.attr))


def plain(script: Script, loop: Loop, node: ast.expr) -> bool:
    """An expression that means the same throughout the loop."""
    named = [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)]
    return not any(isinstance(n, ast.Call) for n in ast.walk(node)) and not any(stores(script.roles, loop, n) for n in named)


def stores(roles: Roles, loop: Loop, node: ast.Name | ast.Attribute) -> list[ast.stmt]:
    """The statements in the loop that give the variable a value."""
    wanted = ast.unparse(node)
    return [roles.names.statement(n) for s in loop.body for n in ast.walk(s) if type(n) is type(node) and _stored(n) and ast.unparse(n) == wanted]


def _stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)
