"""A schedule goes on when the GradScaler leaves a step out.

## What it finds
With `--amp` in float16: a learning-rate scheduler that is stepped for every batch.

## Why it matters
A GradScaler begins with a scale that is too high for most models, and leaves the first steps out while it comes down. The scheduler steps all the same:
the first learning rates are not used, and torch warns that `lr_scheduler.step()` was called before `optimizer.step()`. Over a long run the few
steps do not matter, and the schedule ends at the same batch as in float32; in a short warm-up they may.

## Example
```python
scale = scaler.get_scale()
scaler.step(optimizer)
scaler.update()
if scaler.get_scale() >= scale:
    scheduler.step()
```
leaves the schedule out together with the step.

## When it is not fixed
Always: keeping the schedule in time with the batches, as it is now, is what most programs mean.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.optimizers import SCHEDULERS
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import scales


@rule("DPM315", severity=Severity.NOTE)
def schedule_before_step(script: Script) -> Iterator[Hit]:
    if not scales(script):
        return
    for call, func in script.methods("step"):
        scheduler = any(v.kind == "call" and v.qual.startswith(SCHEDULERS) for v in script.values.eval(func.value))
        if scheduler and script.roles.region(call) in ("train", "both"):
            yield Hit(
                call,
                "this schedule goes on for every batch, also where the scaler leaves the optimizer's step out (some of the first)",
                advice="in a short warm-up, step it only if scaler.get_scale() did not fall in scaler.update()",
            )
