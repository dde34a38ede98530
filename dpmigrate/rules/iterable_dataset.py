"""The training data set is an IterableDataset.

## What it finds
A DataLoader of training over a class derived from `torch.utils.data.IterableDataset`.

## Why it matters
No sampler can divide a stream: every rank (and every worker of every rank) would go through all of it; 2 ranks with 2 workers saw 80 items of
a stream of 20. And ranks whose streams end at different times hang each other.

## Example
```python
def __iter__(self):
    yield from self.items[rank::world_size]
```
is what the data set itself has to do, with equal counts on all ranks.

## When it is not fixed
Always: it is a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM906", severity=Severity.BLOCKER)
def iterable_dataset(script: Script) -> Iterator[Hit]:
    for call in script.train_loader_calls:
        dataset = script.argument(call, "dataset", 0)
        for v in script.values.eval(dataset):
            if v.cls is not None and any(script.names.dotted(b).endswith("IterableDataset") for c in script.values.defs.bases(v.cls) for b in c.bases):
                yield Hit(
                    call,
                    f"{v.cls.name} is an IterableDataset: it cannot be divided by a sampler",
                    advice="divide the stream by rank and worker inside the data set, or use a map-style Dataset",
                )
