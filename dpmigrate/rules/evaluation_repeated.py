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
as they are before a split evaluation. A loop over the training loader that needs all batches (running statistics taken anew) gets
`ddp.whole(loader)`; where the variable is bound to something made of the loader before (`if part: loader = islice(loader, n)`), it stands
before that: `loader = ddp.whole(loader)`.

## When it is not fixed
When the loop prints, writes, gives batches to an object of a library that keeps them (a metric of torchmetrics), leaves early, uses the number of the batch,
takes other batches than the loader's (`islice`, `zip`, `map`, `list(loader)[:3]`, a generator that chooses), or goes on with counters that are not 0: then
every rank evaluates the full set, and the report says why. Lists of predictions are DPM606's.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import After, Before, Edit, Wrap
from dpmigrate.facts.evaluation import Evaluation, Way
from dpmigrate.facts.remade import remade_after
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import reduced


@rule("DPM601", severity=Severity.NOTE, fix=Fix.SAFE, core=True)
def evaluation_repeated(script: Script) -> Iterator[Hit]:
    for found in script.evaluations:
        edits = tuple(_edits(script, found))
        if found.split:
            end = "the counters summed" if found.sums else "come together in their order"
            yield Hit(found.loop.node, f"the batches are dealt out to the ranks and {end}", edits)
        elif found.undivided:
            message = "this loop goes over a loader that training divides over the ranks; every rank takes the whole set here"
            yield Hit(found.loop.node, f"{message}: {found.why}", edits)
        elif found.way is Way.WHOLE:
            yield Hit(found.loop.node, f"every rank evaluates the full set (exact, not faster): {found.why}", edits)


def _edits(script: Script, found: Evaluation) -> Iterator[Edit]:
    loop = found.loop
    if found.split:
        blocks = ", blocks=True" if found.way is Way.BLOCKS else ""
        yield Wrap(script.span(loop.source), f"{script.ddp}.shard({{}}{blocks})")
    elif found.undivided and (first := remade_after(script.roles, loop)) is not None:
        statement, name = first  # what is made of it afterwards is made of all batches
        yield Before(script.span(statement), f"{name} = {script.ddp}.whole({name})")
    elif found.undivided:
        yield Wrap(script.span(loop.source), f"{script.ddp}.whole({{}})")
    if found.sums:
        yield After(script.span(loop.node), "\n".join([*reduced(script, loop.node, "sum_all", found.sums), *found.again]))
    if found.synchronised:
        yield Before(script.span(loop.node), f"{script.ddp}.sync_buffers({', '.join(found.synchronised)})")
