"""A number made of the whole training set would be made of a rank's part.

## What it finds
Passes over the loader that training divides over the ranks, in an expression: `sum(len(y) for _, y in train_loader)`,
`torch.cat([x for x, _ in train_loader])`, `list(train_loader)`. Loops that train on nothing are DPM601's.

## Why it matters
Class weights, a mean and a deviation of the data, a number of samples or of steps are made in this way before training. A loader that is divided
gives each rank its part, so every rank would have a number of its own: another learning rate, another loss, and a smaller count in the log.

## Example
```python
counts = torch.bincount(torch.cat([y for _, y in train_loader]))
```
becomes
```python
counts = torch.bincount(torch.cat([y for _, y in ddp.whole(train_loader)]))
```
`ddp.whole(loader)` gives every rank all batches, in the global batch size.

## When it is not fixed
Always fixed. What training goes through (`batches = list(train_loader)` and a loop over `batches` that trains) stays divided.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import Wrap
from dpmigrate.facts.read_whole import read_whole
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM609", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def training_set_read(script: Script) -> Iterator[Hit]:
    for loader in dict.fromkeys(read_whole(script)):
        message = "this goes over the loader that training divides over the ranks: each rank would see its part of the data"
        yield Hit(loader, message, (Wrap(script.span(loader), f"{script.ddp}.whole({{}})"),))
