"""The loss compares the samples of a batch with each other.

## What it finds
Similarity matrices of a batch with itself (`z @ z.T`, `torch.mm(a, b.t())`, `z[:, None] - z[None]`), in a loss or in the model, classes that number
the samples (`cross_entropy(logits, torch.arange(len(z)))`), losses known for it (NT-Xent, SupCon, triplet mining), statistics of the batch that go into
the loss (`z.std(dim=0)`, `torch.cov(z.T)`), and choices among its samples (`losses.topk(k)`, `z.softmax(0)`). Samples that are repeated as many times as
there are samples (`z.repeat(len(z), 1)`) meet each other, and so do all pairs of their numbers. Samples taken by their place (`z[:8]`, `z[::2]`) are told.
Products with parameters and tables (`z @ self.weight.t()`) compare no samples, and neither does attention.

## Why it matters
With the batch divided, each rank compares only its own samples: fewer negatives, another objective (83 % gradient error measured).

## Example
```python
logits = z1 @ z2.t()
loss = F.cross_entropy(logits, torch.arange(len(z1)))
```
has to gather the rows of all ranks, with gradient, before the product.

## When it is not fixed
Always: it is a refusal, but for samples by their place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.coupled import couplings
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_SAID = {
    "compared": "the samples of a batch are compared with each other: with the batch divided this is another loss",
    "classes": "the classes of this loss are the samples of the batch: with the batch divided this is another loss",
    "statistic": "{text} is a statistic of the batch: of a part of the batch it is another one",
    "ordered": "{text} puts the samples of the batch in order or in proportion: in a part of the batch it is another one",
    "placed": "{text} are samples by their place in the batch: every rank takes as many, of its own part",
    "named": "{text} compares the samples of a batch with each other",
}


@rule("DPM303", severity=Severity.BLOCKER)
def batch_coupled_loss(script: Script) -> Iterator[Hit]:
    gather = "gather the features of all ranks with gradient before they are compared, or train with one process"
    choose = "choose them by something of their own, or let the data set give them as a part of each sample"
    for found in couplings(script):
        named = found.node.func if found.kind == "named" and isinstance(found.node, ast.Call) else found.node
        message = _SAID[found.kind].format(text=script.text(named))
        if found.kind == "placed":
            yield Hit(found.node, message, severity=Severity.WARNING, advice=choose)
        else:
            yield Hit(found.node, message, advice=gather)
