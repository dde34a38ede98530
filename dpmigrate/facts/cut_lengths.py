"""What in a loop that picks or cuts its batches by hand goes by how many samples a batch has, or by data that are made anew while it trains.

Each rank has its part of the batch that is cut. What is compared with its length, or divided by the length that the program meant, would be another thing
there: ``if len(x) < batch_size: continue``, ``correct / batch_size``, ``step * batch_size + len(x) >= len(data)``. And what all ranks take rows of has to be
the same on all of them, as what each draws for itself in an epoch (``states = rollout(policy)``) is not.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.asked_sizes import counted
from dpmigrate.facts.names import FunctionNode, Loop
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.picked import Pick

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles


#: what shows a number, and changes nothing by it
_SHOWING = frozenset({"print", "info", "debug", "warning", "write", "add_scalar", "log", "set_postfix", "set_description"})
#: functions of numbers that give one
_OF_NUMBERS = frozenset({"?.float", "?.int", "?.round", "?.str", "?.max", "?.min"})


def by_length(roles: Roles, loop: Loop, bodies: Iterable[ast.AST], sizes: Collection[str]) -> ast.AST | None:
    """The first test by the number of a batch's samples, and the first quotient by the number that the program means."""
    bodies = list(bodies)
    lengths = _lengths(roles, loop, bodies)
    for n in (n for body in bodies for n in walk(body)):
        if isinstance(n, ast.Compare) and any(_is_length(roles, loop, m) or _named(m, lengths) for m in walk(n)):
            if not all(_is_length(roles, loop, side) or _named(side, lengths) for side in (n.left, *n.comparators)):
                return n
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div | ast.FloorDiv | ast.Mod) and any(_word(m) in sizes for m in walk(n.right)):
            if any(_inside(roles, loop, m) for m in walk(n.left)):
                return n
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add | ast.Sub):
            sides = [_is_length(roles, loop, side) or _named(side, lengths) for side in (n.left, n.right)]
            if any(sides) and not all(sides):
                return n  # the place of a sample in the data: start + len(x)
    seen = {_text(n.target) for body in bodies for n in walk(body) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name | ast.Attribute)}
    return next((n for body in bodies for n in walk(body) if _named(n, lengths & seen) and _decides(roles, n)), None)


def _decides(roles: Roles, node: ast.AST) -> bool:
    """Whether a number of samples that were trained on goes into anything but what is shown of it, or added to it."""
    if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return False
    return not roles.quiet(node) and not isinstance(roles.names.statement(node), ast.AugAssign) and not _shown_alone(roles, node, 3)


def _shown_alone(roles: Roles, node: ast.AST, depth: int) -> bool:
    """Whether a number goes into nothing but what is printed or logged: ``print(right / seen)``, also by a variable of its function."""
    stmt = roles.names.statement(node)
    match stmt:
        case ast.Expr(value=ast.Call() as call):
            return not any(True for _ in roles.values.targets(call)) and roles.names.word(call.func) in _SHOWING
        case ast.Assign(targets=[ast.Name() as target], value=ast.BinOp() | ast.Call()) if depth:
            uses = roles.names.uses(roles.names.scope_of[target], target.id)
            reads = [u for u in uses if isinstance(u.ctx, ast.Load)]
            plain = not any(isinstance(n, ast.Call) and roles.names.dotted(n.func) not in _OF_NUMBERS for n in walk(stmt.value))
            return plain and bool(reads) and all(_shown_alone(roles, u, depth - 1) for u in reads)
    return False


def _lengths(roles: Roles, loop: Loop, bodies: list[ast.AST]) -> set[str]:
    """The variables that hold numbers of a batch's samples, also those that are added up of them."""
    found: set[str] = set()
    for _ in range(2):
        for n in (n for body in bodies for n in walk(body)):
            if isinstance(n, ast.Assign | ast.AugAssign) and any(_is_length(roles, loop, m) or _named(m, found) for m in _plain(n.value)):
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                found |= {_text(t) for t in targets if isinstance(t, ast.Name | ast.Attribute)}
    return found


def _plain(value: ast.expr) -> Iterator[ast.AST]:
    """A number, with what it is added up of: ``seen + len(x)``, and not what a call makes of one, nor what is divided by one."""
    yield value
    if isinstance(value, ast.BinOp):
        yield from _plain(value.left)
        if not isinstance(value.op, ast.Div | ast.FloorDiv | ast.Mod):
            yield from _plain(value.right)


def _is_length(roles: Roles, loop: Loop, node: ast.AST) -> bool:
    of = counted(node)
    if of is None and isinstance(node, ast.Call) and len(node.args) == 1 and roles.names.dotted(node.func) == "?.len":
        of = node.args[0]
    return of is not None and any(_inside(roles, loop, m) for m in walk(of))


def _inside(roles: Roles, loop: Loop, node: ast.AST) -> bool:
    """Whether a variable is given its value in the loop, or in a function that it enters."""
    if not isinstance(node, ast.Name):
        return False
    scope = roles.names.owner(roles.names.scope_of[node], node.id)
    bound = scope.bindings.get(node.id, []) if scope is not None else []
    if scope is not None and isinstance(scope.node, FunctionNode) and scope.node is not roles.names.function(loop):
        return True
    return any(roles.names.is_inside(b.target, loop) for b in bound)


def _named(node: ast.AST, names: Collection[str]) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and _text(node) in names


def _text(node: ast.expr) -> str:
    return ast.unparse(node)


def _word(node: ast.AST) -> str:
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word):
            return word
        case ast.Constant(value=value):
            return repr(value)
    return ""


def made_anew(roles: Roles, loop: Loop, around: Iterable[Loop], found: Iterable[Pick]) -> ast.AST | None:
    """What the loop takes rows of by an order, where that is made anew in a loop round it, or changed there."""
    loops = [a for a in around if a is not loop]
    orders = {t.id for p in found if isinstance(p.stmt, ast.Assign) for t in p.stmt.targets if isinstance(t, ast.Name)}
    orders |= {n.id for p in found if p.each is not None for n in walk(p.each) if isinstance(n, ast.Name)}
    rows = {p.rows for p in found}
    for n in (n for s in loop.body for n in walk(s)):
        if not isinstance(n, ast.Subscript) or n in rows:
            continue
        taken = any(m in rows or (isinstance(m, ast.Name) and m.id in orders) for m in walk(n.slice))
        place = n.value
        if not taken or not isinstance(place, ast.Name | ast.Attribute):
            continue
        if any(not isinstance(g, ast.Name | ast.Attribute) for g in _given(roles, place)):
            return n  # train(x[order]): made for this call
        for key, _ in roles.roots(place):
            for w in roles.writes(key):
                if any(roles.names.is_inside(w, a) for a in loops) or _repeated(roles, w, loops):
                    return n
    return None


def _given(roles: Roles, place: ast.Name | ast.Attribute) -> Iterator[ast.expr | None]:
    """What calls give for a variable that is a parameter."""
    bound = list(roles.names.bindings(roles.names.scope_of[place], place.id)) if isinstance(place, ast.Name) else []
    return (g for b in bound for g in roles.handed(b))


def _repeated(roles: Roles, stmt: ast.stmt, loops: list[Loop]) -> bool:
    """Whether a statement stands in a function that the loops enter."""
    function = roles.names.function(stmt)
    return isinstance(function, FunctionNode) and any(function in roles.all_entered(a) for a in loops)
