"""A GradScaler is used with bfloat16.

## What it finds
A GradScaler in a program whose autocast calls all say `dtype=torch.bfloat16`.

## Why it matters
bfloat16 has the range of float32: gradients do not vanish, and there is nothing to scale. The scaler is harmless, but waits for the GPU in every step.

## Example
```python
scaler = torch.amp.GradScaler("cuda")
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(x), y)
```
does the same without the scaler, or with
```python
scaler = torch.amp.GradScaler("cuda", enabled=False)
```

## When it is not fixed
Always: a scaler also leaves out steps whose gradients are infinite, and its state may be in checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts import precision
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM320", severity=Severity.NOTE)
def scaler_with_bfloat16(script: Script) -> Iterator[Hit]:
    types = [script.argument(c, "dtype", 1) for c in script.roles.calls if precision.is_autocast(script.roles, c)]
    if not types or any(t is None or script.names.dotted(t) != "torch.bfloat16" for t in types):
        return
    for call in script.roles.calls:
        if precision.is_scaler(script.roles, call) and script.argument(call, "enabled") is None:
            yield Hit(call, "bfloat16 needs no GradScaler: it only waits for the GPU in every step", advice="pass enabled=False, or drop the scaler")
