"""The loss is averaged over something else than the samples.

## What it finds
Cross entropy with class weights or `ignore_index`, and sums divided by a mask or a count of valid targets.

## Why it matters
The mean of the ranks' means is not the global mean when the ranks have different weights to divide by: gradients off by 1 % with class weights and up to
85 % with few valid targets.

## Example
```python
loss = F.cross_entropy(out, y, ignore_index=0)
```
has to be written as a sum divided by the global number of valid targets.

## When it is not fixed
Always: it is a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.losses import Norm
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM302", severity=Severity.BLOCKER)
def weighted_loss(script: Script) -> Iterator[Hit]:
    for call in script.roles.backwards:
        loss = script.losses.of_backward(call)
        if loss.norm is Norm.WEIGHTED:
            yield Hit(
                loss.node, f"{loss.why}: the mean of the ranks' losses is not the loss of the global batch",
                advice="take the sum (reduction='sum') and divide it by ddp.sum_all(count) / ddp.world_size()",
            )  # fmt: skip
