"""A training pass goes round the wrapper's forward.

## What it finds
`model.module(x)`, `model.encoder(x)`, `model.heads[0](x)`, and methods of the model other than `forward` that are called with gradients in the training loop.

## Why it matters
DistributedDataParallel prepares the reduction of gradients in its own `forward`. A pass that does not go through it is not reduced: the ranks drift apart
(5e-2 after ten steps) without an error.

## Example
```python
loss = model.module.training_step(batch)
```
has to become a call of the wrapper, with a `forward` that does the same:
```python
loss = model(batch)
```

## When it is not fixed
Always: it is a refusal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_HARMLESS = frozenset(
    [
        "parameters",
        "named_parameters",
        "train",
        "eval",
        "zero_grad",
        "state_dict",
        "load_state_dict",
        "modules",
        "named_modules",
        "children",
        "named_children",
        "buffers",
        "to",
        "cuda",
        "cpu",
        "apply",
        "forward",
        "requires_grad_",
        "no_sync",
        "join",
        "half",
        "float",
        "double",
        "flatten_parameters",
        "init_hidden",
        "update_ema",
        "step_ema",
        "get_lr",
        "num_parameters",
    ]
)


@rule("DPM108", severity=Severity.BLOCKER)
def bypassed_forward(script: Script) -> Iterator[Hit]:
    roles, advice = script.roles, "call the wrapped model itself; let forward() do what the method does"
    for call in roles.calls:
        func = call.func
        if not isinstance(func, ast.Attribute | ast.Subscript) or roles.inside_module(call):
            continue
        if _part(script, func) and roles.region(call) in ("train", "both"):
            yield Hit(call, f"{script.text(func)}(…) in training is a part of the model without its wrapper: its gradients are not averaged", advice=advice)
        elif isinstance(func, ast.Subscript):
            continue
        elif func.attr == "module" and roles.wrapped(func.value) is not False and roles.model_vals(func.value) and roles.region(call) in ("train", "both"):
            yield Hit(call, f"{script.text(func)}(…) in training goes round the wrapper: its gradients are not averaged", advice=advice)
        elif roles.model_vals(func.value) and func.attr not in _HARMLESS and roles.region(call) in ("train", "both") and _trains(script, call, func.attr):
            yield Hit(call, f"{script.text(func)}(…) in training does not go through forward(): its gradients are not averaged", advice=advice)


def _part(script: Script, func: ast.Attribute | ast.Subscript) -> bool:
    """``model.encoder.conv``, ``model.heads[0]``: a module inside the model, called by itself."""
    if script.roles.model_vals(func) or (isinstance(func, ast.Attribute) and script.roles.model_vals(func.value)):
        return False  # the model itself; a method, or a layer: see _trains
    inner = _unwrapped(script, func)
    if inner is None or isinstance(func, ast.Subscript):
        return inner is not None
    called = [inner, inner.value] if isinstance(inner, ast.Attribute) and inner.attr == "forward" else [inner]
    vals = [v for n in called for v in script.values.eval(n)]
    return any(v.qual.startswith("torch.nn.") or (v.cls is not None and script.values.defs.is_module_class(v.cls)) for v in vals)


def _unwrapped(script: Script, node: ast.expr) -> ast.expr | None:
    """The chain of attributes and items as it reads behind the wrapper; None where it does not begin at a model."""
    if script.roles.model_vals(node):
        return ast.Attribute(node, "module", ast.Load()) if script.roles.wrapped(node) else node
    if isinstance(node, ast.Attribute | ast.Subscript):
        value = _unwrapped(script, node.value)
        if value is not None:
            return ast.Attribute(value, node.attr, node.ctx) if isinstance(node, ast.Attribute) else ast.Subscript(value, node.slice, node.ctx)
    return None


def _trains(script: Script, call: ast.Call, name: str) -> bool:
    """Whether the result may reach the loss: it is used, and the method is the model's own or not known."""
    return script.is_statement(call) is None and not name.startswith(("get_num", "num_", "is_", "has_"))
