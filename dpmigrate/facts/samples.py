"""Which values are made of the samples of a batch, or of their number: not parameters, tables, types and other sizes."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from dpmigrate.facts.definitions import arguments
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.scopes import Binding

_SHAPE = frozenset({"shape", "size", "device", "dtype", "dim", "ndim", "numel", "type"})
#: methods that take no more of their tensor than its type and device
_LIKE = frozenset({"new_tensor", "new_zeros", "new_ones", "new_full", "new_empty"})


def of_batch(roles: Roles, node: ast.AST, seen: set[Hashable] | None = None) -> bool:
    """Whether the value is made of samples or of their number: not of other sizes, of types, or of what a module holds.

    ``seen`` are the variables that are being looked at: other places that give them a value decide.
    """
    known: set[Hashable] = set() if seen is None else seen
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and _sample(roles, n, known):
            return True
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self" and _held(roles, n, known):
            return True
    return False


def one_by_one(roles: Roles, node: ast.AST) -> bool:
    """Whether the expression is about an element that a loop or a comprehension takes of something else than a loader: one sample at a time."""
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            bound = list(roles.names.bindings(roles.names.scope_of[n], n.id))
            if bound and all(b.how == "for" and b.value is not None and not any(roles.loaders_of(e) for e in ast.walk(b.value)) for b in bound):
                return True
    return False


def _held(roles: Roles, node: ast.Attribute, seen: set[Hashable]) -> bool:
    key = tuple(sorted(map(str, roles.values.keys(node))))
    if key in seen:
        return False
    seen.add(key)
    return any(of_batch(roles, value, seen) for value in roles.given(node))


def _sample(roles: Roles, node: ast.Name, seen: set[Hashable]) -> bool:
    if node.id == "self" or _other_size(roles, node):
        return False
    variable = roles.names.meant(node)
    if variable in seen:
        return False
    seen.add(variable)
    return bool(roles.loaders_of(node)) or any(_bound(roles, b, node, seen) for b in roles.names.bindings(roles.names.scope_of[node], node.id))


def _bound(roles: Roles, b: Binding, node: ast.Name, seen: set[Hashable]) -> bool:
    if b.how == "param" and isinstance(b.target, ast.arg):
        function = roles.names.scope_of[b.target].node
        calls = roles.values.callers.get(function, []) if isinstance(function, FunctionNode) else []
        if not isinstance(function, FunctionNode) or (function.name == "forward" and not calls):
            return True
        return any(_given(roles, c, _passed(roles, c, function, node.id), seen) for c in calls)
    if b.value is None or roles.names.is_inside(node, b.value):
        return False
    if b.path and b.path[0] != 0:  # length and dim of n, length, dim = x.shape, or of n, length, dim, device = *x.shape, x.device
        first = b.value.elts[0] if isinstance(b.value, ast.Tuple | ast.List) and b.value.elts else None
        if isinstance(first, ast.Starred) and _is_size(first.value):
            return any(of_batch(roles, e, seen) for e in b.value.elts[1:])  # type: ignore[attr-defined]
        if _is_size(b.value):
            return False
    return of_batch(roles, b.value, seen)


def _passed(roles: Roles, call: ast.Call, function: FunctionNode, parameter: str) -> ast.expr | None:
    """What the call gives for the parameter; a wrapper hands its arguments on to ``forward``."""
    found = roles.passed(call, function, parameter)
    return found if found is not None or function.name != "forward" else dict(arguments(call, function, 1)).get(parameter)


def _given(roles: Roles, call: ast.Call, value: ast.expr | None, seen: set[Hashable]) -> bool:
    starred = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
    return of_batch(roles, value, seen) if value is not None else starred


def _is_size(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return not node.args and _is_size(node.func)
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "size")


def _other_size(roles: Roles, node: ast.Name) -> bool:
    """``x.shape[1]``, ``x.size(-1)``, ``x.device``, ``x.new_zeros(3)``: what is the same for every part of the batch."""
    above = roles.names.parent[node]
    if not isinstance(above, ast.Attribute) or above.attr not in _SHAPE | _LIKE:
        return False
    outer = roles.names.parent[above]
    if above.attr in _LIKE:
        return isinstance(outer, ast.Call)
    if isinstance(outer, ast.Call) and above.attr == "size" and not outer.args and not outer.keywords:
        outer = roles.names.parent[outer]  # x.size()[0]
    index = outer.slice if isinstance(outer, ast.Subscript) else outer.args[0] if isinstance(outer, ast.Call) and outer.func is above and outer.args else None
    return not (isinstance(index, ast.Constant) and index.value == 0) and not (above.attr in ("shape", "size") and index is None)
