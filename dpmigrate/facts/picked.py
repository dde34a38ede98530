"""Training batches whose samples the program picks at random by itself, without a DataLoader: ``ix = torch.randint(…)``, ``x = data[ix]``.

Such a batch is the same on all ranks where all of them draw alike, and each trains on its rows of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpmigrate.facts.drawn_rows import OF_ROWS, SAME_ROWS, gives_batches, is_draw, taken
from dpmigrate.facts.library import MUTATORS
from dpmigrate.facts.names import FunctionNode, Loop, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.values import Key

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

@dataclass(frozen=True, eq=False, slots=True)
class Pick:
    """What makes a training batch: ``rows`` is an expression with a row for each sample, a whole batch or the indices of one.

    ``done``: each rank takes its rows of it already. ``called``: it is a call of a function of the program that makes batches. ``grown`` is where the
    samples that it picks from are changed while training runs. ``cut``: the batches lie one after the other in what the program has, and ``each`` is the
    target of the loop that has them in it, where they are handed out.
    """

    rows: ast.expr
    stmt: ast.stmt
    called: bool
    done: bool
    grown: ast.AST | None = None
    cut: bool = False
    each: ast.expr | None = None


def picks(roles: Roles, loop: Loop, outer: Iterable[Loop]) -> tuple[Pick, ...]:
    """The picks of a loop that trains; also those before it and beside it that give the same variables. ``outer``: it and the loops round it."""
    bodies: list[ast.AST] = [loop, *(f for f in roles.all_entered(loop) if not roles.inside_module(f) and roles.reaches_backward(f))]
    found = [p for body in bodies for p in _in(roles, body)]
    fed = {v for p in found for v in _variables(roles, p.stmt)}
    others = [p for p in _in(roles, roles.names.function(loop)) if fed & _variables(roles, p.stmt)] if fed else []
    changed = _changed(roles, outer) if found else {}
    every = {p.rows: replace(p, grown=_grown(roles, p, changed)) for p in (*found, *others)}
    return tuple(sorted(every.values(), key=lambda p: position(p.rows)))


def _changed(roles: Roles, loops: Iterable[Loop]) -> dict[Key, ast.AST]:
    """The variables and attributes whose items are changed, or to which some are added, while training runs, with where."""
    found: dict[Key, ast.AST] = {}
    bodies = {b for loop in loops for b in (loop, *roles.all_entered(loop)) if not roles.inside_module(b)}
    for n in (n for body in sorted(bodies, key=position) for n in walk(body)):
        place: ast.expr | None = None
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in MUTATORS:
            place = n.func.value
        elif isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
            place = n.value
        while isinstance(place, ast.Subscript):
            place = place.value
        if isinstance(place, ast.Name | ast.Attribute):
            for key, _ in roles.roots(place):
                found.setdefault(key, n)
    return found


def _grown(roles: Roles, pick: Pick, changed: dict[Key, ast.AST]) -> ast.AST | None:
    """Where that is changed while training runs which the samples are taken from."""
    bodies: list[ast.AST] = [roles.names.function(pick.stmt)]
    if pick.called:
        bodies = [f for f in roles.all_entered(pick.rows) if not roles.inside_module(f)]
    places = (place for body in bodies for place in _sources(roles, body))
    return next((changed[key] for place in places for key, _ in roles.roots(place) if key in changed), None)


def _sources(roles: Roles, body: ast.AST) -> Iterator[ast.expr]:
    """What drawn indices choose of, and what is drawn from, in a function."""
    nodes = list(walk(body))
    drawn = _drawn(roles, nodes)
    for n in nodes:
        if isinstance(n, ast.Subscript) and _holds(roles, n.slice, drawn):
            yield n.value
        elif isinstance(n, ast.Call) and is_draw(roles, n):
            yield from (m for a in n.args for m in walk(a) if isinstance(m, ast.Name | ast.Attribute))


def _drawn(roles: Roles, nodes: list[ast.AST]) -> set[str]:
    """The variables that hold drawn indices, or one of them: ``ix``, and ``i`` of ``for i in ix``."""
    found: set[str] = set()
    for _ in range(2):  # indices that are converted stand behind those that are drawn
        for n in nodes:
            targets: list[ast.expr] = []
            if isinstance(n, ast.comprehension | ast.For) and _holds(roles, n.iter, found):
                targets = [n.target]
            elif isinstance(n, ast.Assign) and _holds(roles, n.value, found):
                chosen = any(isinstance(m, ast.Subscript) and not is_draw(roles, m) for m in walk(n.value))
                targets = [] if chosen else n.targets
            found |= {m.id for t in targets for m in walk(t) if isinstance(m, ast.Name)}
    return found


def _holds(roles: Roles, node: ast.AST, drawn: set[str]) -> bool:
    return any(is_draw(roles, m) or (isinstance(m, ast.Name) and m.id in drawn) for m in walk(node))


def makes_batches(roles: Roles, node: ast.AST) -> bool:
    """Whether the node, or a function that it calls, draws the indices of samples."""
    functions = [f for f in roles.all_entered(node) if not roles.inside_module(f)]
    return any(is_draw(roles, n) for body in (node, *functions) for n in walk(body) if isinstance(n, ast.expr))


def _variables(roles: Roles, stmt: ast.stmt) -> set[object]:
    targets = stmt.targets if isinstance(stmt, ast.Assign) else []
    names = (n for t in targets for n in walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {roles.names.meant(n) for n in names}


def _in(roles: Roles, body: ast.AST) -> Iterator[Pick]:
    """The picks that stand in a node itself, and not in functions inside it."""
    function = body if isinstance(body, FunctionNode) else roles.names.function(body)
    for node in walk(body):
        if isinstance(node, ast.Assign) and roles.names.function(node) is function and not roles.quiet(node) and roles.may_reach_loss(*node.targets):
            yield from _of(roles, node)


def _of(roles: Roles, stmt: ast.Assign) -> Iterator[Pick]:
    value, done = taken(roles, stmt.value)
    if isinstance(value, ast.Call) and gives_batches(roles, value):
        yield Pick(value, stmt, True, done)
        return
    for node in walk(stmt.value):
        if isinstance(node, ast.expr) and is_draw(roles, node) and not _within_draw(roles, node, stmt) and _chooses(roles, node, stmt):
            yield Pick(node, stmt, False, _is_taken(roles, node))


def _is_taken(roles: Roles, node: ast.expr) -> bool:
    above = roles.names.parent[node]
    return isinstance(above, ast.Call) and taken(roles, above) == (node, True)


def _within_draw(roles: Roles, node: ast.expr, stmt: ast.stmt) -> bool:
    return any(isinstance(a, ast.expr) and is_draw(roles, a) for a in roles.names.ancestors(node, below=stmt))


def _chooses(roles: Roles, draw: ast.expr, stmt: ast.Assign) -> bool:
    """Whether samples are chosen by the draw: it is an index, a loop goes over it, or what it is assigned to is used so everywhere."""
    inner: ast.AST = draw
    for a in roles.names.ancestors(draw):
        if isinstance(a, ast.Call):
            converted = inner in a.args and (roles.names.dotted(a.func) in OF_ROWS or taken(roles, a)[1])
            if a.func is not inner and not converted:
                return False
        elif isinstance(a, ast.Attribute):
            if a.attr not in SAME_ROWS | {"tolist"}:
                return False
        elif isinstance(a, ast.Tuple):
            if isinstance(a.elts[0], ast.Slice):
                return False
        elif isinstance(a, ast.Subscript):
            return inner is a.slice
        elif isinstance(a, ast.comprehension):
            return inner is a.iter
        else:
            break
        inner = a
    if inner is not stmt.value or len(stmt.targets) != 1 or not isinstance(target := stmt.targets[0], ast.Name):
        return False
    reads = [n for n in roles.names.uses(roles.names.scope_of[target], target.id) if isinstance(n, ast.Name)]
    return any(_indexes(roles, n) for n in reads)


def _indexes(roles: Roles, name: ast.Name) -> bool:
    """``data[ix]``, ``images[ix, rows, columns]``, ``for i in ix``."""
    above = roles.names.parent[name]
    if isinstance(above, ast.Subscript):
        return above.slice is name
    if isinstance(above, ast.Tuple) and isinstance(outer := roles.names.parent[above], ast.Subscript):
        return outer.slice is above and not isinstance(above.elts[0], ast.Slice)
    return isinstance(above, ast.comprehension) and above.iter is name
