"""The model's parameters are changed after the wrap.

## What it finds
`requires_grad` set (also by `requires_grad_()`, or in a method of the model: `model.freeze()`, a `train()` of its own), a layer replaced
(`model.module.fc = …`, `model.module.layers[6] = …`, `add_module`), a weight shared or normalised (`weight_norm`), another type given to the parameters
(`half()`, `double()`, `to(torch.float16)`, `network_to_half(…)`), on a wrapped model.

## Why it matters
DistributedDataParallel looks at the parameters once, when it is built. Parameters frozen later fail at the second step; parameters unfrozen or added
later are never reduced, silently. So are those that have been given another type: the hooks on their gradients are gone, and each rank trains alone.

## Example
```python
model = nn.DataParallel(model)
model.module.fc = nn.Linear(512, 10)
```
has to become
```python
model.fc = nn.Linear(512, 10)
model = nn.DataParallel(model)
```

## When it is not fixed
Always: it is a refusal. For models that the script does not wrap itself the wrap is put after such statements, and after a change of type also where the
script wraps the model before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.casts import before_training, casts
from dpmigrate.facts.passes import methods_of_model
from dpmigrate.facts.script import Script
from dpmigrate.facts.values import Val, Vals
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM110", severity=Severity.BLOCKER)
def changed_after_wrap(script: Script) -> Iterator[Hit]:
    roles, advice = script.roles, "change the model before it is wrapped"
    switched = _switched(script)
    for node in script.names.nodes:
        if roles.inside_module(node):
            continue
        if isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Store):
            if _of_wrapped(script, node.value) and not _whole(script, node.value) & switched:
                yield Hit(node, "requires_grad is set after the wrap: DDP has already looked at the parameters", advice=advice)
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store) and _new_layer(script, node):
            yield Hit(node, f"{script.text(node)} is replaced after the wrap: its parameters are never reduced", advice=advice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            models = roles.model_vals(node.func.value) | _whole(script, node.func.value)
            if _of_wrapped(script, node.func.value) and not models & switched:
                yield Hit(node, "requires_grad is set after the wrap: DDP has already looked at the parameters", advice=advice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _wrapped_part(script, node.func.value, _DEPTH):
            if methods_of_model(script.roles, node) and _changes(script, node):
                yield Hit(node, f"{script.text(node.func)}() sets requires_grad after the wrap: DDP has already looked at the parameters", advice=advice)
            elif node.func.attr in ("add_module", "register_parameter", "register_module"):
                yield Hit(node, f"{script.text(node.func)}(…) after the wrap: the new parameters are never reduced", advice=advice)

        elif isinstance(node, ast.Call) and script.names.dotted(node.func).startswith(_REPLACING):
            part = script.argument(node, "module", 0)
            if part is not None and _wrapped_part(script, part, _DEPTH):
                yield Hit(node, f"{script.text(node.func)}(…) after the wrap: the new parameters are never reduced", advice=advice)
    for cast in casts(script.roles):
        if _of_a_wrap(script, cast.call, cast.model) and before_training(script.roles, cast.call):
            what = "the type of the model is changed after the wrap: its parameters are not reduced any more"
            yield Hit(cast.call, what, advice="change the type of the model before it is wrapped")


_DEPTH = 4
#: what puts other parameters in the place of a layer's own
_REPLACING = ("torch.nn.utils.weight_norm", "torch.nn.utils.parametrizations.weight_norm", "torch.nn.utils.parametrizations.orthogonal")


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
        if any(
            isinstance(n, ast.Attribute) and (n.attr == "requires_grad_" or (n.attr == "requires_grad" and isinstance(n.ctx, ast.Store)))
            for n in ast.walk(method)
        ):
            return True
    return False


def _switched(script: Script) -> Vals:
    """The wrapped models that are frozen and thawed as wholes: frozen there is nothing to reduce, and thawed they are as DDP has seen them."""
    given: dict[Val, set[bool | None]] = {}
    for node in script.names.nodes:
        value: ast.expr | None = None
        models: Vals = frozenset()
        if isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(stmt := script.names.parent[node], ast.Assign):
            value, models = stmt.value, _whole(script, node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            value = script.argument(node, "requires_grad", 0) or ast.Constant(True)
            models = script.roles.model_vals(node.func.value) | _whole(script, node.func.value)
        for v in models:
            given.setdefault(v, set()).add(value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None)
    before = {v for v, values in given.items() if v.kind != "wrapped" and values != {True}}  # frozen when DDP looks at them
    return frozenset(v for v, values in given.items() if values != {False} and not script.values.inner(v) & before)


def _whole(script: Script, node: ast.expr) -> Vals:
    """The models all of whose parameters ``p`` goes through: ``for p in model.parameters()``."""
    found: Vals = frozenset()
    for b in script.names.bindings(script.names.scope_of[node], node.id) if isinstance(node, ast.Name) else ():
        if b.how == "for" and isinstance(b.value, ast.Call) and isinstance(b.value.func, ast.Attribute) and b.value.func.attr == "parameters":
            if script.names.is_inside(node, script.names.statement(b.target)):
                found |= script.roles.model_vals(b.value.func.value)
    return found


def _new_layer(script: Script, node: ast.Attribute | ast.Subscript) -> bool:
    """A place inside a wrapped model that is given a layer."""
    stmt = script.names.statement(node)
    if not isinstance(stmt, ast.Assign):
        return False
    tied = isinstance(stmt.value, ast.Attribute) and stmt.value.attr in ("weight", "bias")
    if not tied and not any(v.qual.startswith("torch.nn.") for v in script.values.eval(stmt.value)):
        return False
    return _wrapped_part(script, node.value, _DEPTH)


def _wrapped_part(script: Script, node: ast.expr, depth: int) -> bool:
    """Whether the expression may be a wrapped model, what is inside its wrapper, or a part of either."""
    while True:
        if script.roles.model_vals(node) and script.roles.wrapped(node) is not False:
            return True
        if not isinstance(node, ast.Attribute | ast.Subscript):
            break
        node = node.value
    if not isinstance(node, ast.Name) or not depth:
        return False
    for b in script.names.bindings(script.names.scope_of[node], node.id):
        if any(e is not None and _wrapped_part(script, e, depth - 1) for e in script.roles.handed(b)):  # freeze(model.module)
            return True
        if b.how == "assign" and isinstance(b.value, ast.Attribute) and _wrapped_part(script, b.value, depth - 1):  # inner = model.module
            return True
    return False


def _of_wrapped(script: Script, node: ast.expr) -> bool:
    """``p`` of ``for p in model.parameters()``, or a parameter by name, where the model is wrapped."""
    if _wrapped_part(script, node, _DEPTH):
        return True
    for b in script.names.bindings(script.names.scope_of[node], node.id) if isinstance(node, ast.Name) else ():
        if b.how == "for" and b.value is not None and script.names.is_inside(node, script.names.statement(b.target)):
            for n in ast.walk(b.value):
                if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters") and _wrapped_part(script, n.value, _DEPTH):
                    return True
    return False
