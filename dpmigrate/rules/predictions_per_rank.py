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
twice with which the sampler makes the shares equal. Where the loader need not shuffle, they come in its order: `ddp.gather_all(preds, order="samples")`
takes the samples of the ranks in turn, as the sampler deals them, and `order="batches"` does so for each batch of a list of batches. A list of which it is
not known that each batch adds one element a sample is gathered rank after rank, and the report says so.
Lists that a function of the program fills there, and does nothing else with, are gathered as well
(`decode(preds, out)` with `preds.extend(…)` in it).

## When it is not fixed
Where the evaluation runs in full on every rank (DPM601 says why), there is nothing to gather. In training, lists with one element a batch (DPM602), and lists
that go on from one epoch to the next. Lists beside one of which it is not known what it holds are left as well: some of all ranks and some of one would
not fit together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from dpmigrate.edit import After
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.sample_order import Order, any_order, order
from dpmigrate.facts.script import Script
from dpmigrate.facts.totals import Unclear, totals
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_LEFT = "{} would hold one rank's part of the samples, and {} beside it does"
_ADVICE = "gather all of them (ddp.gather_all({})) if the numbers made from them must cover the epoch"
_UNORDERED = "{} will hold the samples of rank 0 first, then those of rank 1 and so on, not in the order of the loader"
_SORT = "where the order matters, collect the samples' numbers beside them and sort by these"


@rule("DPM606", severity=Severity.WARNING, fix=Fix.SAFE, core=True)
def predictions_per_rank(script: Script) -> Iterator[Hit]:
    for found in script.evaluations:
        if found.rows:
            yield _gathered(script, found.loop.node, found.rows, "")
    for loop in script.roles.train_loops:
        count = script.counting(loop)
        rows = count.rows
        if not rows:
            continue
        left = [name for doubt in totals(script, loop).told if doubt.why is Unclear.LIST for name in doubt.names]
        left = [name for name in left if _used_beside(script, loop.node, name, rows)]
        if left:  # lists of unequal lengths side by side would stop the program
            yield Hit(loop.node, _LEFT.format(", ".join(rows), ", ".join(left)), advice=_ADVICE.format(", ".join([*rows, *left])))
            continue
        over = f", over={script.text(loop.source)}" if loop.branches else ""
        if any_order(count.carried, script.train_loader_calls):
            yield _gathered(script, loop.node, rows, over)
            continue
        orders = {name: order(count.carried, count.filled, script.executed, name) for name in rows}
        if None in orders.values():  # lists that belong together stay in one order
            yield _gathered(script, loop.node, rows, over)
            yield Hit(loop.node, _UNORDERED.format(", ".join(rows)), advice=_SORT)
        else:
            yield _gathered(script, loop.node, rows, over, orders)


def _used_beside(script: Script, loop: ast.AST, name: str, rows: Sequence[str]) -> bool:
    """Whether a call in the function of a loop is given a list together with others: ``accuracy_score(labels, preds)``."""
    function = script.names.function(loop)
    calls = ([*c.args, *(k.value for k in c.keywords)] for c in walk(function) if isinstance(c, ast.Call))
    words = ({n.id for a in given for n in walk(a) if isinstance(n, ast.Name)} for given in calls)
    return any(name in used and used & set(rows) for used in words)


def _gathered(script: Script, node: ast.AST, rows: Sequence[str], over: str, orders: Mapping[str, Order | None] = MappingProxyType({})) -> Hit:
    lines = []
    for kind in dict.fromkeys(map(orders.get, rows)):
        names = ", ".join(name for name in rows if orders.get(name) is kind)
        more = f', order="{kind}"' if kind else ""
        lines.append(f"{names} = {script.ddp}.gather_all({names}{over}{more})")
    return Hit(node, f"{', '.join(rows)} would hold one rank's part of the samples", (After(script.span(node), "\n".join(lines)),))
