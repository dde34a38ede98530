"""Gradients are clipped at every batch, though the optimizer steps once in several.

## What it finds
`clip_grad_norm_` and `clip_grad_value_` outside the test under which the optimizer steps, in a loop that accumulates gradients.

## Why it matters
What is clipped is the sum of a part of the window, again and again: the first batches of a window count for less. The migrated program does the same as the
original, so this is no fault of the migration; but it has to average the gradients at every batch for it (DPM308).

## Example
```python
loss.backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
if (i + 1) % k == 0:
    optimizer.step()
```
is meant to be
```python
loss.backward()
if (i + 1) % k == 0:
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
```

## When it is not fixed
Always: the fix changes the numbers of the original.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.accumulation import clipped_in_every_turn
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM312", severity=Severity.NOTE)
def clip_inside_window(script: Script) -> Iterator[Hit]:
    for node in clipped_in_every_turn(script):
        yield Hit(
            node,
            "gradients are clipped at every batch, before the window is complete: right as the original is, but not what is usually meant",
            advice="clip where the optimizer steps; gradients then need to be averaged only there",
        )
