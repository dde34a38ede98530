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
When the loop prints, collects, leaves early, uses the number of the batch, or goes on with counters that are not 0: then every rank evaluates
the full set, and the report says why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import After, Before, Edit, Wrap
from dpmigrate.facts.counters import Counting
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._shared import from_zero


@rule("DPM601", severity=Severity.NOTE, fix=Fix.SAFE, core=True)
def evaluation_repeated(script: Script) -> Iterator[Hit]:
    for loop in script.roles.batch_loops:
        if loop.trains:
            continue
        count = script.counting(loop)
        obstacle = count.obstacle or _obstacle(script, loop, count)
        divided = loop.loaders & script.train_loaders
        if loop.evaluates and not obstacle:
            yield Hit(loop.node, "the batches are dealt out to the ranks and the counters summed", tuple(_split(script, loop, count)))
        elif divided:
            message = f"this loop goes over a loader that training divides over the ranks; every rank takes the whole set here: {obstacle}"
            yield Hit(loop.node, message, (Wrap(script.span(loop.source), f"{script.ddp}.whole({{}})"),))
        elif loop.evaluates:
            yield Hit(loop.node, f"every rank evaluates the full set (exact, not faster): {obstacle}")


def _obstacle(script: Script, loop: BatchLoop, count: Counting) -> str:
    """What the counting itself does not show: counters that bring something along, batches that are kept for another loop."""
    for c in count.counters:
        if not from_zero(script, loop, c.name):
            return f"{c.name} is not 0 when the loop begins"
    for m in count.meters:
        if not m.meter.from_zero:
            return f"{m.meter.name} is not reset when the loop begins"
    if not script.names.is_inside(loop.source, loop.node):
        kept = {ast.unparse(n) for n in ast.walk(loop.over) if isinstance(n, ast.Name)}
        for other in script.roles.batch_loops:
            if other is not loop and kept & {ast.unparse(n) for n in ast.walk(other.over) if isinstance(n, ast.Name)}:
                return f"the batches in {' and '.join(sorted(kept))} are used by another loop"
    return ""


def _split(script: Script, loop: BatchLoop, count: Counting) -> Iterator[Edit]:
    yield Wrap(script.span(loop.source), f"{script.ddp}.shard({{}})")
    names = ", ".join(c.name for c in (*count.counters, *(c for m in count.meters for c in m.sums)))
    derived = [d for m in count.meters for d in m.meter.derived]
    yield After(script.span(loop.node), "\n".join([f"{names} = {script.ddp}.sum_all({names})", *derived]))
    models = script.evaluated_models(loop)
    if models and script.may_have_buffers:
        yield Before(script.span(loop.node), f"{script.ddp}.sync_buffers({', '.join(models)})")
