"""A buffer of the model collects samples, but only rank 0's copy lasts.

## What it finds
A registered buffer that a method of the model gives something of the batch: a queue of keys (`self.queue[:, i:j] = keys.t()`), running statistics of its
own (`self.mean = 0.9 * self.mean + 0.1 * x.mean(0)`), a count of samples (`self.seen += len(x)`).

## Why it matters
DistributedDataParallel copies rank 0's buffers to all ranks at every forward in training. What the other ranks have written is lost: the queue holds
rank 0's samples alone, the count is the world size times too small, and nothing reports it. Counting steps is the same on every rank and right.

## Example
```python
self.seen += x.size(0)
```
has to become
```python
self.seen += ddp.sum_all(x.size(0))
```
and a queue gets the keys of all ranks.

## When it is not fixed
Always. For a program of one device it is a refusal. Under DataParallel the buffer saw the first GPU's part alone, as it will see rank 0's: a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.buffers import updates
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM118", severity=Severity.BLOCKER)
def buffer_of_one_rank(script: Script) -> Iterator[Hit]:
    advice = "let the update see the samples of all ranks: gather them, or sum what it takes from the batch over the ranks"
    severity = Severity.NOTE if script.from_data_parallel else Severity.BLOCKER
    before = ", as it was the first GPU's under DataParallel" if script.from_data_parallel else ""
    for u in updates(script.roles, script.roles.models):
        yield Hit(u.node, f"the buffer {u.name} would hold rank 0's part of each batch{before}", advice=advice, severity=severity)
