"""Which loaders a loop trains on when one loop serves training and evaluation.

``run_epoch(model, loader, optimizer=None)`` and ``for phase in ("train", "val")`` decide by an argument or a loop variable. Where its value
is known at every call or turn, so is the loader that meets ``backward()``; where it is not, the answer is None, and the execution on paper is asked
(``executed``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpmigrate.facts.definitions import arguments
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.reaching import reaching
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.values import NONE, Vals

Env = dict[str, ast.expr]


@dataclass(frozen=True, eq=False, slots=True)
class Phases:
    """How a loop comes to train: over these loaders, in these calls of its function (each with its arguments), with ``source`` as it reads then."""

    loaders: Vals
    calls: Mapping[ast.Call, Env]
    source: ast.expr


def phases(roles: Roles, loop: BatchLoop) -> Phases | None:
    """The training side of a loop; None where one loop serves both sides and they cannot be told apart."""
    if not loop.branches:
        function = roles.names.function(loop.node)
        return Phases(loop.loaders, {c: {} for c in roles.values.callers.get(function, [])}, loop.source)
    tests = list(_tests(roles, loop))
    loaders, source = NONE, None
    calls: dict[ast.Call, Env] = {}
    for env, call in _environments(roles, loop.node):
        truth = [_truth(roles, t, env, 4) for t in tests]
        if any(t is None for t in truth):
            return None
        if all(truth):
            found = _loaders(roles, loop.source, env, 4)
            if not found:
                return None
            loaders |= found
            source = source or _substituted(roles, loop.source, env)
            if call is not None:
                calls[call] = env
    return Phases(loaders, calls, source) if loaders and source is not None else None


def _substituted(roles: Roles, source: ast.expr, env: Env) -> ast.expr:
    """``loaders[phase]`` with the value that ``phase`` has in training."""
    if isinstance(source, ast.Name):
        value = _only_value(roles, source)
        if isinstance(value, ast.Subscript):
            source = value
    if isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Name) and isinstance(env.get(source.slice.id), ast.Constant):
        return roles.names.placed(ast.Subscript(source.value, env[source.slice.id], ast.Load()), source)
    return source


def _tests(roles: Roles, loop: BatchLoop) -> Iterator[ast.expr]:
    for b in roles.backwards:
        if roles.names.is_inside(b, loop.node):
            for test, wanted in roles.phase_tests(b, loop.node):
                yield test if wanted else ast.UnaryOp(ast.Not(), test)


def _environments(roles: Roles, node: ast.AST) -> Iterator[tuple[Env, ast.Call | None]]:
    """What the parameters and the phase variable are, for each call of the function and each turn of a loop over literals."""
    turns = list(_turns(roles, node))
    function = roles.names.function(node)
    if not isinstance(function, FunctionNode):
        yield from ((t, None) for t in turns or [{}])
        return
    calls = roles.values.callers.get(function, [])
    for call in calls:
        for outer in list(_turns(roles, call)) or [{}]:
            env = dict(_arguments(roles, function, call))
            env = {k: _in_turn(roles, v, outer) for k, v in env.items()}
            for turn in turns or [{}]:
                yield {**env, **turn}, call
    if not calls:
        yield from ((t, None) for t in turns)


def _in_turn(roles: Roles, node: ast.expr, turn: Env) -> ast.expr:
    """An argument as it is in one turn of a loop over literals: ``phase`` and ``loaders[phase]`` with the phase put in."""
    if isinstance(node, ast.Name):
        return turn.get(node.id, node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id in turn:
        return roles.names.placed(ast.Subscript(node.value, turn[node.slice.id], ast.Load()), node)
    return node


def _turns(roles: Roles, node: ast.AST) -> Iterator[Env]:
    """The values of a variable of a ``for`` over literals round the node."""
    for a in roles.names.ancestors(node):
        if isinstance(a, FunctionNode):
            return
        if isinstance(a, ast.For) and isinstance(a.target, ast.Name) and isinstance(a.iter, ast.Tuple | ast.List):
            for e in a.iter.elts:
                yield {a.target.id: e}
            return


def _arguments(roles: Roles, function: FunctionNode, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    a = function.args
    stars = any(isinstance(x, ast.Starred) for x in call.args) or any(k.arg is None for k in call.keywords)
    plain = [*a.posonlyargs, *a.args]
    for arg, default in [] if stars else zip(plain[len(plain) - len(a.defaults) :], a.defaults, strict=True):
        yield arg.arg, default
    for arg, kw_default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        if kw_default is not None and not stars:
            yield arg.arg, kw_default
    for f, skip in roles.values.targets(call):
        if f is function:
            yield from arguments(call, f, skip)


def _truth(roles: Roles, test: ast.expr, env: Env, depth: int) -> bool | None:
    """The truth of the test where it is known."""
    if depth == 0:
        return None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _truth(roles, test.operand, env, depth)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [_truth(roles, v, env, depth) for v in test.values]
        if isinstance(test.op, ast.And):
            return False if False in parts else None if None in parts else True
        return True if True in parts else None if None in parts else False
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compare(roles, test, env)
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Name):
        if test.id in env:
            if any(b.how in ("assign", "aug") for b in roles.names.bindings(roles.names.scope_of[test], test.id)):
                return None  # given another value before the test
            return _presence(roles, env[test.id], env, depth)
        value = _only_value(roles, test)
        return _truth(roles, value, env, depth - 1) if value is not None else None
    return None


def _presence(roles: Roles, node: ast.expr, env: Env, depth: int) -> bool | None:
    """Whether an argument is true: a literal, or an object that is made somewhere (an optimizer is never false)."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Name | ast.Attribute):
        vals = roles.values.eval(node)
        if vals and all(v.kind in ("call", "object") for v in vals):
            return True
    return _truth(roles, node, {k: v for k, v in env.items() if v is not node}, depth - 1)


