"""The batch stays on the CPU: DataParallel moved it.

## What it finds
Calls of a model that was in DataParallel with a part of the batch as the loader gave it, never moved to a device (`model(images)`, `model(Variable(images))`),
or with a tensor that the program has made on the CPU, wherever it has (`model(torch.randn(8, 16))`, `model(noise(8, "cpu"))`).

## Why it matters
DataParallel's `forward` copies its inputs to the GPUs. DistributedDataParallel does so for its own `forward`, too, but evaluation calls the bare module,
and under plain `python` there is no wrapper: both end with "Expected all tensors to be on the same device". Targets were never moved by either.

## Example
```python
for images, target in val_loader:
    output = model(images)
```
becomes
```python
for images, target in ddp.shard(val_loader):
    output = model.module(images.to(ddp.device()))
```

## When it is not fixed
A batch that is handed on as a whole (`for batch in loader: model(batch)`) is told: it may be a dict or a list, which has no `to`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.library import FLOATS, INTEGERS, LAYOUTS
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: what hands a tensor on where it is
_STAYS = FLOATS | INTEGERS | LAYOUTS | {"detach"}


@rule("DPM221", severity=Severity.ERROR, fix=Fix.SAFE)
def batch_left_on_cpu(script: Script) -> Iterator[Hit]:
    if not script.from_data_parallel:
        return
    for p in script.roles.forwards:
        if script.roles.wrapped(p.model) is False:
            continue
        named = ((k.arg or "", k.value) for k in p.call.keywords)
        for argument, given in (*((str(i), a) for i, a in enumerate(p.call.args)), *named):
            kinds = _left(script, given, frozenset())
            made = kinds not in ({"part"}, {"batch"}) and script.executed.on_cpu(p.call, argument, always=not _returned(script, given))
            if kinds == {"part"} or made:
                edits = (Wrap(script.span(given), f"{{}}.to({script.ddp}.device())"), AddImport(script.import_line))
                yield Hit(given, f"DataParallel moved this {'tensor' if made else 'part of the batch'} to the GPU", edits)
            elif kinds == {"batch"}:
                yield Hit(
                    given,
                    "DataParallel moved this batch to the GPU",
                    severity=Severity.WARNING,
                    advice=f"move its tensors to {script.ddp}.device() in the loop",
                )


def _left(script: Script, node: ast.expr, seen: frozenset[str]) -> set[str]:
    """What an expression is: a ``part`` of the ``batch`` or all of it, where the loader left it; ``?`` for anything else."""
    while isinstance(node, ast.Call):
        if script.names.dotted(node.func) in ("torch.autograd.Variable", "torch.autograd.variable.Variable") and node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _STAYS:
            node = node.func.value
        else:
            return {"?"}
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return {"part"} if _left(script, node.value, seen) == {"batch"} else {"?"}
    if not isinstance(node, ast.Name) or node.id in seen:
        return {"?"} if not isinstance(node, ast.Name) else set()
    found: set[str] = set()
    for b in script.names.bindings(script.names.scope_of[node], node.id):
        if b.how == "for":
            found |= _given(script, b.target)
        elif b.how == "assign" and isinstance(b.value, ast.expr):
            whole = _left(script, b.value, seen | {node.id})
            found |= whole if not b.path else {"part"} if whole == {"batch"} else {"?"}  # x, y = batch
        else:
            found.add("?")
    return found


def _returned(script: Script, node: ast.expr) -> bool:
    """Whether it is what a function of the program makes: None only where that ends without a return, which no caller counts on."""
    if isinstance(node, ast.Name):
        bound = list(script.names.bindings(script.names.scope_of[node], node.id))
        return bool(bound) and all(b.how == "assign" and not b.path and isinstance(b.value, ast.Call) and _returned(script, b.value) for b in bound)
    functions = [f for f, _ in script.values.targets(node)] if isinstance(node, ast.Call) else []
    returns = [n.value for f in functions for n in walk(f) if isinstance(n, ast.Return)]
    return bool(returns) and all(isinstance(v, ast.Call | ast.BinOp | ast.Subscript) for v in returns)


def _given(script: Script, target: ast.AST) -> set[str]:
    """What a name of a loop's target gets: the batch or a part of it, where the loop goes over a loader itself."""
    for b in script.roles.batch_loops:
        if not isinstance(b.node, ast.For) or not script.names.is_inside(target, b.node.target) or b.several:
            continue
        counted = "?.enumerate" in {script.names.dotted(c.func) for c in walk(b.node.iter) if isinstance(c, ast.Call)}
        batch: ast.AST = b.node.target
        if counted and isinstance(batch, ast.Tuple) and len(batch.elts) == 2:
            batch = batch.elts[1]
        return {"batch"} if target is batch else {"part"} if script.names.is_inside(target, batch) else {"?"}
    return {"?"}
