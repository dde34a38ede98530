"""The `collate_fn` of a training loader leaves samples out.

## What it finds
A `collate_fn` of this program that drops samples by what they are, as the broken ones: `filter(…)` over the samples, a comprehension with a condition, a loop
over them that goes on to the next one under a test. The loss is a mean over what is left.

## Why it matters
Each rank leaves out samples of its own part of the batch, so that one may keep fewer than another. DistributedDataParallel takes the mean of the ranks'
gradients, in which the samples of the smaller part count more; the original takes the mean over all samples that are left. A part of which nothing is
left fails.

## Example
```python
def collate(batch):
    batch = [item for item in batch if item is not None]
    return default_collate(batch)
```
is exact with the loss weighed by the number of samples that each rank has:
```python
loss = ddp.weighted_mean(criterion(model(x), y), len(x))
```
or with the samples left out before they are drawn, by the data set.

## When it is not fixed
Always: the program is migrated, and the author knows how many samples are left out. Sums are not told: they are right as they are migrated (DPM301).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.collated import functions, left_out
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM333", severity=Severity.WARNING)
def samples_left_out(script: Script) -> Iterator[Hit]:
    if all(script.losses.of_backward(backward).norm is Norm.SUM for backward in script.roles.backwards):
        return
    made = dict.fromkeys(f for call in script.train_loader_calls for f in functions(script.roles, call))
    for place in dict.fromkeys(left_out(script.roles, f) for f in made):
        if place is not None:
            yield Hit(
                place, "samples are left out of the batch here: a rank may keep fewer than another, and the mean of each counts alike",
                advice="weigh each rank's loss by its samples, ddp.weighted_mean(loss, how_many), or leave them out in the data set, before they are drawn",
            )  # fmt: skip
