"""The weights are averaged by torch's own tools.

## What it finds
`AveragedModel` and `update_bn` of `torch.optim.swa_utils`, given a wrapped model or a training loader.

## Why it matters
`AveragedModel` copies what it is given: a copy of the wrapper would be a second wrapper, which exchanges gradients that nobody wants and has `module.` before
every key. The weights of all ranks are equal, so each rank averages for itself, from the model behind the wrapper. `update_bn` takes BatchNorm's statistics
from one pass over the loader: a rank's own batches would give each rank other statistics, so every rank goes through all of them, in the global batch size.

## Example
```python
averaged = AveragedModel(model)
averaged.update_parameters(model)
update_bn(loader, averaged)
```
becomes
```python
averaged = AveragedModel(model.module)
averaged.update_parameters(model.module)
update_bn(ddp.whole(loader), averaged)
```

## When it is not fixed
`SWALR` needs nothing. The pass of `update_bn` is not shared out: it takes as long as on one GPU. An order that was shuffled is that of the data set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Edit, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import bare

_TOOLS = "torch.optim.swa_utils."


@rule("DPM128", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def averaged_model(script: Script) -> Iterator[Hit]:
    for call in script.calls(f"{_TOOLS}AveragedModel"):
        yield from _bare(script, script.argument(call, "model", 0), "the average would be a copy of the wrapper")
    for call, func in script.methods("update_parameters"):
        if any(v.qual == f"{_TOOLS}AveragedModel" for v in script.values.eval(func.value)):
            yield from _bare(script, script.argument(call, "model", 0), "the average is over the model, not over its wrapper")
    for call in script.calls(f"{_TOOLS}update_bn"):
        yield from _bare(script, script.argument(call, "model", 1), "BatchNorm's statistics are taken through the wrapper")
        loader = script.argument(call, "loader", 0)
        if loader is not None and script.roles.loaders_of(loader) & script.train_loaders:
            whole: Edit = Wrap(script.span(loader), f"{script.ddp}.whole({{}})")
            yield Hit(loader, "every rank would take BatchNorm's statistics from its own batches", (whole,))


def _bare(script: Script, model: ast.expr | None, why: str) -> Iterator[Hit]:
    if model is not None and any(v.kind == "wrapped" for v in script.roles.model_vals(model)):
        yield Hit(model, why, (bare(script, model),))
