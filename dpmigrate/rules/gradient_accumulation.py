"""Gradients are averaged at every batch, though the optimizer steps once in several.

## What it finds
Training loops that call `optimizer.step()` only in some turns (`if (i + 1) % k == 0`, a counter), and inner loops `for k in range(n)` that only
add gradients up.

## Why it matters
The result is right, but every backward waits for the other ranks: 24 small steps took 1.29 s, and 0.60 s when only every eighth exchanged gradients.
The condition must hold to the last batch: a window that is flushed at the end of the loop without an exchange lets the ranks drift apart (1e-2) without
an error.

## Example
```python
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y) / k
    loss.backward()
    if (i + 1) % k == 0:
        optimizer.step()
        optimizer.zero_grad()
```
becomes
```python
for i, (x, y) in enumerate(loader):
    with ddp.accumulate(model, sync=(i + 1) % k == 0):
        loss = criterion(model(x), y) / k
        loss.backward()
    if (i + 1) % k == 0:
        optimizer.step()
        optimizer.zero_grad()
```
Where the optimizer steps after the loop as well, the last batch is exchanged too: `sync=(i + 1) % k == 0 or i + 1 == len(loader)`. `k` and `loss / k` stay as
they are: each rank takes its part of every batch, so a window still holds `k` global batches.

## When it is not fixed
Where the test is not known before the forward pass (it asks the loss), forward or backward stands in another function or under a test, gradients are clipped
or used outside the test, or the loop is left early and then flushed. The program stays right, and as slow as it would be.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, Enclose
from dpmigrate.facts.accumulation import windows
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM308", severity=Severity.NOTE, fix=Fix.SAFE)
def gradient_accumulation(script: Script) -> Iterator[Hit]:
    for w in windows(script):
        if w.problem:
            yield Hit(
                w.backward, f"gradients are averaged at every batch, though the optimizer steps once in several: right, but slower ({w.problem})",
                advice="keep forward, backward and `if (i + 1) % k == 0: optimizer.step()` in one block of the loop",
            )  # fmt: skip
        else:
            header = f"with {script.ddp}.accumulate({', '.join(w.models)}, sync={w.sync}):"
            edits = (Enclose(script.span(w.first), script.span(w.last), header), AddImport(script.import_line))
            yield Hit(w.backward, "gradients would be averaged at every batch, though the optimizer steps once in several", edits)
