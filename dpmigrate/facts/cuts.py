"""Training batches that the program cuts by itself, one after the other, of what all ranks have: ``x[i : i + n]``, ``x[order[i : i + n]]``, ``for x in
batches``.

They are divided where they are cut, or where the loop has them, so that each rank has its rows of the batch that one process has. That the rows are the
samples, and do not meet, is shown by the execution of the result; that nothing else in the step is as long as the whole batch is shown here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.cut_lengths import by_length, made_anew
from dpmigrate.facts.definitions import arguments, through
from dpmigrate.facts.drawn_rows import is_draw, taken
from dpmigrate.facts.handed import Rows, Turn
from dpmigrate.facts.names import FunctionNode, Loop, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.picked import Pick
from dpmigrate.facts.tiles import counts, poly, turn

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

#: calls that may be given the number of samples of the whole batch: nothing of the step gets as long as that
_COUNTING = frozenset(
    {"print", "len", "min", "max", "int", "float", "round", "str", "format", "write", "info", "debug", "update", "append", "add_scalar", "log"}
)  # fmt: skip

#: functions of torch and NumPy, and methods, that make something of as many rows as they are given
_MAKERS = frozenset(
    {
        "zeros", "ones", "empty", "full", "linspace", "logspace", "arange", "eye", "rand", "randn", "randint", "randperm", "normal", "uniform",
        "standard_normal", "random", "permutation", "bernoulli", "tile", "repeat",
    }
)  # fmt: skip
_METHODS = frozenset({"repeat", "expand", "tile", "repeat_interleave", "new_zeros", "new_ones", "new_full", "new_empty", "init_hidden"})


def cuts(roles: Roles, loop: Loop, around: Iterable[Loop]) -> tuple[Pick, ...]:
    """The batches of a training loop that are cut by hand; empty where there are none, or where it is not seen that all of the step is divided."""
    found, rows, at = _found(roles, loop)
    if not found or _in_the_way(roles, loop, around, rows, at, found) is not None:
        return ()
    return tuple(sorted(found, key=lambda p: position(p.rows)))


def in_the_way(roles: Roles, loop: Loop, around: Iterable[Loop]) -> tuple[ast.AST, bool] | None:
    """What of a loop that cuts its batches by hand may have the length of the whole batch, or goes by another part of the data; with it whether it takes
    rows of data that are made anew while training runs.
    """
    found, rows, at = _found(roles, loop)
    node = _in_the_way(roles, loop, around, rows, at, found) if found else None
    return (node, node is made_anew(roles, loop, around, found)) if node is not None else None


def _found(roles: Roles, loop: Loop) -> tuple[list[Pick], Rows, Turn]:
    rows = Rows(roles)
    at = rows.within(loop.body[0])
    found = [*(_handed(roles, loop, rows) if isinstance(loop, ast.For) else ()), *_cut(roles, loop, rows, at)]
    return (found if any(_trains(roles, p) for p in found) else []), rows, at


def cut_beside(roles: Roles, loop: Loop) -> bool:
    """Whether a loop that picks its samples at random has others that lie one after the other."""
    return any(p.each is not None or isinstance(p.rows, ast.Subscript) for p in _found(roles, loop)[0])


def _trains(roles: Roles, pick: Pick) -> bool:
    match pick.stmt:
        case ast.Assign(targets=targets):
            return roles.may_reach_loss(*targets) or roles.reaches_backward(pick.stmt)
        case ast.For(target=target):
            return roles.may_reach_loss(target) or roles.reaches_backward(pick.stmt)
    return roles.reaches_backward(pick.stmt)


def _handed(roles: Roles, loop: ast.For, rows: Rows) -> Iterator[Pick]:
    """What the loop itself has its batches in: ``for x, y in batches``."""
    over, target = loop.iter, loop.target
    while isinstance(over, ast.Call) and not any(True for _ in roles.values.targets(over)) and (inner := through(roles.names, over)) is not None:
        if roles.names.dotted(over.func) == "?.enumerate":
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                return
            target = target.elts[1]
        over = inner
    if rows.steps(over, {}) is None and rows.each(over, rows.within(loop)):
        first = loop.body[0]
        done = isinstance(first, ast.Assign) and taken(roles, first.value)[1]
        yield Pick(over, loop, False, done, cut=True, each=target)


def _cut(roles: Roles, loop: Loop, rows: Rows, at: Turn) -> Iterator[Pick]:
    """The expressions of the loop that are batches of their own: slices, and the outermost calls in which none stands, so that nothing is divided twice."""
    own = roles.names.function(loop)
    nodes = [n for s in loop.body for n in walk(s) if roles.names.function(n) is own and not _inner(roles, n, loop)]
    slices = [n for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and (rows.cut(n, at) or _item(roles, n, rows, at))]
    calls = [n for n in nodes if isinstance(n, ast.Call) and _makes(roles, n, rows, at) and not any(roles.names.is_inside(x, n) for x in slices)]
    outer = [c for c in calls if not any(c is not o and roles.names.is_inside(c, o) for o in calls)]
    for node in (*slices, *outer):
        yield Pick(node, roles.names.statement(node), isinstance(node, ast.Call), _is_taken(roles, node), cut=True)


def _makes(roles: Roles, call: ast.Call, rows: Rows, at: Turn) -> bool:
    """Whether a function of the program makes a batch of what the loop counts, or of what it counts itself, or ``next()`` gives one."""
    if rows.taken(call):
        return True
    functions = [f for f, _ in roles.values.targets(call)]
    return bool(functions) and (any(_counted(roles, a, at) for a in _arguments(call)) or all(map(rows.counting, functions))) and rows.are(call, at)


def _item(roles: Roles, node: ast.Subscript, rows: Rows, at: Turn) -> bool:
    """``batches[i]`` of what holds one batch after the other."""
    return isinstance(node.slice, ast.Name | ast.BinOp | ast.Attribute) and _counted(roles, node.slice, at) and rows.each(node.value, at)


def _counted(roles: Roles, node: ast.expr, at: Turn) -> bool:
    """Whether an expression is made of what the loop counts."""
    known = {**at.known, **dict.fromkeys(at.counters, turn())}
    names = (ast.unparse(n) for n in walk(node) if isinstance(n, ast.Name | ast.Attribute))
    return any((p := known.get(name)) is not None and counts(p) for name in names)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)]


def _is_taken(roles: Roles, node: ast.expr) -> bool:
    above = roles.names.parent[node]
    return isinstance(above, ast.Call) and taken(roles, above) == (node, True)


def _inner(roles: Roles, node: ast.AST, loop: Loop) -> bool:
    """Whether it stands in a loop or comprehension within, which may count something else by the same name."""
    return any(isinstance(a, ast.Lambda | FunctionNode) for a in roles.names.ancestors(node, below=loop))


# ---------------------------------------------------------------------- what else is as long as the whole batch
def _in_the_way(roles: Roles, loop: Loop, around: Iterable[Loop], rows: Rows, at: Turn, found: list[Pick]) -> ast.AST | None:
    """What is not divided in the loop, and may have the length of the whole batch."""
    divided = [p.rows for p in found if p.each is None]
    sliced = [r for r in divided if isinstance(r, ast.Subscript) and _sliced(r) and r not in rows.rests]
    slices = {ast.dump(r.slice.elts[0] if isinstance(r.slice, ast.Tuple) else r.slice): r for r in sliced}
    if len(slices) > 1:
        return list(slices.values())[-1]  # x[i : i + n] with x[i + 1 : i + 1 + n]: the samples are neighbours
    own = roles.names.function(loop)
    making = {f for p in found if p.called or p.each is not None for f in roles.all_entered(p.rows)}
    entered = {f for s in loop.body for f in roles.all_entered(s)} - making
    entered -= _beside(roles, loop, entered)
    for body in (*loop.body, *sorted(entered, key=position)):
        for n in walk(body):
            if isinstance(n, ast.Call) and _is_made_long(roles, n, rows, loop):
                return n
    sizes = {size.rpartition(".")[2] for size in rows.sizes}
    before = _made_before(roles, loop, [*loop.body, *sorted(entered, key=position)], rows, found)
    if before is not None:
        return before
    odd = made_anew(roles, loop, around, found) or by_length(roles, loop, [*loop.body, *sorted(entered, key=position)], sizes)
    return odd or next((n for s in loop.body for n in walk(s) if roles.names.function(n) is own and not _fits(roles, n, at, divided)), None)


def _beside(roles: Roles, loop: Loop, entered: set[FunctionNode]) -> set[FunctionNode]:
    """The functions that only calls enter which train nothing and are given nothing of the loop: evaluations, whose batches are whole ones."""
    bodies: list[ast.AST] = [loop, *(f for f in entered if roles.reaches_backward(f))]
    nodes = [n for b in bodies for n in walk(b)]
    stored = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    apart: set[FunctionNode] = set()
    others = {f for f in entered if roles.reaches_backward(f)}
    for call in (n for n in nodes if isinstance(n, ast.Call) and not roles.reaches_backward(n)):
        functions = roles.all_entered(call)
        given = [n for a in _arguments(call) for n in walk(a) if isinstance(n, ast.Name)]
        within = any(roles.names.is_inside(b.target, body) for n in given for b in roles.names.bindings(roles.names.scope_of[n], n.id) for body in bodies)
        read = any(isinstance(n, ast.Attribute) and n.attr in stored for f in functions for n in walk(f))
        alone = not within and not read and any(roles.calls_model(f) and not roles.inside_module(f) for f in functions)
        (apart if alone else others).update(functions)
    return apart - others


def _sliced(node: ast.Subscript) -> bool:
    return isinstance(node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice, ast.Slice)


def _fits(roles: Roles, node: ast.AST, at: Turn, divided: list[ast.expr]) -> bool:
    if any(node is d or roles.names.is_inside(node, d) for d in divided):
        return True
    if isinstance(node, ast.Subscript):
        plain = not _counted(roles, node.slice, at) or any(roles.names.is_inside(d, node.slice) for d in divided)
        if isinstance(node.ctx, ast.Load):
            return (plain and not any(is_draw(roles, n) for n in walk(node.slice))) or roles.quiet(node) or _shown(roles, node)
        return plain or not isinstance(node.slice, ast.Slice | ast.Tuple)
    if isinstance(node, ast.Call):
        apart = {n for d in divided if roles.names.is_inside(d, node) for n in walk(d)}
        counted = any(isinstance(n, ast.Name | ast.Attribute) and n not in apart and _counted(roles, n, at) for a in _arguments(node) for n in walk(a))
        return not counted or not _cuts_within(roles, node, at, 3)
    return True


def _shown(roles: Roles, node: ast.AST) -> bool:
    """Whether nothing that is trained on is made of it."""
    stmt = roles.names.statement(node)
    match stmt:
        case ast.Assign(targets=targets):
            return not roles.may_reach_loss(*targets) and not roles.reaches_backward(stmt)
        case ast.Expr():
            return not roles.reaches_backward(stmt)
    return False


def _is_made_long(roles: Roles, call: ast.Call, rows: Rows, loop: Loop) -> bool:
    """Whether a call is given the number of samples of the whole batch, so that what it makes may have that length."""
    word = roles.names.word(call.func)
    if word in _COUNTING or roles.quiet(call):
        return False
    if word in ("range", "arange", "trange") and not (roles.names.is_inside(call, loop) or roles.reaches_backward(roles.names.function(call))):
        return False
    sizes = {size.rpartition(".")[2] for size in rows.sizes}
    return any(_word(n) in sizes and not _bound(roles, n) for a in _arguments(call) for n in walk(a) if isinstance(n, ast.Name | ast.Attribute | ast.Constant))


def _made_before(roles: Roles, loop: Loop, bodies: list[ast.AST], rows: Rows, found: list[Pick]) -> ast.AST | None:
    """What is read in the loop and has been made before it with as many rows as a whole batch, which a rank's rows do not fit: by a call that is given the
    batch size, or as a batch that nobody divides (``last = next(batches)``).
    """
    cut = {ast.dump(p.rows) for p in found if p.each is None and isinstance(p.rows, ast.Call) and _trains(roles, p)}
    inside = {n for p in found for n in walk(p.rows)}
    sizes = _sizes(roles, rows, found)
    for n in (n for body in bodies for n in walk(body) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load)):
        if n in inside:
            continue
        given: list[ast.expr] = []
        if isinstance(n, ast.Name):
            bound = [b.target for b in roles.names.bindings(roles.names.scope_of[n], n.id) if not roles.names.is_inside(b.target, loop)]
            given = [s.value for t in bound if isinstance(s := roles.names.statement(t), ast.Assign)]
            if any(ast.dump(v) in cut for v in given):
                return n
        elif isinstance(n, ast.Attribute):
            given = [v for key in roles.values.keys(n) for v in roles.written(key) if not roles.names.is_inside(v, loop)]
        for call in (c for v in given for c in walk(v) if isinstance(c, ast.Call)):
            numbers = [m for a in _arguments(call) for m in walk(a) if isinstance(m, ast.Name | ast.Attribute | ast.Constant) and not _bound(roles, m)]
            if _makes_rows(roles, call) and not roles.quiet(n) and any(_word(m) in sizes and not _last_axis(call, m) for m in numbers):
                return n
    return None


def _sizes(roles: Roles, rows: Rows, found: list[Pick]) -> set[str]:
    """The last words of the batch's size as it is written where the batches are cut, and where that is handed over: ``Feed(x, y, BATCH)``."""
    sizes = {size.rpartition(".")[2] for size in rows.sizes}
    held = [v for size in sizes for a in roles.names.attributes(size) for key in roles.values.keys(a) for v in roles.written(key)]
    making = {f for p in found for f in roles.all_entered(p.rows)}
    parts = {v.cls for p in found for n in walk(p.rows) if isinstance(n, ast.expr) for v in roles.values.eval(n) if v.kind == "object" and v.cls is not None}
    methods = {m for cls in parts for name in ("__iter__", "__next__", "__getitem__") if (m := roles.values.defs.method(cls, name)) is not None}
    own = [n for f in making | methods for n in walk(f) if isinstance(n, ast.Name) and n.id in sizes]
    more = {_word(v) for v in held if isinstance(v, ast.Name | ast.Attribute | ast.Constant)}
    for n in [*own, *(v for v in held if isinstance(v, ast.Name))]:
        for b in roles.names.bindings(roles.names.scope_of[n], n.id):
            more |= {_word(g) for g in roles.handed(b) if isinstance(g, ast.Name | ast.Attribute | ast.Constant)}
    return sizes | more - {""}


