"""A metric of a library would count the evaluation set once for every rank.

## What it finds
Metrics of torchmetrics, Ignite, Catalyst and old versions of Lightning, also in a `MetricCollection`, that are updated in evaluation.

## Why it matters
An evaluation that feeds such a metric runs in full on every rank, so each rank's metric is complete. But `compute()` puts the metrics of all ranks together
where a process group exists: counts, sums and confusion matrices become W times too large, and a `compute()` that one rank reaches alone waits for ever.

## Example
```python
accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=10)
```
becomes
```python
accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=10, sync_on_compute=False)
```

A metric that only training updates stays as it is: every rank has seen its share, and `compute()` puts them together.

## When it is not fixed
A metric that both training and evaluation update needs both; it is reported. So is a metric of a library other than torchmetrics: its constructor has no
argument that keeps `compute()` from putting the ranks together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import SetArg
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: libraries whose metrics put the ranks together in ``compute()`` as soon as there is a process group, by the beginning of the dotted name
_SYNCED = ("torchmetrics.", "pytorch_lightning.metrics.", "ignite.metrics.", "ignite.contrib.metrics.", "catalyst.metrics.")
_HOLDERS = frozenset({"MetricCollection", "MetricTracker", "MultioutputWrapper", "ClasswiseWrapper", "MinMaxMetric"})


@rule("DPM608", severity=Severity.WARNING, fix=Fix.SAFE)
def metric_synced_twice(script: Script) -> Iterator[Hit]:
    for call in script.roles.calls:
        if not _makes_metric(script, call) or script.argument(call, "sync_on_compute") is not None or any(k.arg is None for k in call.keywords):
            continue
        holder = next((a for a in script.names.ancestors(call) if isinstance(a, ast.Call) and _last(script, a) in _HOLDERS), call)
        regions = {script.roles.batches_at(n) for n in _updates(script, holder)}
        if regions and not regions & {"train", "both"}:
            message = "every rank sees the whole evaluation set, and compute() would add the ranks up"
            if script.names.dotted(call.func).startswith("torchmetrics."):
                yield Hit(call, message, (SetArg(script.span(call), "sync_on_compute", "False"),))
            else:
                yield Hit(call, message, advice="use the metric of torchmetrics, which takes sync_on_compute=False")
        elif regions & {"train", "both"} and regions != {"train"}:
            yield Hit(
                call,
                "training updates this metric with each rank's share, evaluation with the whole set: compute() adds the ranks up after both",
                advice="make a second metric with sync_on_compute=False for the evaluation",
            )


def _last(script: Script, call: ast.Call) -> str:
    """The name of the metric class that is called; '' for anything else."""
    dotted = script.names.dotted(call.func)
    return dotted.rpartition(".")[2] if dotted.startswith(_SYNCED) else ""


def _makes_metric(script: Script, call: ast.Call) -> bool:
    name = _last(script, call)
    return name[:1].isupper() and name not in _HOLDERS


def _updates(script: Script, metric: ast.Call) -> Iterator[ast.Call]:
    """The calls that give the metric something: ``metric(out, y)``, ``metric.update(out, y)``."""
    for n in script.roles.calls:
        receiver = n.func.value if isinstance(n.func, ast.Attribute) and n.func.attr in ("update", "forward") else n.func
        if any(v.node is metric for v in script.values.eval(receiver)):
            yield n
