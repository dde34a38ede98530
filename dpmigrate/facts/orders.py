"""What draws the order of the samples, or of the batches, that a program cuts by itself: all ranks have to draw the same there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.randomness import draws, draws_itself
from dpmigrate.facts.redrawn import Redrawn, can_be_taken_out, feeding, placed

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def drawn_for(script: Script, loop: BatchLoop) -> Iterator[Redrawn]:
    """The statements that draw for the batches of a loop that cuts them by hand, each once, but for those that do so already."""
    if not any(p.cut for p in loop.picked) or not isinstance(loop.node, ast.For):
        return
    told: set[ast.AST] = set()
    for found in _found(script, loop):
        if found.node not in told and not alike(script, found.node):
            told.add(found.node)
            yield found


def _found(script: Script, loop: BatchLoop) -> Iterator[Redrawn]:
    assert isinstance(loop.node, ast.For)
    seen: set[ast.stmt] = {loop.node}
    for n in walk(loop.node.iter):
        if isinstance(n, ast.Call) and draws_itself(script.roles, n):
            yield Redrawn(n, "" if can_be_taken_out(script, n, loop.node) else "it stands in an expression")
    for made in (loop.node.iter, *(p.rows for p in loop.picked)):
        for stmt in feeding(script, made, seen):
            if draws(script.roles, stmt):
                yield placed(script, stmt)
        for function in sorted(_making(script, made), key=position):
            yield from (Redrawn(s) for s in _statements(function.body) if script.names.function(s) is function and _draws_itself(script, s))


def _making(script: Script, made: ast.expr) -> set[FunctionNode]:
    """The functions of the program that run while the loop asks for its next batch."""
    roles = script.roles
    found = {f for f in roles.all_entered(made) if not roles.inside_module(f) and not roles.reaches_backward(f) and f.name != "__init__"}
    for v in roles.values.eval(made):
        method = roles.values.defs.method(v.cls, "__iter__") if v.kind == "object" and v.cls is not None else None
        if method is not None:
            found |= {method, *roles.all_entered(method)}
    return found


def _draws_itself(script: Script, stmt: ast.stmt) -> bool:
    """Whether the statement draws, and not in a function that is looked at by itself."""
    return any(isinstance(n, ast.Call) and draws_itself(script.roles, n) for n in walk(stmt))


def _statements(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The simple statements of a function."""
    for stmt in block:
        inner = [s for name in ("body", "orelse", "finalbody") for s in getattr(stmt, name, [])]
        if inner:
            yield from _statements(inner)
        elif isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return):
            yield stmt


def alike(script: Script, node: ast.AST) -> bool:
    """Whether all ranks draw the same there already."""
    around = (node, *script.names.ancestors(node, below=script.names.function(node)))
    items = (i.context_expr for a in around if isinstance(a, ast.With) for i in a.items)
    return any(isinstance(e, ast.Call) and script.text(e.func) == f"{script.ddp}.same_stream" for e in items)
