"""The workers of the training loader are too few for a GPU, or too many for the machine.

## What it finds
Training loaders without workers (`num_workers` missing or 0) over data that are read or changed sample by sample: image folders, a data set of this program
that opens files or applies a transform. And loaders with eight workers and more.

## Why it matters
It changes no number, only the time. Without workers the process that trains reads the data, and its GPU waits; under DDP every rank does so. A number of
workers, on the other hand, is one for each rank: what was right for one process, or for DataParallel with one loader for all GPUs, starts W times as many
processes on the same cores, and takes W times the memory.

## Example
```python
loader = DataLoader(train_set, batch_size=64, shuffle=True)
```
is faster as
```python
loader = DataLoader(train_set, batch_size=64, shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True)
```
A good number is the cores of the machine divided by its GPUs, less one. `pin_memory=True` with `x.to(device, non_blocking=True)` lets the copy to the GPU
run beside the computation; without the one the other does nothing.

## When it is not fixed
Always: what is best depends on the machine and the data. Data that lie in memory (`TensorDataset`) are faster without workers, and are not mentioned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.loaders import critical_star
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_MANY = 8
#: what a data set of this program does with a sample that takes its time
_WORK = frozenset({"open", "imread", "load", "read", "transform", "transforms", "augment", "decode", "resize", "loader", "read_csv", "read_image", "fromarray"})
_FOLDERS = ("torchvision.datasets.", "datasets.ImageFolder")


@rule("DPM216", severity=Severity.NOTE)
def workers_per_rank(script: Script) -> Iterator[Hit]:
    for call in script.train_loader_calls:
        if not script.roles.makes_loader(call) or critical_star(script, call) or any(k.arg is None for k in call.keywords):
            continue
        number = script.argument(call, "num_workers", 5)
        workers = number.value if isinstance(number, ast.Constant) else 0 if number is None else None
        if workers == 0 and _takes_time(script, call):
            yield Hit(call, "every rank reads its data in the process that trains: its GPU waits", advice="give the loader num_workers, and pin_memory=True")
        elif isinstance(workers, int) and workers >= _MANY:
            yield Hit(call, f"{workers} workers for each rank", advice="num_workers is now counted by rank: the cores of the machine divided by its GPUs")


def _takes_time(script: Script, call: ast.Call) -> bool:
    """Whether a sample is read or changed when it is asked for."""
    for v in script.values.eval(script.argument(call, "dataset", 0)):
        if v.kind == "call" and v.qual.startswith(_FOLDERS):
            return True
        method = script.values.defs.method(v.cls, "__getitem__") if v.cls is not None else None
        for c in walk(method) if method is not None else ():
            called = (
                c.func.attr
                if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute)
                else c.func.id
                if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)
                else ""
            )
            if called in _WORK:
                return True
    return False
