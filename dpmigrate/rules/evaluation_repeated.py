"""Every rank would evaluate the whole set.

## What it finds
Loops over a DataLoader that call a model without training it, and the counters they add up.

## Why it matters
Left alone, every rank does the whole evaluation: right, and W times the work. A DistributedSampler would be faster and wrong: it pads, and
7/12 is reported for 6/11. Where the loop does nothing but count, the batches are dealt out unchanged and the counters summed, so every number,
also a mean of batch means, equals that of one process.

## Example
```python
for x, y in val_loader:
    correct += (model(x).argmax(1) == y).sum().item()
```
becomes
```python
for x, y in ddp.shard(val_loader):
    correct += (model.module(x).argmax(1) == y).sum().item()
correct = ddp.sum_all(correct)
```

## When it is not fixed
When the loop prints, collects, leaves early or uses the number of the batch: then every rank evaluates the full set, and the report says why.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import After, Before, Edit, Wrap
from dpmigrate.facts.counters import Counting
from dpmigrate.facts.roles import BatchLoop
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM601", severity=Severity.NOTE, fix=Fix.SAFE, core=True)
def evaluation_repeated(script: Script) -> Iterator[Hit]:
    for loop in script.roles.batch_loops:
        if loop.trains:
            continue
        count = script.counting(loop)
        divided = loop.loaders & script.train_loaders
        if loop.evaluates and not count.obstacle:
            yield Hit(loop.node, "the batches are dealt out to the ranks and the counters summed", tuple(_split(script, loop, count)))
        elif divided:
            yield Hit(
                loop.node, f"this loop goes over the training loader, which is divided over the ranks, and cannot be split exactly: {count.obstacle}",
                severity=Severity.BLOCKER, advice="give this loop a loader of its own",
            )  # fmt: skip
        elif loop.evaluates:
            yield Hit(loop.node, f"every rank evaluates the full set (exact, not faster): {count.obstacle}")


def _split(script: Script, loop: BatchLoop, count: Counting) -> Iterator[Edit]:
    yield Wrap(script.span(loop.source), f"{script.ddp}.shard({{}})")
    names = ", ".join(c.name for c in count.counters)
    yield After(script.span(loop.node), f"{names} = {script.ddp}.sum_all({names})")
    models = script.evaluated_models(loop)
    if models and script.may_have_buffers:
        yield Before(script.span(loop.node), f"{script.ddp}.sync_buffers({', '.join(models)})")