def _compare(roles: Roles, test: ast.Compare, env: Env) -> bool | None:
    op, right = test.ops[0], test.comparators[0]
    left = test.left
    if isinstance(left, ast.Name):
        left = env.get(left.id, left)
    if not isinstance(right, ast.Constant):
        return None
    if right.value is None and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        found = _is_none(roles, left)
        return None if found is None else found == isinstance(op, ast.Is | ast.Eq)
    if isinstance(left, ast.Constant) and isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        return (left.value == right.value) == isinstance(op, ast.Eq | ast.Is)
    return None


def _is_none(roles: Roles, node: ast.expr) -> bool | None:
    if isinstance(node, ast.Constant):
        return node.value is None
    vals = roles.values.eval(node)
    if vals and all(v.kind in ("call", "object", "wrapped") for v in vals):
        return False
    return None


def _only_value(roles: Roles, node: ast.Name) -> ast.expr | None:
    """The one value that a local name is given, or has been given last."""
    found = list(roles.names.bindings(roles.names.scope_of[node], node.id))
    last = reaching(roles.names, node) if len(found) > 1 else None
    found = [last] if last is not None else found
    value = found[0].value if len(found) == 1 and found[0].how == "assign" and not found[0].path else None
    return value if isinstance(value, ast.expr) else None


def _chosen(roles: Roles, node: ast.Name, env: Env, depth: int) -> Vals:
    """The loaders of a name that ``if phase == "train": loader = …`` gives a value; none where a test is not known."""
    vals = NONE
    for b in roles.names.bindings(roles.names.scope_of[node], node.id):
        truths = []
        inner: ast.AST = b.target
        for a in roles.names.ancestors(b.target):
            if isinstance(a, ast.If) and inner is not a.test:
                truth = _truth(roles, a.test, env, depth)
                truths.append(truth if truth is None or inner in a.body else not truth)
            inner = a
        if b.how != "assign" or not isinstance(b.value, ast.expr) or None in truths:
            return NONE
        if all(truths):
            vals |= _loaders(roles, b.value, env, depth - 1)
    return vals


def _loaders(roles: Roles, node: ast.expr, env: Env, depth: int) -> Vals:
    """The loaders that the expression means under the environment."""
    if depth == 0:
        return NONE
    if isinstance(node, ast.Name):
        if node.id in env:
            return _loaders(roles, env[node.id], {}, depth - 1)
        value = _only_value(roles, node)
        if value is not None and isinstance(value, ast.IfExp | ast.Subscript):
            return _loaders(roles, value, env, depth - 1)
        if value is None and len(roles.loaders_of(node)) > 1:
            return _chosen(roles, node, env, depth)
    if isinstance(node, ast.IfExp):
        truth = _truth(roles, node.test, env, depth)
        if truth is None:
            return NONE
        return _loaders(roles, node.body if truth else node.orelse, env, depth - 1)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        key = env.get(node.slice.id) if isinstance(node.slice, ast.Name) else None
        if isinstance(key, ast.Constant) and isinstance(key.value, str | int):
            return frozenset(v for v in roles.values.pick(roles.values.eval(node.value), (key.value,), subscript=True) if v in roles.loaders_of(node))
        return NONE
    return roles.loaders_of(node)
