"""Lists of predictions hold one rank's part.

## What it finds
Lists, tensors and arrays that a loop over batches fills and that are read after it: `preds.append(out.cpu())` and `torch.cat(preds)`, `preds.extend(…)`,
`preds += out.tolist()`, `preds = np.append(preds, out)`, `preds = torch.cat((preds, out))`, also with `None` at first, and dicts of such lists.

## Why it matters
F1, AUC, BLEU or mAP of one rank's part are wrong, and the mean of the ranks' values is wrong too: such metrics are not sums over samples. A file of
predictions would hold 1/W of them, in another order.

## Example
```python
for x, y in val_loader:
    preds.append(model(x).argmax(1).cpu())
preds = torch.cat(preds)
```
becomes
```python
for x, y in ddp.shard(val_loader, blocks=True):
    preds.append(model.module(x).argmax(1).cpu())
preds = ddp.gather_all(preds)
preds = torch.cat(preds)
```
Each rank evaluates neighbouring batches, so the lists of the ranks, one after another, are the list of one process, in its order. Every rank holds all of it
and computes the same metric, so decisions agree.

Lists that a training loop fills are gathered where they hold rows, one a sample: the same samples, in another order than their random one.

## When it is not fixed
Where the evaluation runs in full on every rank (DPM601 says why), there is nothing to gather. In training, lists with one element a batch (DPM602), and lists
that go on from one epoch to the next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dpmigrate.edit import After
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM606", severity=Severity.WARNING, fix=Fix.SAFE, core=True)
def predictions_per_rank(script: Script) -> Iterator[Hit]:
    for found in script.evaluations:
        if found.rows:
            yield _gathered(script, found.loop.node, found.rows, "")
    for loop in script.roles.train_loops:
        rows = script.counting(loop).rows
        if rows:
            yield _gathered(script, loop.node, rows, f", over={script.text(loop.source)}" if loop.branches else "")


def _gathered(script: Script, node: ast.AST, rows: Sequence[str], over: str) -> Hit:
    names = ", ".join(rows)
    edit = After(script.span(node), f"{names} = {script.ddp}.gather_all({names}{over})")
    return Hit(node, f"{names} would hold one rank's part of the samples", (edit,))
