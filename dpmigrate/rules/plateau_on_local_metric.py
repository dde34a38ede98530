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

## When it is not fixed
Schedulers outside of the program.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.meetings import plateau_metrics
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM323", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def plateau_on_local_metric(script: Script) -> Iterator[Hit]:
    for metric in plateau_metrics(script):
        edits = (Wrap(script.span(metric), f"{script.ddp}.mean_all({{}})"), AddImport(script.import_line))
        yield Hit(metric, "the ranks must lower the learning rate together", edits)
