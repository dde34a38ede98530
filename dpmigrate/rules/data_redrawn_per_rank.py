"""The data are drawn anew between the epochs.

## What it finds
A method of the training data set that is called in the epoch loop, outside the batches: negative sampling, another subset, new pairs. A data set of this
file is looked into: its method is left alone if it draws nothing. So too what is put into the data set there: `random.shuffle(train_set.rows)`,
`train_set.rows = [rows[i] for i in order]` with the statement that draws the order, also in a function of the program that is given the data set.

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
Where one rank may come to the statement alone, or the loader is built in the middle of a statement that also trains: that is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Enclose, Hoist
from dpmigrate.facts.redrawn import Redrawn, data_redrawn, redrawn
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_ANEW = "the training data are drawn anew: every rank would draw its own"


@rule("DPM222", severity=Severity.ERROR, fix=Fix.SAFE)
def data_redrawn_per_rank(script: Script) -> Iterator[Hit]:
    told: set[ast.AST] = set()
    for stmt, method in data_redrawn(script):
        told.add(stmt)
        yield _together(script, stmt, f"{method}() may draw the training data anew: every rank would draw its own" if method else _ANEW)
    for found in redrawn(script):
        if not any(script.names.is_inside(found.node, t) for t in told):
            yield _loader(script, found)


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
