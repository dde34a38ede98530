"""Which variables may go into what is differentiated: through assignments, what functions return and what they are given.

A variable is told from others of its name. What stands under ``no_grad`` or in an evaluation brings no gradient and leads nowhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
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
#: what flows into targets: the statement that assigns them, where one does
_Flow = tuple[ast.stmt | None, list[ast.expr], list[ast.expr]]


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
    flows = [(stmt, targets, [v for v in values if not dead(v)]) for stmt, targets, values in _assignments(roles) if not dead(stmt)]
    return _closure(roles, [*(b.func for b in roles.backwards), *_handed_out(roles, dead)], flows, dead, dead)


def training_sources(roles: Roles) -> frozenset[Mark]:
    """What may go into a training step in any way: into its loss, also without a gradient, or into the samples that its loaders give."""
    built = [v.node for b in roles.train_feeds for v in b.loaders if isinstance(v.node, ast.Call)]
    flows: list[_Flow] = [*((None, targets, values) for targets, values in _kept_in(roles)), *_assignments(roles)]
    begin = [*(e for c in (*roles.backwards, *built) for e in (c.func, *c.args, *(k.value for k in c.keywords))), *(b.over for b in roles.train_feeds)]
    return _closure(roles, begin, flows, _without_gradient(roles), _none)


def _closure(roles: Roles, begin: list[ast.expr], flows: Sequence[_Flow], first: _Dead, dead: _Dead) -> frozenset[Mark]:
    """What the expressions are made of, and what that is made of in turn: ``first`` and ``dead`` say what returns of functions do not count.

    What an assignment gives a variable counts only where one of the reads that were met may see it: not that of a name which stands for something else by
    then (``loss = total / n`` behind ``loss.backward()``).
    """
    found: set[Mark] = set()
    reads: dict[Mark, list[ast.Name]] = {}
    left = [(stmt, targets, values, _written(roles, targets)) for stmt, targets, values in flows]
    new = _of(roles, begin, first, reads)
    fresh = True
    while fresh:
        arguments = list(_arguments(roles, new - found, dead))
        found |= new
        into, waiting = arguments, []
        for one in left:
            stmt, targets, values, written = one
            if written & found and _is_seen(roles, stmt, targets, reads):
                into += values
            else:
                waiting.append(one)
        fresh = bool(into)
        left = waiting
        new = _of(roles, into, dead, reads)
    return frozenset(found)


def _is_seen(roles: Roles, stmt: ast.stmt | None, targets: list[ast.expr], reads: dict[Mark, list[ast.Name]]) -> bool:
    """Whether a read that was met may see what the statement assigns."""
    if not isinstance(stmt, ast.Assign) or not all(isinstance(t, ast.Name) for t in targets):
        return True
    for target in targets:
        assert isinstance(target, ast.Name)
        bound = (b for b in roles.names.bindings(roles.names.scope_of[target], target.id) if b.target is target)
        met = [r for m in _mark(roles, target) for r in reads.get(m, ())]
        if any(may_reach(roles.names, b, r) for b in bound for r in met):
            return True
    return False


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


def _of(roles: Roles, nodes: list[ast.expr], dead: _Dead, reads: dict[Mark, list[ast.Name]]) -> set[Mark]:
    """What is read in the expressions, and in what the functions return that they call. What a function calls without returning it does not go
    into its result: a call of ``train()`` that returns the model is not made of the accuracy of its epochs. ``reads`` get the names that are met.
    """
    found: set[Mark] = set()
    seen: set[FunctionNode] = set()
    left = list(nodes)
    while left:
        for n in (n for node in left for n in walk(node)):
            for mark in _mark(roles, n):
                found.add(mark)
                if isinstance(n, ast.Name):
                    reads.setdefault(mark, []).append(n)
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
