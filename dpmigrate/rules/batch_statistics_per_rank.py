"""BatchNorm computes its statistics from a rank's part of the batch.

## What it finds
`nn.BatchNorm*`, or a model of torchvision or timm that has it, in a program that did not use DataParallel.

## Why it matters
One process normalised over the whole batch; each rank now normalises over its part, as DataParallel always did. Gradients differ by several per cent,
more with few samples per rank.

## Example
```python
model = ddp.wrap(model, sync_bn=True)
```
is what `apply --sync-bn` writes: statistics over all ranks, on GPUs.

## When it is not fixed
Without `--sync-bn`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_WITHOUT = ("alexnet", "vgg", "squeezenet", "vit_", "swin", "convnext", "maxvit")


@rule("DPM115", severity=Severity.NOTE)
def batch_statistics_per_rank(script: Script) -> Iterator[Hit]:
    if script.from_data_parallel or script.settings.sync_bn:
        return
    for node in script.names.nodes:
        if isinstance(node, ast.Attribute | ast.Name) and (script.names.dotted(node).startswith("torch.nn.BatchNorm") or _ready_made(script, node)):
            yield Hit(node, "BatchNorm sees a rank's part of the batch", advice="apply --sync-bn keeps the statistics of the whole batch (on GPUs)")
            return


def _ready_made(script: Script, node: ast.AST) -> bool:
    """A call of a library's model that normalises over the batch: all of torchvision's but the few named here."""
    parent = script.names.parent[node]
    if not (isinstance(parent, ast.Call) and parent.func is node):
        return False
    dotted = script.names.dotted(node)
    if dotted.startswith("torchvision.models."):
        return not dotted.rsplit(".", 1)[-1].lower().startswith(_WITHOUT) or dotted.endswith("_bn")
    return dotted == "timm.create_model"
