"""The model is evaluated through the wrapper.

## What it finds
Calls of a wrapped model outside training: in evaluation loops, for samples and pictures.

## Why it matters
The wrapper's forward may talk to the other ranks (buffers). Ranks that have a different number of batches, or a part of the program that only one
rank runs, then hang. Evaluation needs no gradients, so it calls the bare module.

## Example
```python
output = model(images)
```
becomes, in an evaluation loop,
```python
output = model.module(images)
```

## When it is not fixed
Functions that training and evaluation share keep the wrapper, which is right for both as long as all ranks evaluate the same number of batches.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import bare


@rule("DPM612", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def evaluation_through_wrapper(script: Script) -> Iterator[Hit]:
    for p in script.roles.forwards:
        if script.roles.region(p.call) in ("train", "both"):
            continue
        if script.roles.wrapped(p.model) is not False:
            yield Hit(p.call, "evaluation goes through the bare module, so that no rank waits for another", (bare(script, p.model),))
