"""What draws the order of the samples, or of the batches, that a program cuts by itself: all ranks have to draw the same there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.objects import Val
from dpmigrate.facts.origins import origins
from dpmigrate.facts.randomness import draws, draws_itself
from dpmigrate.facts.redrawn import Redrawn, between, can_be_taken_out, feeding, placed

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def drawn_for(script: Script, loop: BatchLoop) -> Iterator[Redrawn]:
    """The statements that draw for the batches of a loop that cuts them by hand, each once, but for those that do so already."""
    if not any(p.cut for p in loop.picked):
        return
    told: set[ast.AST] = set()
    for found in _found(script, loop):
        if found.node not in told and not alike(script, found.node):
            told.add(found.node)
            yield found


def _found(script: Script, loop: BatchLoop) -> Iterator[Redrawn]:
    seen: set[ast.stmt] = {loop.node}
    over = [loop.node.iter] if isinstance(loop.node, ast.For) else []
    for n in (n for made in over for n in walk(made)):
        if isinstance(n, ast.Call) and draws_itself(script.roles, n):
            yield Redrawn(n, "" if can_be_taken_out(script, n, loop.node) else "it stands in an expression")
    made = [*over, *(p.rows for p in loop.picked)]
    for expr in made:
        for stmt in feeding(script, expr, seen):
            if draws(script.roles, stmt):
                yield placed(script, stmt)
        for function in sorted(_making(script, expr), key=position):
            yield from (Redrawn(s) for s in _statements(function.body) if script.names.function(s) is function and _draws_itself(script, s))
            yield from _in_heads(script, function)
            yield from _in_tests(script, function)
    for stmt in _asked(script, made):
        if stmt not in seen and not script.meets(stmt):
            seen.add(stmt)
            yield placed(script, stmt)


def _in_heads(script: Script, function: FunctionNode) -> Iterator[Redrawn]:
    """The draws in the heads of a function's loops: ``for i in np.random.permutation(n)``."""
    for loop in (n for n in walk(function) if isinstance(n, ast.For) and script.names.function(n) is function):
        for call in (n for n in walk(loop.iter) if isinstance(n, ast.Call) and draws_itself(script.roles, n)):
            yield Redrawn(call, "" if can_be_taken_out(script, call, loop) else "it stands in an expression")


def _in_tests(script: Script, function: FunctionNode) -> Iterator[Redrawn]:
    """The draws in what a function asks: ``if random.random() < p``, ``while``, ``match``, ``assert``, and in what it raises."""
    for stmt in (n for n in walk(function) if script.names.function(n) is function):
        match stmt:
            case ast.If(test=asked) | ast.While(test=asked) | ast.Assert(test=asked) | ast.Match(subject=asked) | ast.match_case(guard=ast.expr() as asked):
                parts: list[ast.AST] = [asked]
            case ast.With(items=items) | ast.AsyncWith(items=items):
                parts = [i.context_expr for i in items]
            case ast.Raise():
                parts = [stmt]
            case _:
                continue
        for call in (n for part in parts for n in walk(part)):
            if isinstance(call, ast.Call) and draws_itself(script.roles, call):
                yield Redrawn(call, "it stands in what a statement asks")


def _asked(script: Script, made: list[ast.expr]) -> Iterator[ast.stmt]:
    """The statements between the epochs by which an object that hands out the batches draws their order anew, or is given another one: ``batches.shuffle()``,
    ``random.shuffle(batches.order)``, ``batches.order = torch.randperm(n)``; also by another name for what an attribute holds, and by what shares its memory:
    ``order = batches.order.numpy()``, then ``np.random.shuffle(order)``.
    """
    parts = (n for expr in made for n in walk(expr) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript | ast.Call))
    objects = {v for n in parts for v in script.values.eval(n) if v.kind == "object"}
    for call in script.roles.calls if objects else ():
        if isinstance(call.func, ast.Attribute) and objects & script.values.eval(call.func.value) and between(script, call) and draws(script.roles, call):
            yield script.names.statement(call)
    for call in script.roles.calls if objects else ():
        stmt = script.names.statement(call)
        if not isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr) or not draws_itself(script.roles, call) or not between(script, call):
            continue
        places = [stmt.target] if isinstance(stmt, ast.AugAssign | ast.AnnAssign) else stmt.targets if isinstance(stmt, ast.Assign) else []
        around = [stmt.value] if isinstance(stmt, ast.Expr) else [call]  # order.copy_(torch.randperm(n))
        if _held_by(script, objects, [*places, *around]):
            yield stmt


def _held_by(script: Script, objects: set[Val], places: list[ast.expr]) -> bool:
    """Whether what some expressions mean is made of an attribute of some objects, through variables, or stands in one."""
    inner = (n for place in places for part in walk(place) for n, _ in origins(script.roles, part))
    return any(isinstance(n, ast.Attribute) and objects & script.values.eval(n.value) for n in inner)


def _making(script: Script, made: ast.expr) -> set[FunctionNode]:
    """The functions of the program that run while the loop asks for its next batch."""
    roles = script.roles
    found = {f for f in roles.all_entered(made) if not roles.inside_module(f) and not roles.reaches_backward(f) and f.name != "__init__"}
    parts = {v for n in walk(made) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript | ast.Call) for v in roles.values.eval(n)}
    for n in (n for n in walk(made) if isinstance(n, ast.Name | ast.Attribute)):  # next(batches)
        given = [v for key in roles.values.keys(n) for v in roles.written(key) if isinstance(v, ast.Call)]
        found |= {f for v in given for f in roles.all_entered(v) if any(isinstance(y, ast.Yield | ast.YieldFrom) for y in walk(f))}
    for cls in {v.cls for v in parts if v.kind == "object" and v.cls is not None}:
        for name in ("__iter__", "__next__", "__getitem__"):
            if (method := roles.values.defs.method(cls, name)) is not None:
                found |= {method, *roles.all_entered(method)}
    return {f for f in found if not roles.inside_module(f)}


def _draws_itself(script: Script, stmt: ast.stmt) -> bool:
    """Whether the statement draws, and not in a function that is looked at by itself."""
    return any(isinstance(n, ast.Call) and draws_itself(script.roles, n) for n in walk(stmt))


def _statements(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The simple statements of a function."""
    for stmt in block:
        inner = [s for name in ("body", "orelse", "finalbody") for s in getattr(stmt, name, [])]
        inner += [s for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())) for s in part.body]
        if inner:
            yield from _statements(inner)
        elif isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return):
            yield stmt


def alike(script: Script, node: ast.AST) -> bool:
    """Whether all ranks draw the same there already."""
    around = (node, *script.names.ancestors(node, below=script.names.function(node)))
    items = (i.context_expr for a in around if isinstance(a, ast.With) for i in a.items)
    return any(isinstance(e, ast.Call) and script.text(e.func) == f"{script.ddp}.same_stream" for e in items)
