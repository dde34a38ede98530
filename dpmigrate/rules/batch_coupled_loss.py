"""The loss compares the samples of a batch with each other.

## What it finds
Similarity matrices of a batch with itself (`z @ z.T`, `torch.mm(a, b.t())`, `z[:, None] - z[None]`, `z.view(n, 1, d) - z.view(1, n, d)`), in a loss
or in the model, classes that number the samples (`cross_entropy(logits, torch.arange(len(z)))`), losses known for it (NT-Xent, SupCon, triplet
mining), statistics of the batch that go into the loss (`z.std(dim=0)`, `torch.cov(z.T)`), and choices among its samples (`losses.topk(k)`,
`z.softmax(0)`). Samples that are repeated as many times as there are samples (`z.repeat(len(z), 1)`) meet each other, and so do all pairs of their
numbers. Samples taken by their place (`z[:8]`, `z[::2]`) are told, and so are singular values and nuclear norms, where it is not seen whether the
matrix is the batch. Neighbours in the batch meet in `z[1:] - z[:-1]`, in losses of even rows with odd ones, of one half with the other
(`z.chunk(2)`), and in views that put several samples into one row (`z.view(-1, 2, d)`). Rows that the step has put together by itself
(`torch.cat([x1, x2])`) are neighbours on every rank.
Products with parameters and tables (`z @ self.weight.t()`) compare no samples, and neither does attention.

## Why it matters
With the batch divided, each rank compares only its own samples: fewer negatives, another objective (83 % gradient error measured).

## Example
```python
logits = z1 @ z2.t()
loss = F.cross_entropy(logits, torch.arange(len(z1)))
```
becomes, where executing the result shows that this makes the loss that of the global batch (DPM302):
```python
logits = ddp.batch_rows(z1) @ ddp.batch_rows(z2.t(), dim=1)
loss = F.cross_entropy(logits, torch.arange(ddp.batch_sum(len(z1))))
```
`ddp.batch_rows` has the rows of all ranks, in the order of the global batch, with W times the gradient of the rank's own: each rank makes the whole loss, and
what DDP averages are the gradients of one process. It costs an exchange of the rows, and the loss of the global batch on every rank.

## When it is not fixed
By `check`, which does not execute the program, and where apply does not understand all of such a loss: code of others, choices among the samples of
which each rank has another number, sequences that are filled up, layers with parameters behind the comparison, what is drawn for pairs, targets that are
compared under `torch.no_grad()`, memory banks. Samples by their place, and neighbours where the first axis may be another one than
the batch's (recurrent layers without `batch_first`, a `collate_fn`), are told. Two samples that belong together are best given by the data set as one.
Where every loss is shown to be a mean over the samples, nothing of this is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import shorten

from dpmigrate.facts.coupled import couplings
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_SAID = {
    "compared": "{text} is taken for a comparison of the samples of a batch, since both of its sides are made of the batch: a part of it gives another loss",
    "classes": "{text} is taken for a loss whose classes are the samples of the batch, since its labels number them: a part of the batch gives another loss",
    "statistic": "{text} is taken for a statistic over the samples of the batch that the loss is made of: a part of the batch gives another one",
    "ordered": "{text} is taken to sort or to normalise over the samples of the batch: a part of the batch gives other values",
    "decomposed": "{text} is of the whole matrix, whose rows are the samples of the batch unless each sample has one of its own",
    "given": "{text} is taken to hold a value over the samples of the batch, and the model is given it: every rank has another one, of its part",
    "beside": "{text} is taken to compare samples with those beside them in the batch: in a part of the batch they have other neighbours",
    "placed": "{text} is taken for samples that are chosen by their place in the batch: every rank takes as many, of its own part",
    "named": "{text} is taken, by its name, for a loss that compares the samples of a batch with each other",
}
_GATHER = "gather the features of all ranks with gradient before they are compared, or train with one process"
_ADVICE = {
    "decomposed": "where its rows are the samples, gather those of all ranks with gradient first, or train with one process",
    "given": "take it of each sample, or of the data set, or over all ranks (torch.distributed.all_reduce)",
    "beside": "let the data set give samples that belong together as one",
    "placed": "choose them by something of their own, or let the data set give them as a part of each sample",
}


@rule("DPM303", severity=Severity.BLOCKER)
def batch_coupled_loss(script: Script) -> Iterator[Hit]:
    for found in couplings(script):
        named = found.node.func if found.kind == "named" and isinstance(found.node, ast.Call) else found.node
        message = _SAID[found.kind].format(text=shorten(script.text(named), 80, placeholder=" …"))
        yield Hit(found.node, message, severity=Severity.BLOCKER if found.certain else Severity.WARNING, advice=_ADVICE.get(found.kind, _GATHER), of_means=True)
