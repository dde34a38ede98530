"""Which variables may go into what is differentiated: through assignments, what functions return and what they are given.

A variable is told from others of its name. What stands under ``no_grad`` or in an evaluation brings no gradient and leads nowhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.library import GROWS
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.reaching import may_reach, reaching
from dpmigrate.facts.scopes import Variable

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

#: a variable; an attribute, or a name that nothing binds, as it is written
Mark = Variable | str
#: methods that put something into their object
_PUTS = GROWS | {"copy_", "fill_"}
#: whether what a statement makes brings no gradient
_Dead = Callable[[ast.AST], bool]


def marks(roles: Roles, *nodes: ast.AST) -> set[Mark]:
    """The variables and attributes in some expressions."""
    return {m for node in nodes for n in walk(node) for m in _mark(roles, n)}


def _written(roles: Roles, targets: Iterable[ast.expr]) -> set[Mark]:
    """What is written there: ``history`` of ``history[epoch]``, whose index only says where."""
    indices = (n.slice for t in targets for n in walk(t) if isinstance(n, ast.Subscript))
    inside = {id(n) for index in indices for n in walk(index)}
    return {m for t in targets for n in walk(t) if id(n) not in inside for m in _mark(roles, n)}


def _mark(roles: Roles, node: ast.AST) -> Iterator[Mark]:
    if isinstance(node, ast.Attribute):
        yield ast.unparse(node)
    elif isinstance(node, ast.Name) and node.id != "self":
        yield _of_loop(roles, node) or roles.names.meant(node) or node.id


def _of_loop(roles: Roles, node: ast.Name) -> str | None:
    """A variable of a ``for`` that is nothing behind it, and whose name may mean another thing elsewhere: ``for name, loss in losses.items():``."""
    names = roles.names
    for loop in names.ancestors(node, below=names.function(node)):
        if isinstance(loop, ast.For) and any(t.id == node.id for t in walk(loop.target) if isinstance(t, ast.Name)):
            head = next((b for b in names.bindings(names.scope_of[node], node.id) if b.how == "for" and names.is_inside(b.target, loop.target)), None)
            if head is None or (node is not head.target and reaching(names, node) is not head):
                return None
            reads = (r for r in names.uses(names.scope_of[node], node.id) if isinstance(r, ast.Name) and isinstance(r.ctx, ast.Load))
            return None if any(may_reach(names, head, r) for r in reads if not names.is_inside(r, loop)) else f"{node.id} of {loop.lineno}:{loop.col_offset}"
    return None


def loss_sources(roles: Roles, *, regions: bool = True) -> frozenset[Mark]:
    """What may go into a ``backward()``; without ``regions`` also what only evaluations make."""
    dead = _without_gradient(roles, regions)
    left = [(_written(roles, targets), values, stmt) for stmt, targets, values in _assignments(roles)]
    found: set[Mark] = set()
    new = _of(roles, [*(b.func for b in roles.backwards), *_handed_out(roles, dead)], dead)
    while not new <= found:
        arguments = list(_arguments(roles, new - found, dead))
        found |= new
        into = [value for targets, values, stmt in left if targets & found and not dead(stmt) for value in values if not dead(value)]
        left = [one for one in left if not one[0] & found]
        new = _of(roles, [*into, *arguments], dead)
    return frozenset(found)


def training_sources(roles: Roles) -> frozenset[Mark]:
    """What may go into a training step in any way: into its loss, also without a gradient, or into the samples that its loaders give."""
    built = [v.node for b in roles.train_feeds for v in b.loaders if isinstance(v.node, ast.Call)]
    flows = [(_written(roles, targets), values) for targets, values in (*_kept_in(roles), *((t, v) for _, t, v in _assignments(roles)))]
    found: set[Mark] = set()
    begin = [*(e for c in (*roles.backwards, *built) for e in (c.func, *c.args, *(k.value for k in c.keywords))), *(b.over for b in roles.train_feeds)]
    new = _of(roles, begin, _without_gradient(roles))
    while not new <= found:
        arguments = list(_arguments(roles, new - found, _none))
        found |= new
        into = [v for targets, values in flows if targets & found for v in values]
        flows = [one for one in flows if not one[0] & found]
        new = _of(roles, [*into, *arguments], _none)
    return frozenset(found)


def _kept_in(roles: Roles) -> Iterator[tuple[list[ast.expr], list[ast.expr]]]:
    """What loops take, what methods put into their object, and the tests by which something is put there or assigned."""
    for n in roles.names.nodes:
        if isinstance(n, ast.For | ast.AsyncFor | ast.comprehension):
            yield [n.target], [n.iter]
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and _puts(n.func.attr):
            yield [n.func.value], [*n.args, *(k.value for k in n.keywords), *_tests(roles, n)]
        elif isinstance(n, ast.Assign | ast.AugAssign):
            yield n.targets if isinstance(n, ast.Assign) else [n.target], list(_tests(roles, n))


def _puts(method: str) -> bool:
    """Whether a method of this name puts what it is given into its object; a bar that a loop goes through only shows it."""
    return method in _PUTS or (method.startswith("set_") and not method.startswith(("set_description", "set_postfix")))


def _tests(roles: Roles, node: ast.AST) -> Iterator[ast.expr]:
    for a in roles.names.ancestors(node):
        if isinstance(a, FunctionNode):
            return
        if isinstance(a, ast.If):
            yield a.test


def _without_gradient(roles: Roles, regions: bool = True) -> _Dead:
    return lambda node: roles.quiet(node) or (regions and roles.region(node) == "eval")


def _none(node: ast.AST) -> bool:
    return False


def _of(roles: Roles, nodes: list[ast.expr], dead: _Dead) -> set[Mark]:
    """What is read in the expressions, and in what the functions return that they call. What a function calls without returning it does not go
    into its result: a call of ``train()`` that returns the model is not made of the accuracy of its epochs.
    """
    found: set[Mark] = set()
    seen: set[FunctionNode] = set()
    left = list(nodes)
    while left:
        found |= marks(roles, *left)
        called = roles.entered(ast.Module([ast.Expr(n) for n in left], []))
        new = {f for f in called if not roles.inside_module(f)} - seen
        seen |= new
        left = [r.value for f in new for r in roles.names.returns(f) if r.value is not None and not dead(r)]
    return found


def _assignments(roles: Roles) -> Iterator[tuple[ast.stmt, list[ast.expr], list[ast.expr]]]:
    """The statements that assign something, with their targets and what these are made of; parts of a tuple each by itself."""
    for stmt in roles.names.nodes:
        if isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign) and stmt.value is not None:
            targets: list[ast.expr] = [*stmt.targets] if isinstance(stmt, ast.Assign) else [stmt.target]
            parts = _parts(roles, targets[0], stmt.value) if len(targets) == 1 else None
            if parts is None:
                yield stmt, targets, [stmt.value]
            else:
                yield from ((stmt, [target], values) for target, values in parts)


def _parts(roles: Roles, target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, list[ast.expr]]] | None:
    """What each variable of ``model, loss = train(model)`` is made of, where it is seen what the function returns in that place; None for one value."""
    if not isinstance(target, ast.Tuple):
        return None
    given: list[ast.expr | None] = [value]
    if isinstance(value, ast.Call):
        called = roles.values.eval(value.func)
        functions = [v.node for v in called if v.kind == "func" and isinstance(v.node, FunctionNode)]
        if len(functions) != len(called) or any(roles.inside_module(f) or _hands_on(roles, f) for f in functions):
            return None
        given = [r.value for f in functions for r in roles.names.returns(f)]
    tuples = [g for g in given if isinstance(g, ast.Tuple) and len(g.elts) == len(target.elts)]
    starred = any(isinstance(e, ast.Starred) for t in (target, *tuples) for e in t.elts)
    if not tuples or len(tuples) != len(given) or starred:
        return None
    return [(t, [one.elts[i] for one in tuples]) for i, t in enumerate(target.elts)]


def _hands_on(roles: Roles, function: FunctionNode) -> bool:
    """Whether it is a generator, or something is put in its place by a decorator."""
    yields = any(isinstance(n, ast.Yield | ast.YieldFrom) and roles.names.function(n) is function for n in walk(function))
    return yields or bool(function.decorator_list) or isinstance(function, ast.AsyncFunctionDef)


def _arguments(roles: Roles, found: set[Mark], dead: _Dead) -> Iterator[ast.expr]:
    """What calls give for parameters that go into the loss."""
    for mark in found:
        if isinstance(mark, tuple) and isinstance(function := mark[0].node, FunctionNode):
            calls = (c for c in roles.values.callers.get(function, []) if not dead(c))
            yield from (e for c in calls if (e := roles.passed(c, function, mark[1])) is not None)


def _handed_out(roles: Roles, dead: _Dead) -> Iterator[ast.expr]:
    """What functions return that nothing is seen to call: who takes it is not known."""
    for function in roles.names.opened:
        if isinstance(function, FunctionNode) and not roles.values.callers.get(function) and not roles.inside_module(function):
            yield from (r.value for r in roles.names.returns(function) if r.value is not None and not dead(r))
