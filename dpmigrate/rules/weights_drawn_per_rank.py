"""Weights or gradients are changed at random while training runs.

## What it finds
Noise on parameters or gradients (`p.add_(torch.randn_like(p))` over `model.parameters()`), layers that are initialised anew
(`model.fc.reset_parameters()`, `nn.init.…`, `model.apply(init)`) and random pruning, in the loops that train.

## Why it matters
Each rank has a random stream of its own while it trains, for dropout and augmentation. Drawn from it, the weights become different ones on every rank, and
nothing puts them together again: the ranks go on averaging gradients of different models.

## Example
```python
for p in model.parameters():
    p.grad += 0.01 * torch.randn_like(p.grad)
```
becomes
```python
with ddp.same_stream():
    for p in model.parameters():
        p.grad += 0.01 * torch.randn_like(p.grad)
```

## When it is not fixed
Where it stands under a test that may fall out differently on different ranks: that is refused. Noise inside `forward` is each rank's own, like dropout.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Enclose
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.passes import methods_of_model
from dpmigrate.facts.randomness import draws
from dpmigrate.facts.ranks import parted
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_WEIGHTS = frozenset({"parameters", "named_parameters", "modules", "named_modules"})


@rule("DPM129", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def weights_drawn_per_rank(script: Script) -> Iterator[Hit]:
    names, roles = script.names, script.roles
    loops = [*script.repeating_loops, *(b.node for b in roles.train_loops)]
    entered = {f for a in loops for f in roles.all_entered(a)}
    done: set[ast.AST] = set()
    for stmt in names.nodes:
        if not isinstance(stmt, ast.For | ast.Expr) or roles.inside_module(stmt) or any(a in done for a in names.ancestors(stmt)):
            continue
        if not (names.function(stmt) in entered or any(names.is_inside(stmt, a) for a in loops)):
            continue
        if not (_noise(script, stmt) if isinstance(stmt, ast.For) else _drawn_anew(script, stmt.value)):
            continue
        if _built_here(script, stmt):
            continue
        done.add(stmt)
        message = "weights or gradients are changed at random: every rank would draw its own"
        if parted(script.roles, stmt):
            yield Hit(stmt, message, severity=Severity.BLOCKER, advice="let all ranks decide alike whether it is done")
            continue
        edits = (Enclose(script.span(stmt), script.span(stmt), f"with {script.ddp}.same_stream():"), AddImport(script.import_line))
        yield Hit(stmt, message, edits)


def _built_here(script: Script, stmt: ast.stmt) -> bool:
    """Whether the model is wrapped further down in the same block: it is initialised, not changed while it trains, and the wrap makes it equal."""
    block = script.names.block(stmt)
    return any(w.stmt in block and block.index(w.stmt) > block.index(stmt) for w in script.wraps.wraps)


def _noise(script: Script, loop: ast.For) -> bool:
    """A loop over the weights of a model that draws, and writes to what it goes through."""
    asked = [n.value for n in ast.walk(loop.iter) if isinstance(n, ast.Attribute) and n.attr in _WEIGHTS]
    if not any(_of_model(script, a) for a in asked):
        return False
    body = ast.Module(loop.body, [])
    targets = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    return draws(script.roles, body) and any(_root(w) in targets for n in ast.walk(body) for w in _written(n))


def _written(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement stores to, what an in-place method changes, and what torch.nn.init is given."""
    if isinstance(node, ast.Assign | ast.AugAssign):
        yield from node.targets if isinstance(node, ast.Assign) else [node.target]
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield node.func.value
        yield from node.args[:1]


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _drawn_anew(script: Script, call: ast.expr) -> bool:
    """A statement that changes a part of a model at random: ``nn.init.normal_(model.fc.weight)``, ``model.module.fc.reset_parameters()``."""
    if not isinstance(call, ast.Call) or script.roles.reaches_backward(call):
        return False
    own = methods_of_model(script.roles, call)
    if own:
        return any(draws(script.roles, f) for f in own)
    if any(isinstance(f, FunctionNode) for f, _ in script.values.targets(call)):
        return False  # what stands in it is looked at there
    functions = [v.node for a in call.args for v in script.values.eval(a) if v.kind == "func"]  # model.apply(init)
    if not draws(script.roles, ast.Expr(call)) and not any(draws(script.roles, f) for f in functions):
        return False
    return any(isinstance(w, ast.Attribute | ast.Subscript | ast.Name) and _part_of_model(script, w) for w in _written(call))


def _part_of_model(script: Script, node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript):
        if _of_model(script, node):
            return True
        node = node.value
    return _of_model(script, node)


def _of_model(script: Script, node: ast.expr) -> bool:
    return bool(script.roles.model_vals(node))
