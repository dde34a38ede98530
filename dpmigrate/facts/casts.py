"""Where a program changes the type of a model's parameters by itself: ``model.half()``, ``model.to(torch.float64)``, ``network_to_half(model)``.

A change of type gives each parameter another place in the graph: what listens to its gradient, as DistributedDataParallel does, hears nothing more.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from dpmigrate.facts.library import INNER_MODULES, PARAMETERS
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import leading_to
from dpmigrate.facts.roles import Roles

_METHODS = frozenset({"half", "double", "bfloat16", "float"})
#: what models have already, unless something else changes their type
_USUAL = frozenset({"float", "float32", "FloatTensor"})
_TYPES = frozenset({"half", "float16", "bfloat16", "float", "float32", "double", "float64"})
#: functions of well-known libraries that give a model back in half precision
_FUNCTIONS = frozenset({"network_to_half", "convert_network"})
#: what goes through the parts of a model
_PARTS = INNER_MODULES | PARAMETERS


@dataclass(frozen=True, eq=False, slots=True)
class Cast:
    """One change of type. ``model`` is the expression of the model of which the whole or a part is changed; ``usual``: to float32, as it is anyway."""

    call: ast.Call
    model: ast.expr
    usual: bool


def casts(roles: Roles) -> tuple[Cast, ...]:
    """Every change of the type of a model or a part of it; none where all are to float32, which models have already."""
    found = tuple(c for call in roles.calls if not roles.inside_module(call) and (c := _cast(roles, call)) is not None)
    return found if any(not c.usual for c in found) else ()


def before_training(roles: Roles, call: ast.Call) -> bool:
    """Whether a training step may follow: in the loop over the batches, in a loop round it, or before it."""
    for place in leading_to(roles, call):
        for a in roles.names.ancestors(place):
            if isinstance(a, FunctionNode):
                break
            if isinstance(a, ast.For | ast.While) and (roles.reaches_backward(a) or any(roles.names.is_inside(b, a) for b in roles.backwards)):
                return True
    return any(roles.values.order.when(call, roles.names.statement(b)) != "after" for b in roles.backwards)


def _cast(roles: Roles, call: ast.Call) -> Cast | None:
    kind = _kind(roles, call)
    if not kind:
        return None
    method = isinstance(call.func, ast.Attribute) and kind not in _FUNCTIONS
    subject = call.func.value if method and isinstance(call.func, ast.Attribute) else call.args[0] if call.args else None
    model = _model(roles, subject) if subject is not None else None
    return Cast(call, model, kind in _USUAL) if model is not None else None


def _kind(roles: Roles, call: ast.Call) -> str:
    """The type as torch calls it, ``?`` for one that is not seen; '' for a call that changes none."""
    function = last(call.func)
    if function in _FUNCTIONS and roles.names.dotted(call.func) != f"?.{function}":
        return function
    if not isinstance(call.func, ast.Attribute):
        return ""
    if function in _METHODS:
        return function if not call.args else ""
    named = next((k.value for k in call.keywords if k.arg in ("dtype", "dst_type")), None)
    if function == "type":
        given = named or (call.args[0] if call.args else None)
        return (_type(roles, given) or "?") if given is not None else ""
    if function == "to":
        return _type(roles, named) or "?" if named is not None else next(filter(None, (_type(roles, a) for a in call.args)), "")
    return ""


def _type(roles: Roles, node: ast.expr) -> str:
    """``float16`` for ``torch.float16``, also through a variable; '' for what is no type."""
    quals = {roles.names.dotted(node), *(v.qual for v in roles.values.eval(node))}
    named = {q.rsplit(".", 1)[-1] for q in quals if q.startswith("torch.")}
    found = sorted(n for n in named if n in _TYPES or n.endswith("Tensor"))
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith("Tensor"):
        return node.value.rsplit(".", 1)[-1]
    return next((n for n in found if n not in _USUAL), next(iter(found), ""))


def _model(roles: Roles, node: ast.expr) -> ast.expr | None:
    """The expression of the model in ``model``, ``model.module.fc``, ``model[0]``, and ``layer`` of ``for layer in model.modules()``."""
    while True:
        if roles.model_vals(node):
            return node
        if not isinstance(node, ast.Attribute | ast.Subscript):
            break
        node = node.value
    for b in roles.names.bindings(roles.names.scope_of[node], node.id) if isinstance(node, ast.Name) else ():
        if b.how == "for" and b.value is not None and roles.names.is_inside(node, roles.names.statement(b.target)):
            for n in walk(b.value):
                if isinstance(n, ast.Attribute) and n.attr in _PARTS and (model := _model(roles, n.value)) is not None:
                    return model
    return None
