"""What the program does to the parameters of a model after it is wrapped: DistributedDataParallel looks at them once, when it is built."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmigrate.facts.casts import before_training, casts
from dpmigrate.facts.names import last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.passes import methods_of_model
from dpmigrate.facts.scopes import Binding
from dpmigrate.facts.values import Val, Vals

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script
    from dpmigrate.facts.wraps import Wrap

_DEPTH = 4
#: what puts other parameters in the place of a layer's own
_REPLACING = ("torch.nn.utils.weight_norm", "torch.nn.utils.parametrizations.weight_norm", "torch.nn.utils.parametrizations.orthogonal")
#: methods that give a module another part
_ADDING = frozenset({"add_module", "register_parameter", "register_module"})


@dataclass(frozen=True, eq=False, slots=True)
class Change:
    """A change of a wrapped model's parameters. ``kind``: frozen (or thawed), frozen by a method of the model, a layer, added, of another type."""

    node: ast.AST
    kind: str
    models: Vals = frozenset()

    @property
    def thaws(self) -> bool:
        """Whether parameters begin or cease to get gradients, which DDP can be told of when it is built; it knows no others than those that it has then."""
        return self.kind in ("frozen", "method")


def changes(script: Script) -> Iterator[Change]:
    """Every change outside of the model after the wrap, in the order of the program; of models that are frozen and thawed as wholes, none.

    Nor where the program has no wrap, and there is no place for one: what stands after it is not known then.
    """
    if script.wraps.problems and not script.from_data_parallel:
        return
    switched = _switched(script)
    for node in script.names.nodes:
        if not script.roles.inside_module(node):
            kind, models = _kind(script, node, switched)
            if kind:
                yield Change(node, kind, models)
    for cast in casts(script.roles):
        if _of_a_wrap(script, cast.call, cast.model) and before_training(script.roles, cast.call):
            yield Change(cast.call, "type")


def thawing(script: Script, wrap: Wrap) -> bool:
    """Whether the program freezes or thaws a part of what the wrap holds, after the wrap."""
    return any(change.thaws and of_wrap(script, change, wrap) for change in script.changes)


def of_wrap(script: Script, change: Change, wrap: Wrap) -> bool:
    """Whether the change may be one of the model in this wrap."""
    inner = frozenset(x for v in change.models for x in script.values.inner(v))
    return bool(inner & script.wrapped_by(wrap))


def _kind(script: Script, node: ast.AST, switched: Vals) -> tuple[str, Vals]:
    """How the node changes a wrapped model, and which it may be; '' if it changes none."""
    if isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Store):
        models = _of_wrapped(script, node.value)
        return ("frozen" if models and not _whole(script, node.value) & switched else ""), models
    if isinstance(node, ast.Attribute | ast.Subscript):
        return ("layer" if isinstance(node.ctx, ast.Store) and _new_layer(script, node) else ""), frozenset()
    return _by_call(script, node, switched) if isinstance(node, ast.Call) else ("", frozenset())


def _by_call(script: Script, call: ast.Call, switched: Vals) -> tuple[str, Vals]:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "requires_grad_":
        models = script.roles.model_vals(func.value) | _whole(script, func.value)
        wrapped = _of_wrapped(script, func.value)
        return ("frozen" if wrapped and not models & switched else ""), wrapped
    if isinstance(func, ast.Attribute) and (wrapped := _wrapped_part(script, func.value, _DEPTH)):
        if methods_of_model(script.roles, call) and _changes(script, call):
            return "method", wrapped
        return ("added" if func.attr in _ADDING else ""), frozenset()
    return ("added" if _adds(script, call) else ""), frozenset()


def _adds(script: Script, call: ast.Call) -> bool:
    """Whether a function puts another layer or parameter into a wrapped model: ``setattr(model, "fc", …)``, ``weight_norm(model.fc)``."""
    func = call.func
    if script.names.dotted(func) == "?.setattr" and len(call.args) == 3:
        return _is_layer(script, call.args[2]) and bool(_wrapped_part(script, call.args[0], _DEPTH))
    part = script.argument(call, "module", 0) if script.names.dotted(func).startswith(_REPLACING) else None
    return part is not None and bool(_wrapped_part(script, part, _DEPTH))


def _of_a_wrap(script: Script, call: ast.Call, model: ast.expr) -> bool:
    """Whether the model is wrapped where the call stands: by this name, or by another one before."""
    if _wrapped_part(script, model, _DEPTH):
        return True
    bare = script.roles.model_vals(model)
    return any(s.inner & bare and script.values.order.when(call, s.stmt) == "after" for s in script.values.wraps)


def _changes(script: Script, call: ast.Call) -> bool:
    """Whether a method of the model itself freezes or thaws: also ``train()``, where a class has one of its own."""
    todo, seen = list(methods_of_model(script.roles, call)), set()
    while todo:
        method = todo.pop()
        if method in seen:
            continue
        seen.add(method)
        todo += script.roles.entered(method)
        marks = (n for n in walk(method) if isinstance(n, ast.Attribute))
        set_here = (n for n in marks if n.attr == "requires_grad_" or (n.attr == "requires_grad" and isinstance(n.ctx, ast.Store)))
        if any(not script.executed.of_no_parameter(n) for n in set_here):
            return True
    return False


