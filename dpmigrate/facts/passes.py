"""Passes through a model: calls of it, of its ``forward``, and those that go round it: its methods, its parts, the module behind a wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.library import FLOATS, INNER_MODULES, MOVES, PARAMETERS, SETTINGS
from dpmigrate.facts.names import FunctionNode, of_self
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.stateless import stateless

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

#: methods that are no pass, by torch or by custom
NO_PASS = (
    INNER_MODULES
    | PARAMETERS
    | SETTINGS
    | MOVES
    | FLOATS
    | {"state_dict", "load_state_dict", "buffers", "named_buffers", "apply", "forward", "no_sync", "join", "flatten_parameters", "init_hidden"}
    | {"update_ema", "step_ema", "get_lr", "num_parameters", "register_forward_hook", "get_submodule", "get_parameter"}
)


@dataclass(frozen=True, eq=False, slots=True)
class Pass:
    """A pass of ``model``, as written. ``path`` is what is called of it: '' the model itself, 'loss', 'body.conv'; None where it cannot be named."""

    call: ast.Call
    model: ast.expr
    path: str | None
    round: bool  # it goes round the wrapper


def direct(roles: Roles) -> Iterator[Pass]:
    """Calls of a model or of its ``forward``, outside the classes of models themselves, or in a method that is given it: ``criterion(x, y, adapter)``."""
    for call in roles.calls:
        if roles.inside_module(call) and not (isinstance(call.func, ast.Name) and _is_parameter(roles, call.func)):
            continue
        if roles.model_vals(call.func):
            if not lent(roles, call.func):
                yield Pass(call, call.func, "", False)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "forward" and roles.model_vals(call.func.value):
            if not lent(roles, call.func.value):
                yield Pass(call, call.func.value, "", False)


def lent(roles: Roles, node: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether a function has a model from methods of the modules that hold it alone, ``solve(self.net, x)`` in ``forward``: as theirs, what it does there is
    no pass of its own but a part of that through the module.
    """
    function = roles.names.function(node)
    if not isinstance(node, ast.Name) or not isinstance(function, FunctionNode) or roles.names.cls(function) is not None or not _is_parameter(roles, node):
        return False
    given = [g for b in roles.names.bindings(roles.names.scope_of[node], node.id) for g in roles.handed(b)]
    return function in seen or (bool(given) and all(g is not None and _lends(roles, g, seen | {function}) for g in given))


def _lends(roles: Roles, given: ast.expr, seen: frozenset[ast.AST]) -> bool:
    held = given
    while isinstance(held, ast.Attribute) and isinstance(held.value, ast.Attribute):
        held = held.value
    return (roles.inside_module(given) and isinstance(held, ast.Attribute) and of_self(held)) or lent(roles, given, seen)


def _is_parameter(roles: Roles, name: ast.Name) -> bool:
    bound = list(roles.names.bindings(roles.names.scope_of[name], name.id))
    return bool(bound) and all(b.how == "param" for b in bound)


def indirect(roles: Roles) -> Iterator[Pass]:
    """Calls of a method or a part of a model whose value is used: what they compute may reach the loss without the wrapper."""
    for call in roles.calls:
        if isinstance(call.func, ast.Attribute | ast.Subscript) and not roles.inside_module(call):
            root, path = _root(roles, call.func)
            if root is not None and path and _drives_itself(roles, root, path):
                continue  # what it calls of itself is seen there
            if root is not None and (path == [] or _may_train(roles, call, root, path)) and not lent(roles, root):
                yield Pass(call, root, None if None in path else ".".join(p for p in path if p), True)


def handed(roles: Roles) -> Iterator[Pass]:
    """Calls of another file's function that is given a model, whose value is used: ``loss = robust_loss(model=model, x=x)``. It calls the wrapper."""
    made = {o.call for o in roles.optimizers}
    for call in roles.calls:
        if roles.inside_module(call) or call in made or isinstance(roles.names.parent[call], ast.Expr) or roles.values.is_wrap(call):
            continue
        dotted = roles.names.dotted(call.func)
        if not dotted or dotted.startswith(("torch.", "numpy.", "copy.", "?.")) or any(True for _ in roles.values.targets(call)):
            continue
        for e in (*call.args, *(k.value for k in call.keywords)):
            if isinstance(e, ast.Name | ast.Attribute) and roles.model_vals(e) and goes_into_loss(roles, call):
                yield Pass(call, e, "", False)


