"""The loss is a sum over the batch.

## What it finds
A loss with `reduction="sum"`, or summed by hand, that goes into `backward()`.

## Why it matters
DistributedDataParallel averages the gradients of the ranks. The mean of the ranks' sums is W times smaller than the sum over the global batch
that the original took.

## Example
```python
loss = F.mse_loss(out, y, reduction="sum")
loss.backward()
```
becomes
```python
loss = F.mse_loss(out, y, reduction="sum")
ddp.sum_loss(loss).backward()
```
`ddp.sum_loss` leaves the value as it is; its gradient is summed over the ranks instead of averaged.

A sum that is differentiated for its samples alone (`model(x).sum().backward()`, then `x.grad`, and `zero_grad()` before the optimizer steps) stays as it is:
each sample has the gradient that one process gives it.

## When it is not fixed
When part of the loss is a mean and part a sum (DPM305).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.losses import Norm
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import scaled_backward


@rule("DPM301", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def sum_loss(script: Script) -> Iterator[Hit]:
    for call in script.roles.backwards:
        if call in script.alone:
            continue
        loss = script.losses.of_backward(call)
        if loss.norm is not Norm.SUM:
            continue
        why = f" ({loss.why})" if loss.why else ""
        yield Hit(call, f"the loss is a sum{why}: averaged gradients would be W times too small", (scaled_backward(script, call),))
