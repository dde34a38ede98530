"""Lists of predictions hold one rank's part.

## What it finds
Lists, tensors and arrays that a loop over batches fills and that are read after it: `preds.append(out.cpu())` and `torch.cat(preds)`, `preds.extend(…)`,
`preds += out.tolist()`, `preds = np.append(preds, out)`, `preds = torch.cat((preds, out))`, also with `None` at first, and dicts of such lists. Whether a
tensor or array begins without rows is known from its text or its execution: `torch.zeros(0, 4)`, `torch.tensor(())`, what a function makes.

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

Lists that a training loop fills are gathered where they hold rows, one a sample: the same samples, in another order than their random one, and those
twice with which the sampler makes the shares equal. So are those that a function of the program fills there, and does nothing else with
(`decode(preds, out)` with `preds.extend(…)` in it).

## When it is not fixed
Where the evaluation runs in full on every rank (DPM601 says why), there is nothing to gather. In training, lists with one element a batch (DPM602), and lists
that go on from one epoch to the next. Lists beside one of which it is not known what it holds are left as well: some of all ranks and some of one would
not fit together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dpmigrate.edit import After
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.facts.totals import Unclear, totals
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_LEFT = "{} would hold one rank's part of the samples, and {} beside it does"
_ADVICE = "gather all of them (ddp.gather_all({})) if the numbers made from them must cover the epoch"


@rule("DPM606", severity=Severity.WARNING, fix=Fix.SAFE, core=True)
def predictions_per_rank(script: Script) -> Iterator[Hit]:
    for found in script.evaluations:
        if found.rows:
            yield _gathered(script, found.loop.node, found.rows, "")
    for loop in script.roles.train_loops:
        rows = script.counting(loop).rows
        if not rows:
            continue
        left = [name for doubt in totals(script, loop).told if doubt.why is Unclear.LIST for name in doubt.names]
        left = [name for name in left if _used_beside(script, loop.node, name, rows)]
        if left:  # lists of unequal lengths side by side would stop the program
            yield Hit(loop.node, _LEFT.format(", ".join(rows), ", ".join(left)), advice=_ADVICE.format(", ".join([*rows, *left])))
        else:
            yield _gathered(script, loop.node, rows, f", over={script.text(loop.source)}" if loop.branches else "")


def _used_beside(script: Script, loop: ast.AST, name: str, rows: Sequence[str]) -> bool:
    """Whether a call in the function of a loop is given a list together with others: ``accuracy_score(labels, preds)``."""
    function = script.names.function(loop)
    calls = ([*c.args, *(k.value for k in c.keywords)] for c in walk(function) if isinstance(c, ast.Call))
    words = ({n.id for a in given for n in walk(a) if isinstance(n, ast.Name)} for given in calls)
    return any(name in used and used & set(rows) for used in words)


def _gathered(script: Script, node: ast.AST, rows: Sequence[str], over: str) -> Hit:
    names = ", ".join(rows)
    edit = After(script.span(node), f"{names} = {script.ddp}.gather_all({names}{over})")
    return Hit(node, f"{names} would hold one rank's part of the samples", (edit,))
