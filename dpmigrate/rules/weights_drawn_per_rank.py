"""Weights or gradients are changed at random while training runs.

## What it finds
Noise on parameters or gradients (`p.add_(torch.randn_like(p))` over `model.parameters()`), layers that are initialised anew
(`model.fc.reset_parameters()`, `nn.init.…`, `model.apply(init)`), random pruning, and optimizers of the program whose `step()` draws (Langevin dynamics, noisy
Adam), in the loops that train.

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
Where it stands in an exception handler, or in the batch loop under a test on the values of a batch: that is refused. Other tests are made alike on all ranks.
Noise inside `forward` is each rank's own, like dropout.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dpmigrate.edit import AddImport, Enclose
from dpmigrate.facts import steps
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.passes import methods_of_model
from dpmigrate.facts.randomness import draws
from dpmigrate.facts.ranks import caught, ends_before, local_tests
from dpmigrate.facts.script import Script
from dpmigrate.facts.steering import asked, holds_weights, is_setting, part_of_model
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import together

#: attributes by which weights and gradients are written
_TENSORS = frozenset({"data", "grad", "weight", "bias"})


@rule("DPM129", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def weights_drawn_per_rank(script: Script) -> Iterator[Hit]:
    names, roles = script.names, script.roles
    loops = [*script.repeating_loops, *(b.node for b in roles.train_loops)]
    entered = {f for a in loops for f in roles.all_entered(a)}
    done: set[ast.AST] = set()
    stepping = {names.statement(c) for c in steps.stepping(roles) if _draws_in_step(script, c)}
    for stmt in names.nodes:
        if not isinstance(stmt, ast.For | ast.Expr | ast.Assign | ast.AugAssign) or any(a in done for a in names.ancestors(stmt)):
            continue
        repeated = names.function(stmt) in entered or any(names.is_inside(stmt, a) for a in loops)
        if roles.inside_module(stmt) or steps.in_optimizer(roles, stmt) or not repeated:
            continue
        if not (stmt in stepping or _changes(script, stmt)) or _built_here(script, stmt):
            continue
        done.add(stmt)
        yield _from_one_stream(script, stmt, "weights or gradients are changed at random: every rank would draw its own")


def _from_one_stream(script: Script, stmt: ast.stmt, message: str) -> Hit:
    """The statement under one stream of random numbers, which all ranks come to; tests in the batch loop are made alike."""
    tests = dict.fromkeys((*local_tests(script.roles, stmt), *ends_before(script.roles, stmt)))
    shared = [together(script, t) for t in tests]
    if caught(script.roles, stmt) or None in shared:
        return Hit(stmt, message, severity=Severity.BLOCKER, advice="let all ranks decide alike whether it is done")
    alike = [e for edits in shared for e in edits or ()]
    return Hit(stmt, message, (*alike, Enclose(script.span(stmt), script.span(stmt), f"with {script.ddp}.same_stream():"), AddImport(script.import_line)))


def _draws_in_step(script: Script, call: ast.Call) -> bool:
    """Whether the step of an optimizer draws: in the method of a class of the program, or to choose the optimizer."""
    given = [v for a in call.args for v in script.values.eval(a) if v.kind == "object" and v.cls is not None]  # scaler.step(optimizer)
    methods = [m for v in given if v.cls is not None and (m := script.values.defs.method(v.cls, "step")) is not None]
    return draws(script.roles, call) or any(draws(script.roles, m) for m in methods)


def _changes(script: Script, stmt: ast.For | ast.Expr | ast.Assign | ast.AugAssign) -> bool:
    if isinstance(stmt, ast.For):
        return not script.roles.reaches_backward(stmt) and _noise(script, stmt.iter, stmt.target, stmt.body)
    if isinstance(stmt, ast.Expr):
        value = stmt.value
        if isinstance(value, ast.ListComp):
            first = value.generators[0]
            return _noise(script, first.iter, first.target, [value])
        return _drawn_anew(script, value)
    targets = [t for w in _written(stmt) for t in walk(w) if isinstance(t, ast.Attribute) and t.attr in _TENSORS]
    return draws(script.roles, stmt.value) and not script.roles.reaches_backward(stmt) and any(part_of_model(script, t.value) for t in targets)


def _built_here(script: Script, stmt: ast.stmt) -> bool:
    """Whether the model is wrapped further down in the same block: it is initialised, not changed while it trains, and the wrap makes it equal."""
    block = script.names.block(stmt)
    return any(w.stmt in block and block.index(w.stmt) > block.index(stmt) for w in script.wraps.wraps)


def _noise(script: Script, source: ast.expr, target: ast.expr, body: Sequence[ast.AST]) -> bool:
    """A loop over the weights of a model, or the groups of an optimizer, that draws, and writes to what it goes through."""
    if not any(holds_weights(script, n) for n in asked(script, source)) or not any(draws(script.roles, s) for s in body):
        return False
    targets = {n.id for n in walk(target) if isinstance(n, ast.Name)}
    nodes = [n for s in body for n in walk(s)]
    for n in nodes:
        if isinstance(n, ast.For | ast.comprehension) and any(isinstance(x, ast.Name) and x.id in targets for x in walk(n.iter)):
            targets |= {x.id for x in walk(n.target) if isinstance(x, ast.Name)}
    return any(_root(w) in targets and not is_setting(w) for n in nodes for w in _written(n))


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
    if steps.clips(script.roles, call):
        return draws(script.roles, call)
    own = methods_of_model(script.roles, call)
    if own:
        return any(draws(script.roles, f) for f in own)
    if any(isinstance(f, FunctionNode) for f, _ in script.values.targets(call)):
        return False  # what stands in it is looked at there
    functions = [v.node for a in call.args for v in script.values.eval(a) if v.kind == "func"]  # model.apply(init)
    if not draws(script.roles, ast.Expr(call)) and not any(draws(script.roles, f) for f in functions):
        return False
    return any(isinstance(w, ast.Attribute | ast.Subscript | ast.Name) and part_of_model(script, w) for w in _written(call))
