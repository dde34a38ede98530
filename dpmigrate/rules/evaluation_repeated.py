"""Every rank would evaluate the whole set.

## What it finds
Loops over a DataLoader that call a model without training it, the counters that they add up and the tables (confusion matrices, counts by class) that they
fill: `matrix[t, p] += 1`, `np.add.at(…)`, `hits[label] += 1` of arrays and tensors that begin as zeros, lists of zeros and dicts of numbers.

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

Where every rank evaluates the full set, BatchNorm's running statistics are made rank 0's first (`ddp.sync_buffers(model)`),
as they are before a split evaluation.

## When it is not fixed
When the loop prints, writes, gives batches to an object of a library that keeps them (a metric of torchmetrics), leaves early, uses the number of the batch,
or goes on with counters that are not 0: then every rank evaluates the full set, and the report says why. Lists of predictions are DPM606's.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import After, Before, Edit, Wrap
from dpmigrate.facts.filled import Fills
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._shared import reached_together, reduced, why_whole


@rule("DPM601", severity=Severity.NOTE, fix=Fix.SAFE, core=True)
def evaluation_repeated(script: Script) -> Iterator[Hit]:
    for loop in script.roles.batch_loops:
        if loop.trains:
            continue
        obstacle = why_whole(script, loop)
        divided = loop.loaders & script.train_loaders
        if loop.evaluates and not obstacle:
            edits = tuple(_split(script, loop))
            end = "the counters summed" if any(isinstance(e, After) for e in edits) else "come together in their order"
            yield Hit(loop.node, f"the batches are dealt out to the ranks and {end}", edits)
        elif divided:
            message = f"this loop goes over a loader that training divides over the ranks; every rank takes the whole set here: {obstacle}"
            yield Hit(loop.node, message, (Wrap(script.span(loop.source), f"{script.ddp}.whole({{}})"),))
        elif loop.evaluates:
            together = tuple(_synchronised(script, loop)) if reached_together(script, loop.node) else ()
            yield Hit(loop.node, f"every rank evaluates the full set (exact, not faster): {obstacle}", together)


def _split(script: Script, loop: BatchLoop) -> Iterator[Edit]:
    count = script.counting(loop)
    in_order = any(f.in_order for f in count.filled)  # what is collected must come together again in the order of the loader
    yield Wrap(script.span(loop.source), f"{script.ddp}.shard({{}}{', blocks=True' if in_order else ''})")
    tables = [f.name for f in count.filled if f.how is Fills.TABLE]
    sums = [*(c.name for c in (*count.counters, *(c for m in count.meters for c in m.sums))), *tables]
    derived = [d for m in count.meters for d in m.meter.derived]
    if sums:
        yield After(script.span(loop.node), "\n".join([*reduced(script, "sum_all", sums), *derived]))
    yield from _synchronised(script, loop)


def _synchronised(script: Script, loop: BatchLoop) -> Iterator[Edit]:
    """Each rank's BatchNorm has seen its own batches: all take rank 0's, which are also those that are saved."""
    models = script.evaluated_models(loop)
    if models and script.may_have_buffers:
        yield Before(script.span(loop.node), f"{script.ddp}.sync_buffers({', '.join(models)})")
