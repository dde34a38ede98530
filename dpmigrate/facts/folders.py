"""Loops that read the files of a folder and write them anew: rank 0 runs them alone, since another rank would read what it writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import parted, run_apart

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def folder_loops(script: Script) -> Iterator[ast.For]:
    """The loops; none in which ranks meet, or of which the rest of the program uses what they leave in variables."""
    from dpmigrate.facts.written import writes

    found: dict[ast.For, None] = {}
    for call in writes(script):
        loop = next((a for a in script.names.ancestors(call, below=script.names.function(call)) if isinstance(a, ast.For)), None)
        if loop is not None and position(call) in script.files_in_turn and _alone(script, loop):
            found[loop] = None
    yield from found


def _alone(script: Script, loop: ast.For) -> bool:
    """Whether rank 0 may run the loop alone."""
    roles = script.roles
    if script.meets(loop) or roles.reaches_backward(loop) or roles.region(loop) != "outside" or parted(roles, loop) or run_apart(roles, loop):
        return False
    inside = set(walk(loop))
    if any(isinstance(n, ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Raise | FunctionNode) for n in inside):
        return False
    left = {name for n in inside for name in _left(n)}
    function = script.names.function(loop)
    return not any(
        isinstance(n, ast.Name) and n.id in left and n not in inside and isinstance(n.ctx, ast.Load) and position(n) > position(loop)
        for n in walk(function)
    )


def _left(node: ast.AST) -> Iterator[str]:
    """The names that a node binds, or whose objects it may change: by a statement that calls a method, by an item or an attribute."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    changed = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else node
    if isinstance(changed, ast.Attribute | ast.Subscript) and (changed is not node or not isinstance(changed.ctx, ast.Load)):
        yield from (n.id for n in ast.walk(changed) if isinstance(n, ast.Name))
