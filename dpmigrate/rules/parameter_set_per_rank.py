"""A parameter is set from a rank's part of the batch.

## What it finds
A parameter that a forward pass, or a training step, gives something of the batch past the optimizer: the first batch's statistics
(`self.bias.data.copy_(-x.mean(0))`, as in the ActNorm of Glow or in weight normalisation that starts from data), a codebook that begins at samples, a
parameter that is made again (`self.weight = nn.Parameter(…)`).

## Why it matters
DistributedDataParallel sends rank 0's parameters to all ranks once, when the model is wrapped. What forward writes later stays where it is written: each
rank sets its own values from its own samples, and from then on the ranks train different models with each other's gradients. Nothing reports it.

## Example
```python
mean, square = x.mean(0), (x * x).mean(0)
```
has to become, in the method that sets the parameters,
```python
mean, square = ddp.mean_all(x.mean(0), (x * x).mean(0))
```
so that every rank sets the same values, those of the whole batch; or a pass of one batch goes before the wrap, in which case rank 0's values go to all ranks.

## When it is not fixed
Always: it is a refusal, also after DataParallel, whose copies of the model forgot such values at the end of each pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.buffers import parameters_set
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM145", severity=Severity.BLOCKER)
def parameter_set_per_rank(script: Script) -> Iterator[Hit]:
    advice = "set it from the statistics of the whole batch (ddp.mean_all of the means), or by a pass of one batch before the model is wrapped"
    for u in parameters_set(script.modules):
        yield Hit(u.node, f"the parameter {u.name} is set from a rank's part of the batch: the ranks would train different models", advice=advice)
