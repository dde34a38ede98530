"""The data are drawn anew between the epochs.

## What it finds
A method of the training data set that is called in the epoch loop, outside the batches: negative sampling, another subset, new pairs. A data set of this
file is looked into: its method is left alone if it draws nothing. So too what is put into the data set there: `random.shuffle(train_set.rows)`,
`train_set.rows = [rows[i] for i in order]` with the statement that draws the order.

A loader that is built in the epoch loop, by whatever function or method, where that draws: its data set, and the lists, maps and indices of which these are
made.

## Why it matters
From the first epoch on each rank has random numbers of its own. Each would draw other data, so that sample 7 of one rank is not sample 7 of another: the
ranks' shares no longer make one epoch, and some of the data are never seen.

## Example
```python
for epoch in range(epochs):
    train_loader.dataset.sample_negatives()
```
becomes
```python
for epoch in range(epochs):
    with ddp.same_stream():
        train_loader.dataset.sample_negatives()
```

and likewise `train_loader = sampler.loader(negatives=4)`. A loader that is built in the head of a loop or in a call that trains is built before it.

## When it is not fixed
Where one rank may come to the statement alone, or the loader is built in the middle of a statement that also trains: that is refused. A function that is
given the data set is not looked into.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Enclose, Hoist
from dpmigrate.facts.randomness import draws
from dpmigrate.facts.redrawn import Redrawn, between, redrawn
from dpmigrate.facts.script import Script
from dpmigrate.facts.values import Vals
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_KEEPS = frozenset({"set_epoch", "train", "eval", "close", "cpu", "cuda", "to"})


@rule("DPM222", severity=Severity.ERROR, fix=Fix.SAFE)
def data_redrawn_per_rank(script: Script) -> Iterator[Hit]:
    data = frozenset(v for c in script.train_loader_calls if (d := script.argument(c, "dataset", 0)) is not None for v in script.values.eval(d))
    told: set[ast.stmt] = set()
    for node in script.names.nodes:
        found: list[tuple[ast.stmt, str]] = []
        if isinstance(node, ast.Call) and (called := _redraws(script, node, data)) and between(script, node):
            found = [(script.names.statement(node), f"{called}() may draw the training data anew: every rank would draw its own")]
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.Expr) and _changes(script, node, data) and between(script, node):
            found = [(stmt, "the training data are drawn anew: every rank would draw its own") for stmt in _drawing(script, node)]
        for stmt, message in found:
            if stmt not in told and isinstance(stmt, ast.Expr | ast.Assign | ast.AugAssign):
                told.add(stmt)
                yield _together(script, stmt, message)
    for found_here in redrawn(script):
        if found_here.node not in told and not any(script.names.is_inside(found_here.node, t) for t in told):
            yield _loader(script, found_here)


def _loader(script: Script, found: Redrawn) -> Hit:
    message = "the data are drawn anew for this loader: every rank would draw its own"
    if found.why:
        advice = f"build the loader in a statement of its own that every rank runs in every epoch, under with {script.ddp}.same_stream():"
        return Hit(found.node, f"{message}, and {found.why}", severity=Severity.BLOCKER, advice=advice)
    return _together(script, found.node, message)


def _together(script: Script, node: ast.stmt | ast.expr, message: str) -> Hit:
    """The statement, or the expression in a statement of its own before the one that it stands in, with rank 0's random numbers."""
    header = f"with {script.ddp}.same_stream():"
    span = script.span(node)
    edit = Enclose(span, span, header) if isinstance(node, ast.stmt) else Hoist(span, script.fresh("drawn_loader"), header=header)
    return Hit(node, message, (edit, AddImport(script.import_line)))


def _redraws(script: Script, call: ast.Call, data: Vals) -> str:
    """The method of the training data that the call runs, as written, if it may draw."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr in _KEEPS or func.attr.startswith("__") or not _of_data(script, func.value, data):
        return ""
    targets = [f for f, _ in script.values.targets(call)]
    return script.text(func) if not targets or any(draws(script.roles, f) for f in targets) else ""


def _changes(script: Script, stmt: ast.Assign | ast.AugAssign | ast.Expr, data: Vals) -> bool:
    """Whether the statement puts something into the training data: ``data.pairs = …``, ``random.shuffle(data.rows)``."""
    if isinstance(stmt, ast.Expr):
        given = stmt.value.args if isinstance(stmt.value, ast.Call) else []
        return any(isinstance(a, ast.Attribute) and _of_data(script, a.value, data) for a in given) and draws(script.roles, stmt)
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
    return any(_of_data(script, n.value, data) for t in targets for n in ast.walk(t) if isinstance(n, ast.Attribute) and n.attr not in ("transform", "dataset"))


def _drawing(script: Script, stmt: ast.stmt) -> Iterator[ast.stmt]:
    """The statement, if it draws, and those between the epochs that draw what it uses."""
    if draws(script.roles, stmt):
        yield stmt
    for n in (n for n in ast.walk(stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
        for b in script.names.bindings(script.names.scope_of[n], n.id):
            if b.how == "assign" and b.value is not None and draws(script.roles, b.value) and between(script, b.value):
                yield script.names.statement(b.value)


def _of_data(script: Script, node: ast.expr, data: Vals) -> bool:
    """``train_set``, ``train_loader.dataset``: what a training loop's samples come from."""
    if isinstance(node, ast.Attribute) and node.attr == "dataset":
        return any(isinstance(v.node, ast.Call) and v.node in script.train_loader_calls for v in script.roles.loaders_of(node.value))
    return bool(script.values.eval(node) & data)
