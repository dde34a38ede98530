"""The training data are drawn anew between the epochs.

## What it finds
A method of the training data set that is called in the epoch loop, outside the batches: negative sampling, another subset, new pairs. A data set of this
file is looked into: its method is left alone if it draws nothing.

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

## When it is not fixed
Where the data are drawn in an expression of a larger statement that also trains, or by a function that is given the data set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Enclose
from dpmigrate.facts.randomness import draws
from dpmigrate.facts.script import Script
from dpmigrate.facts.values import Vals
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_KEEPS = frozenset({"set_epoch", "train", "eval", "close", "cpu", "cuda", "to"})


@rule("DPM222", severity=Severity.ERROR, fix=Fix.SAFE)
def data_redrawn_per_rank(script: Script) -> Iterator[Hit]:
    roles, names = script.roles, script.names
    loops = script.repeating_loops
    data = frozenset(v for c in script.train_loader_calls if (d := script.argument(c, "dataset", 0)) is not None for v in script.values.eval(d))
    for call in roles.calls:
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr in _KEEPS or func.attr.startswith("__") or roles.inside_module(call):
            continue
        stmt = names.statement(call)
        between = any(names.is_inside(call, a) or names.function(call) in roles.all_entered(a) for a in loops)
        batches = any(names.is_inside(call, b.node) or names.function(call) in roles.all_entered(b.node) for b in roles.batch_loops)
        if not between or batches or not isinstance(stmt, ast.Expr | ast.Assign) or not _of_data(script, func.value, data):
            continue
        targets = [f for f, _ in script.values.targets(call)]
        if targets and not any(draws(script.roles, f) for f in targets):
            continue
        edits = (Enclose(script.span(stmt), script.span(stmt), f"with {script.ddp}.same_stream():"), AddImport(script.import_line))
        yield Hit(stmt, f"{script.text(func)}() may draw the training data anew: every rank would draw its own", edits)


def _of_data(script: Script, node: ast.expr, data: Vals) -> bool:
    """``train_set``, ``train_loader.dataset``: what a training loop's samples come from."""
    if isinstance(node, ast.Attribute) and node.attr == "dataset":
        return any(isinstance(v.node, ast.Call) and v.node in script.train_loader_calls for v in script.roles.loaders_of(node.value))
    return bool(script.values.eval(node) & data)
