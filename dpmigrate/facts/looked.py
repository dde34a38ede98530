"""Which batches that ``next()`` takes train nothing: they are looked at, or a model is measured on them.

Asked while the loops are found, so that nothing here may ask in which loop a node stands.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.carried import later
from dpmigrate.facts.library import GROWS
from dpmigrate.facts.names import FunctionNode, Loop
from dpmigrate.facts.nodes import walk

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

#: methods that put what they are given into their object
_GROWS = GROWS | {"copy_", "register_buffer"}


def looked_at(roles: Roles, call: ast.Call) -> bool:
    """Whether the batch feeds no training step: no gradient is kept, its function keeps it and goes nowhere backward, the statements round it do, a model is
    measured on it, or the statements below put one into evaluation.
    """
    function = roles.names.function(call)
    if roles.quiet(call) or (isinstance(function, FunctionNode) and not roles.reaches_backward(function) and not _lets_out(roles, function)):
        return True
    if _stays(roles, call) or any(measured(roles, call, a) for a in (function, *_around(roles, call)) if isinstance(a, Loop | FunctionNode)):
        return True
    stmt = roles.names.statement(call)
    block = roles.names.block(stmt)
    below = [n for s in block[block.index(stmt) + 1 :] for n in walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return any(c.func.attr == "eval" and not c.args for c in below if isinstance(c.func, ast.Attribute)) and not any(c in roles.backwards for c in below)


def measured(roles: Roles, call: ast.Call, node: Loop | FunctionNode) -> bool:
    """Whether a loop or a function calls a model on the batches that it takes and goes nowhere backward, and nothing that it leaves behind goes into a loss."""
    if roles.reaches_backward(node) or not _calls_model(roles, node):
        return False
    function = roles.names.function(call)
    if isinstance(function, FunctionNode) and not roles.reaches_backward(function):
        return not roles.may_reach_loss(*_stored(function), *_returned(roles, function))
    outer = _around(roles, call)[-1]
    read = {n.id for n in later(roles.names, outer) if not roles.names.is_inside(n, outer)}
    return not roles.may_reach_loss(*(n for n in _stored(outer) if not isinstance(n, ast.Name) or n.id in read or _elsewhere(roles, outer, n.id)))


def _calls_model(roles: Roles, node: ast.AST) -> bool:
    return roles.calls_model(node) or any(roles.calls_model(f) for f in roles.all_entered(node) if not roles.inside_module(f))


def _around(roles: Roles, call: ast.Call) -> list[ast.stmt]:
    """The statements round the call that go nowhere backward, innermost first, within its function."""
    around = [a for a in (call, *roles.names.ancestors(call)) if isinstance(a, ast.stmt)]
    return list(itertools.takewhile(lambda a: not isinstance(a, FunctionNode) and not roles.reaches_backward(a), around))


def _stored(node: ast.AST) -> Iterator[ast.AST]:
    """What is stored in the node: variables, attributes, items, and objects that are given something."""
    for n in walk(node):
        if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store):
            yield n
        elif isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
            yield n.value
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _GROWS:
            yield n.func.value


def _returned(roles: Roles, function: FunctionNode) -> Iterator[ast.Name]:
    """The variables in what a function returns, but for models and what is called."""
    for n in (n for r in roles.names.returns(function) if r.value is not None for n in walk(r.value)):
        parent = roles.names.parent[n]
        if isinstance(n, ast.Name) and not (isinstance(parent, ast.Call) and parent.func is n) and not roles.model_vals(n):
            yield n


def _stays(roles: Roles, call: ast.Call) -> bool:
    """Whether nothing that comes of the batch leaves the statement round it that goes nowhere backward: ``if step % 100 == 0:`` and pictures of test data."""
    around = [a for a in (call, *roles.names.ancestors(call)) if isinstance(a, ast.stmt)]
    kept = _around(roles, call)
    if not kept or len(kept) == len(around) or isinstance(around[len(kept)], FunctionNode) or not isinstance(kept[0], ast.Assign | ast.Expr):
        return False
    outer = kept[-1]
    own = {n.id for n in walk(outer) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    read = [n for n in later(roles.names, outer) if not roles.names.is_inside(n, outer)]
    scope = roles.names.scope_of[outer]
    if any(n.id in own for n in read) or any(_elsewhere(roles, outer, name) for name in own) or own & scope.outer:
        return False
    entered = [f for f in roles.all_entered(outer) if not roles.inside_module(f)]
    return not any(_stores_outside(n, own) for n in walk(outer)) and not any(_stores_outside(n, frozenset()) for f in entered for n in walk(f))


def _elsewhere(roles: Roles, outer: ast.stmt, name: str) -> bool:
    """Whether another function may read the variable."""
    return any(roles.names.function(n) is not roles.names.function(outer) for n in roles.names.uses(roles.names.scope_of[outer], name))


def _stores_outside(node: ast.AST, own: Collection[str]) -> bool:
    """Whether the node stores something in an object, or in a variable, that is not one of these."""
    if isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom):
        return True
    grows = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS
    place: ast.AST = node.func if isinstance(node, ast.Call) and grows else node
    if not grows and not (isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)):
        return False
    while isinstance(place, ast.Attribute | ast.Subscript):
        place = place.value
    return not (isinstance(place, ast.Name) and place.id in own)


def _lets_out(roles: Roles, function: FunctionNode) -> bool:
    """Whether anything that the function makes is seen outside: what it gives back, or stores in an object or a variable that is not its own."""
    own = [n for n in walk(function) if n is not function and roles.names.function(n) is function]
    given = any(isinstance(n, ast.Yield | ast.YieldFrom) or (isinstance(n, ast.Return) and n.value is not None) for n in own)
    if given:
        return True
    return any((isinstance(n, ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Store)) or isinstance(n, ast.Global | ast.Nonlocal) for n in own)