def _makes_rows(roles: Roles, call: ast.Call) -> bool:
    """Whether a call makes a tensor or an array of a length that it is given."""
    dotted = roles.names.dotted(call.func)
    word = roles.names.word(call.func)
    return (word in _MAKERS and dotted.startswith(("torch.", "numpy."))) or (word in _METHODS and isinstance(call.func, ast.Attribute))


def _last_axis(call: ast.Call, size: ast.AST) -> bool:
    """Whether a number that is written out is how long the last of several axes is: that of features, whatever number a batch has (``randn(64, 8)``).
    A size that has a name says what it is.
    """
    sizes = [a.elts for a in _arguments(call) if isinstance(a, ast.Tuple | ast.List)] or [call.args]
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    several = isinstance(size, ast.Constant) and called not in _COUNTED
    return several and any(len(axes) > 1 and size is axes[-1] for axes in sizes)


#: what makes numbers between bounds: its arguments are no axes
_COUNTED = ("linspace", "logspace", "arange", "randint", "normal", "uniform", "permutation", "repeat_interleave")


def _word(node: ast.Name | ast.Attribute | ast.Constant) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else repr(node.value)


def _bound(roles: Roles, node: ast.AST) -> bool:
    """Whether it stands in the bounds of a slice."""
    return any(isinstance(a, ast.Slice) for a in roles.names.ancestors(node, below=roles.names.statement(node)))


def _cuts_within(roles: Roles, call: ast.Call, at: Turn, depth: int) -> bool:
    """Whether a function of the program that is given what the loop counts takes something by it: which part of a batch that is, is not seen."""
    for function, bound in roles.values.targets(call):
        given = {name for name, a in arguments(call, function, bound) if _counted(roles, a, at)}
        inside = Turn({name: p for name in given if (p := poly(ast.Name(name, ast.Load()), {name: {("<turn>",): 1}})) is not None})
        for n in walk(function):
            if isinstance(n, ast.Subscript) and _counted(roles, n.slice, inside):
                return True
            if isinstance(n, ast.Call) and any(_counted(roles, a, inside) for a in _arguments(n)) and (depth == 0 or _cuts_within(roles, n, inside, depth - 1)):
                return True
    return False
