"""The program has a distributed path beside its DataParallel path.

## What it finds
nn.DataParallel in a program that also sets up DistributedDataParallel, or another framework for several processes. Imports that nothing uses do not
count.

## Why it matters
A second process group would be set up beside the first, and what stands under the program's own tests (`if args.distributed:`) would run in neither way.
The program can run on several processes as it is, with its own options; the DataParallel path is what its author keeps for one process. The report
says how the other one is started:

- a program that calls `mp.spawn` starts its processes itself and is run by plain `python`; under torchrun every one of N processes would start N more;
- a program that waits for `--local_rank` does not get it from torchrun: each process would take itself for the only one, without an error. Its option
  needs `default=int(os.environ.get("LOCAL_RANK", -1))`;
- any other is started by `torchrun --standalone --nproc-per-node=N train.py`.

## Example
```python
if args.distributed:
    model = DistributedDataParallel(model)
else:
    model = nn.DataParallel(model)
```
is started in its own distributed mode. What to look for there: whether the batch size is divided by the number of processes, whether `set_epoch` is
called, and whether validation sums its counters over the processes.

## When it is not fixed
Always: it is a refusal. Remove the distributed path and the program is migrated from its DataParallel path, with the global batch kept.
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
    start = script.own_start or "start it with torchrun --standalone --nproc-per-node=N"
    advice = f"it can train on several processes as it is: {start}; to have the DataParallel path migrated, remove the other path first"
    yield Hit(call, f"DataParallel in a program that {script.distributed}", advice=advice)