def goes_into_loss(roles: Roles, call: ast.Call, *, anywhere: bool = False) -> bool:
    """Whether what the call gives may be differentiated: by itself, or through what it is assigned to; ``anywhere``: before it is known what evaluates."""
    stmt = roles.names.statement(call)
    if isinstance(stmt, ast.Expr):
        return any(b is stmt.value for b in roles.backwards)
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [n for n in [getattr(stmt, "target", None)] if isinstance(n, ast.AST)]
    return roles.may_reach_loss(*targets) if anywhere else roles.into_loss(*targets)


def entered(roles: Roles, p: Pass) -> list[FunctionNode]:
    """The methods of this module's classes that a pass through a method of the model runs."""
    classes = [v.cls for m in roles.model_vals(p.model) for v in roles.values.inner(m) if v.cls is not None]
    return [f for c in classes if p.path and (f := roles.values.defs.method(c, p.path)) is not None]


def _root(roles: Roles, func: ast.expr) -> tuple[ast.expr | None, list[str | None]]:
    """The variable of the model, in front of ``.module``, and what is taken from it, in order; a model itself has no path."""
    path: list[str | None] = []
    node = func
    while not roles.model_vals(node):
        if isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
        elif isinstance(node, ast.Subscript):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            path.insert(0, str(index) if isinstance(index, int) and index >= 0 else None)
        else:
            return None, path
        node = node.value
    if isinstance(node, ast.Attribute) and node.attr == "module" and roles.wrapped(node.value) is not False and roles.model_vals(node.value):
        node = node.value
        return node, [] if path == ["forward"] else path
    return (node, path) if path else (None, path)


def _may_train(roles: Roles, call: ast.Call, root: ast.expr, path: list[str | None]) -> bool:
    name = path[-1] or ""
    if len(path) == 1 and isinstance(call.func, ast.Attribute):
        if stateless(roles, roles.model_vals(root), name) or (roles.asked is not None and roles.asked.computes_nothing(call)):
            return False
        return name not in NO_PASS and not isinstance(roles.names.parent[call], ast.Expr) and not name.startswith(("get_num", "num_", "is_", "has_"))
    return _is_module(roles, call.func)


def _drives_itself(roles: Roles, root: ast.expr, path: list[str | None]) -> bool:
    """Whether a method of the model is one in which it trains itself: ``model.train_step(batch)``."""
    defs = roles.values.defs
    classes = [v.cls for m in roles.model_vals(root) for v in roles.values.inner(m)]
    methods = [defs.method(c, path[0] or "") if c is not None and len(path) == 1 else None for c in classes]
    return bool(methods) and all(m is not None and defs.drives_itself(m) for m in methods)


def _is_module(roles: Roles, func: ast.expr) -> bool:
    """``model.encoder.conv``, ``model.heads[0]``: a module inside the model, called by itself or by its ``forward``."""
    if isinstance(func, ast.Subscript):
        return True
    inner = _unwrapped(roles, func)
    called = [inner, inner.value] if isinstance(inner, ast.Attribute) and inner.attr == "forward" else [inner]
    vals = [v for n in called for v in roles.values.eval(n)]
    return any(v.qual.startswith("torch.nn.") or (v.cls is not None and roles.values.defs.is_module_class(v.cls)) for v in vals)


def _unwrapped(roles: Roles, node: ast.expr) -> ast.expr:
    """The chain of attributes and items, which begins at a model, as it reads behind the wrapper."""
    if roles.model_vals(node):
        return roles.names.placed(ast.Attribute(node, "module", ast.Load()), node) if roles.wrapped(node) else node
    assert isinstance(node, ast.Attribute | ast.Subscript)
    value = _unwrapped(roles, node.value)
    if value is node.value:
        return node
    made = ast.Attribute(value, node.attr, node.ctx) if isinstance(node, ast.Attribute) else ast.Subscript(value, node.slice, node.ctx)
    return roles.names.placed(made, node)


def written_names(*nodes: ast.AST) -> set[str]:
    """The variables and attributes in some expressions, as they are written there."""
    return {ast.unparse(n) for node in nodes for n in walk(node) if isinstance(n, ast.Name | ast.Attribute)} - {"self"}


def methods_of_model(roles: Roles, call: ast.Call) -> list[FunctionNode]:
    """The methods of the program that a call of a model's method runs, also through the wrapper."""
    if not isinstance(call.func, ast.Attribute):
        return []
    models = [m for v in roles.model_vals(call.func.value) for m in roles.values.inner(v)]
    found = (roles.values.defs.method(m.cls, call.func.attr) for m in models if m.cls is not None)
    return [f for f in found if f is not None]


def compiled(roles: Roles) -> bool:
    """Whether a model is compiled by ``torch.compile``, which puts ``_orig_mod.`` before its keys."""
    return any(roles.names.dotted(c.func) == "torch.compile" and roles.model_vals(c) for c in roles.calls)