def _switched(script: Script) -> Vals:
    """The wrapped models that are frozen and thawed as wholes: frozen there is nothing to reduce, and thawed they are as DDP has seen them."""
    given: dict[Val, set[bool | None]] = {}
    for target, flag, called in _flags(script):
        models = _whole(script, target) | (script.roles.model_vals(target) if called else frozenset())  # as an attribute of a module it does nothing
        for v in models:
            given.setdefault(v, set()).add(flag.value if isinstance(flag, ast.Constant) and isinstance(flag.value, bool) else None)
    before = {v for v, values in given.items() if v.kind != "wrapped" and values != {True}} | _frozen_in_part(script)  # when DDP looks at them
    return frozenset(v for v, values in given.items() if values != {False} and not script.values.inner(v) & before)


def _flags(script: Script) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """What is given or denied gradients, with the flag, and whether by a call: ``p.requires_grad = flag``, ``p.requires_grad_(flag)``."""
    for node in script.names.nodes:
        stmt = script.names.parent.get(node)
        if isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Store) and isinstance(stmt, ast.Assign):
            yield node.value, stmt.value, False
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            yield node.func.value, script.argument(node, "requires_grad", 0) or ast.Constant(True), True


def _frozen_in_part(script: Script) -> Vals:
    """The bare models of which some parameters are frozen, or may be: ``model.fc.requires_grad_(False)``, ``p.requires_grad = n in kept``."""
    found: Vals = frozenset()
    for target, flag, _ in _flags(script):
        if not (isinstance(flag, ast.Constant) and flag.value is True) and not script.roles.model_vals(target) | _whole(script, target):
            found |= frozenset(x for v in _parted(script, target, _DEPTH) for x in script.values.inner(v))
    return found


def _parted(script: Script, node: ast.expr, depth: int) -> Vals:
    """The models of which the expression is a part: by attributes and places, or given by a loop over parts, also over those of a part."""
    found: Vals = frozenset()
    for part in walk(node) if depth else ():
        if isinstance(part, ast.expr):
            found |= script.roles.model_vals(part)
        for b in script.names.bindings(script.names.scope_of[part], part.id) if isinstance(part, ast.Name) else ():
            if isinstance(source := _source(b), ast.expr):
                found |= _parted(script, source, depth - 1)
    return found


def _whole(script: Script, node: ast.expr) -> Vals:
    """The models all of whose parameters ``p`` goes through: ``for p in model.parameters()``."""
    found: Vals = frozenset()
    for b in script.names.bindings(script.names.scope_of[node], node.id) if isinstance(node, ast.Name) else ():
        source = _source(b)
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "parameters":
            if script.names.is_inside(node, script.names.statement(b.target)):
                found |= script.roles.model_vals(source.func.value)
    return found


def _source(b: Binding) -> ast.AST | None:
    """What a loop that gives the variable goes through for it: of ``zip`` and ``enumerate`` the one of that place; None for no loop."""
    source, path = b.value if b.how == "for" else None, b.path[1:]
    while path and isinstance(path[0], int) and isinstance(source, ast.Call) and (called := last(source.func)) in ("zip", "enumerate"):
        place = path[0] - (called == "enumerate")
        if not 0 <= place < len(source.args) or any(isinstance(a, ast.Starred) for a in source.args):
            break
        source, path = source.args[place], path[1:]
    return source


def _new_layer(script: Script, node: ast.Attribute | ast.Subscript) -> bool:
    """A place inside a wrapped model that is given a layer."""
    stmt = script.names.statement(node)
    if not isinstance(stmt, ast.Assign):
        return False
    tied = isinstance(stmt.value, ast.Attribute) and stmt.value.attr in ("weight", "bias")
    return (tied or _is_layer(script, stmt.value)) and bool(_wrapped_part(script, node.value, _DEPTH))


def _is_layer(script: Script, value: ast.expr) -> bool:
    """Whether the value is a layer or a parameter of torch's, or a module of the program."""
    defs = script.values.defs
    return any(v.qual.startswith("torch.nn.") or (v.kind == "object" and v.cls is not None and defs.is_module_class(v.cls)) for v in script.values.eval(value))


def _wrapped_part(script: Script, node: ast.expr, depth: int) -> Vals:
    """The models that the expression may be where they are wrapped, as what is inside their wrappers too, or a part of either."""
    while True:
        models = script.roles.model_vals(node)
        if models and script.roles.wrapped(node) is not False:
            return models
        if not isinstance(node, ast.Attribute | ast.Subscript):
            break
        node = node.value
    found: Vals = frozenset()
    for b in script.names.bindings(script.names.scope_of[node], node.id) if isinstance(node, ast.Name) and depth else ():
        found |= frozenset().union(*(_wrapped_part(script, e, depth - 1) for e in script.roles.handed(b) if e is not None))  # freeze(model.module)
        if b.how == "assign" and isinstance(b.value, ast.Attribute):  # inner = model.module
            found |= _wrapped_part(script, b.value, depth - 1)
    return found


def _of_wrapped(script: Script, node: ast.expr) -> Vals:
    """The models of which this is a parameter, where they are wrapped: ``p`` of ``for p in model.parameters()``, or one by name."""
    found = _wrapped_part(script, node, _DEPTH)
    for b in script.names.bindings(script.names.scope_of[node], node.id) if isinstance(node, ast.Name) else ():
        source = _source(b)
        if source is not None and script.names.is_inside(node, script.names.statement(b.target)):
            for n in walk(source):
                if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters"):
                    found |= _wrapped_part(script, n.value, _DEPTH)
    return found
