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

A term that is a sum, beside terms that are means or do not depend on the batch, is scaled by itself:
```python
loss = F.mse_loss(out, x) + ddp.sum_term(-0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum())
```
Its value is W times that of the rank's part, so that the mean of the ranks' losses, which is printed or decides, is that of the global batch; under
`no_grad`, where an evaluation has whole batches, it stays as it is.

A sum that is differentiated for its samples alone (`model(x).sum().backward()`, then `x.grad`, and `zero_grad()` before the optimizer steps) stays as it is:
each sample has the gradient that one process gives it.

## When it is not fixed
When a function of the program gives a mean or a sum, as a setting says (DPM305).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Edit, Wrap
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import scaled_backward


@rule("DPM301", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def sum_loss(script: Script) -> Iterator[Hit]:
    terms: dict[int, ast.expr] = {}
    for call in script.roles.backwards:
        if call in script.alone:
            continue
        loss = script.losses.of_backward(call)
        if loss.norm is Norm.MEAN:
            sums = (e for e in script.losses.sums_in(call) if not script.whole(e))
            # a sum over weights, as a penalty, is the same on all ranks
            terms |= {id(e): e for e in sums if not script.executed.the_same(e, ())}
        if not script.sums(call):
            continue
        why = f" ({loss.why})" if loss.why and loss.norm is Norm.SUM else ""
        yield Hit(call, f"the loss is a sum{why}: averaged gradients would be W times too small", (scaled_backward(script, call),))
    for term in terms.values():
        yield Hit(term, "this term of the loss is a sum over the batch, and others are not: its gradient would be W times too small", (_scaled(script, term),))


def _scaled(script: Script, term: ast.expr) -> Edit:
    return Wrap(script.span(term), f"{script.ddp}.sum_term({{}})")
