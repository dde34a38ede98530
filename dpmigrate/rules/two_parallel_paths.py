"""The program has a distributed path beside its DataParallel path.

## What it finds
nn.DataParallel in a program that also sets up DistributedDataParallel, or another framework for several processes. Imports that nothing uses do not
count.

## Why it matters
A second process group would be set up beside the first, and what stands under the program's own tests (`if args.distributed:`) would run in neither way.

## Example
```python
if args.distributed:
    dist.init_process_group("nccl", init_method=args.dist_url)
    model = DistributedDataParallel(model)
else:
    model = nn.DataParallel(model)
```
is migrated from its DataParallel path, where the options decide by their defaults that this is the path taken; the other one ends with a word:
```python
if args.distributed:
    raise SystemExit("start this program with torchrun: its own distributed mode is switched off")
    dist.init_process_group("nccl", init_method=args.dist_url)
    model = DistributedDataParallel(model)
else:
    model = ddp.wrap(model)
```

## When it is not fixed
Where it cannot be told from the options' defaults that the other path is not taken, for instance if the environment decides. The program can run on several
processes as it is, and the report says how it is started:

- a program that calls `mp.spawn` starts its processes itself and is run by plain `python`; under torchrun every one of N processes would start N more;
- a program that waits for `--local_rank` does not get it from torchrun: each process would take itself for the only one, without an error. Its option
  needs `default=int(os.environ.get("LOCAL_RANK", -1))`;
- any other is started by `torchrun --standalone --nproc-per-node=N train.py`.

What to look for there: whether the batch size is divided by the number of processes, whether `set_epoch` is called, and whether validation sums its
counters over the processes.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import Before
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM910", severity=Severity.BLOCKER)
def two_parallel_paths(script: Script) -> Iterator[Hit]:
    for stmt in script.switches:
        stop = 'raise SystemExit("start this program with torchrun: its own distributed mode is switched off")'
        yield Hit(
            stmt, "the program's own distributed mode would set up a second process group", (Before(script.span(stmt), stop),), severity=Severity.WARNING,
            advice="the options of the program's own distributed mode now end it with a word: start it with torchrun, and take that mode out",
        )  # fmt: skip
    if not script.half_migrated:
        return
    call = next(c for c in script.roles.calls if script.values.is_wrap(c))
    start = script.own_start or "start it with torchrun --standalone --nproc-per-node=N"
    advice = f"it can train on several processes as it is: {start}; to have the DataParallel path migrated, remove the other path first"
    yield Hit(call, f"DataParallel in a program that {script.distributed}", advice=advice)
