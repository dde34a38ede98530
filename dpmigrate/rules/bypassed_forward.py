"""A training pass goes round the wrapper's forward.

## What it finds
`model.module(x)`, `model.encoder(x)`, `model.heads[0](x)`, and methods of the model other than `forward` that are called with gradients in the training loop.
Also `model.forward(x)`, which runs the wrapper's forward without its hooks.

## Why it matters
DistributedDataParallel prepares the reduction of gradients in its own `forward`. A pass that does not go through it is not reduced: the ranks drift apart
(5e-2 after ten steps) without an error. By the hooks of the wrapper `ddp.wrap` knows which backward to finish where a step leaves parameters out: without
them the next forward raises.

## Example
```python
loss = model.module.training_loss(batch)
z = model.encoder(x)
out = model.module(x)
out = model.forward(x)
```
becomes
```python
loss = ddp.method(model, "training_loss")(batch)
z = ddp.method(model, "encoder")(x)
out = model(x)
out = model(x)
```
`ddp.method` lets the wrapper's forward run the method in the place of the model's. Parameters that no such pass of a step uses keep no gradient.

A method that uses no parameter, buffer or part of the model is no pass: a loss of its outputs, a filter that the model holds as a plain tensor. It is
called as `model.module.loss(out, y)` (DPM107).

## When it is not fixed
A method that calls `backward()` itself, and a layer chosen by a variable (`model.heads[task](x)`): refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Replace
from dpmigrate.facts.passes import entered
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_ADVICE = "call the wrapped model itself; let forward() do what the method does"


@rule("DPM108", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def bypassed_forward(script: Script) -> Iterator[Hit]:
    roles = script.roles
    for p in roles.detours:
        what = "goes round the wrapper" if not p.path else "does not go through forward()"
        message = f"{script.text(p.call.func)}(…) in training {what}: its gradients would not be averaged"
        inner = any(roles.reaches_backward(f) for f in entered(roles, p))
        if p.path is None or inner:
            yield Hit(p.call, f"{message}{'; it calls backward() itself' if inner else ''}", severity=Severity.BLOCKER, advice=_ADVICE)
            continue
        model = script.text(p.model)
        code = f'{script.ddp}.method({model}, "{p.path}")' if p.path else model
        yield Hit(p.call, message, (Replace(script.span(p.call.func), code), AddImport(script.import_line)))
    for p in roles.training_passes:
        func = p.call.func
        by_name = isinstance(func, ast.Attribute) and func.value is p.model and func.attr == "forward"
        if by_name and roles.wrapped(p.model) is not False:
            message = (
                f"{script.text(func)}(…) in training runs none of the wrapper's hooks: steps that "
                "leave parameters out would not be finished"
            )
            yield Hit(p.call, message, (Replace(script.span(func), script.text(p.model)),))
