"""apex is used for mixed precision or batch statistics.

## What it finds
`apex.amp.initialize` and `apex.parallel.convert_syncbn_model`.

## Why it matters
apex has to be built for the torch and the CUDA that are installed, and its mixed precision is no longer developed: torch has had all of it since 1.6. Where
it can still be built it goes with torch's DistributedDataParallel, as long as the wrap follows `amp.initialize`, which is where it is put.

## Example
```python
model = apex.parallel.convert_syncbn_model(model)
```
becomes
```python
model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
```

## When it is not fixed
`amp.initialize`, `amp.scale_loss` and `amp.master_params` stay. Take them out, so that `loss.backward()` and `clip_grad_norm_(model.parameters(), …)` are left,
and `apply --amp` writes the step with `torch.autocast` and `torch.amp.GradScaler`: that is what opt_level O1 does. O2 and O3 keep the weights in half
precision, for which torch has no exact counterpart; with `--amp` they stay in float32.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import Edit, Replace
from dpmigrate.facts import precision
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import torch_at


@rule("DPM142", severity=Severity.WARNING, fix=Fix.SAFE)
def apex(script: Script) -> Iterator[Hit]:
    for call in script.roles.calls:
        if precision.is_apex(script.roles, call):
            yield Hit(
                call,
                "mixed precision by apex is kept as it is: it has to be built for the torch that is installed, and is no longer developed",
                advice="take amp.initialize, amp.scale_loss and amp.master_params out, and apply --amp: it does with torch.amp what opt_level O1 does",
            )
    for call in script.calls("apex.parallel.convert_syncbn_model"):
        edits: list[Edit] = [Replace(script.span(call.func), "torch.nn.SyncBatchNorm.convert_sync_batchnorm"), *torch_at(script, call)]
        if len(call.args) == 1 and not call.keywords:
            yield Hit(call, "torch has synchronised batch statistics of its own", tuple(edits))
