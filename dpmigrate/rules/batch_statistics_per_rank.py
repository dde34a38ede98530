"""BatchNorm computes its statistics from a rank's part of the batch.

## What it finds
`nn.BatchNorm*`, a model of torchvision or timm that has it, and what a model computes over the batch by itself, in a program that did not use
DataParallel, or that left itself one GPU (`os.environ["CUDA_VISIBLE_DEVICES"] = "0"`): spreads (`x / x.std(0)`), and the means of a normalisation of
its own, which it takes in training alone or keeps in a buffer.

## Why it matters
One process normalised over the whole batch; each rank now normalises over its part, as DataParallel always did. Gradients differ by several per cent,
more with few samples per rank.

## Example
```python
model = ddp.wrap(model, sync_bn=True)
```
is what `apply --sync-bn` writes: statistics over all ranks, on GPUs.

## When it is not fixed
Without `--sync-bn`; what a model computes by itself never.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.launch import chosen_gpus
from dpmigrate.facts.layers import batch_norm, by_hand
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM115", severity=Severity.NOTE)
def batch_statistics_per_rank(script: Script) -> Iterator[Hit]:
    if script.from_data_parallel and chosen_gpus(script.names) != 1:
        return
    for call in by_hand(script.modules):
        yield Hit(
            call, f"{script.text(call)} is a statistic of a rank's part of the batch", advice="other numbers than on one GPU; --sync-bn does not reach it"
        )
    node = batch_norm(script.names)
    if node is not None and not script.settings.sync_bn:
        yield Hit(node, "BatchNorm sees a rank's part of the batch", advice="apply --sync-bn keeps the statistics of the whole batch (on GPUs)")
