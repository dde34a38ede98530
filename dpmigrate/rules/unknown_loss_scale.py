"""How the loss depends on the batch size cannot be established.

## What it finds
A loss that comes from a function outside of the program, from the model itself, or mixes means and sums; a loss of torch that is given a sum, a mean or a
count over the batch (`bce(z - z.mean(), y)`, `pos_weight=neg.sum() / pos.sum()`).

## Why it matters
A mean over the batch stays right under DDP. A sum becomes W times too small, and a loss that compares the samples of a batch with each other
(contrastive, triplet) sees only the rank's own samples.

## Example
```python
loss = model(images, targets)
loss.backward()
```
is right if the model gives a mean over its batch.

## When it is not fixed
Always: the program is migrated, and the author has to look at this one line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import shorten

from dpmigrate.facts.losses import Norm
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM305", severity=Severity.WARNING)
def unknown_loss_scale(script: Script) -> Iterator[Hit]:
    for call in script.roles.backwards:
        loss = script.losses.of_backward(call)
        if loss.norm in (Norm.UNKNOWN, Norm.CONST):
            what = shorten(script.text(loss.node), 60, placeholder=" …")
            corner = script.values.lookups.behind(loss.node.func) if isinstance(loss.node, ast.Call) else ""
            unseen = f" ({ast.unparse(loss.node.func)} is found by {corner} when the program runs)" if corner and isinstance(loss.node, ast.Call) else ""
            why = loss.why or f"what {what} is normalised by is not known{unseen}"
            yield Hit(
                call, f"{why}: right only if the loss is a mean over the samples of the batch",
                advice="if it is a sum, write ddp.sum_loss(loss).backward(); if it compares samples with each other, gather them first",
            )  # fmt: skip
