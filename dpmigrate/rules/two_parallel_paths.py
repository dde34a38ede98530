"""The program has a distributed path beside its DataParallel path.

## What it finds
nn.DataParallel in a program that also sets up DistributedDataParallel, or another framework for several processes.

## Why it matters
A second process group would be set up beside the first. The program can run on several processes as it is, with its own options; the DataParallel path is
what its author keeps for one process.

## Example
```python
if args.distributed:
    model = DistributedDataParallel(model)
else:
    model = nn.DataParallel(model)
```
is started in its own distributed mode.

## When it is not fixed
Always: it is a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM910", severity=Severity.BLOCKER)
def two_parallel_paths(script: Script) -> Iterator[Hit]:
    if not script.half_migrated:
        return
    call = next(c for c in script.roles.calls if script.values.is_wrap(c))
    advice = "use the program's own distributed mode, or remove one of the two paths first"
    yield Hit(call, f"DataParallel in a program that {script.distributed}", advice=advice)
