"""The batch size of the script is the global one; each rank must take its share.

## What it finds
The batch size of every training DataLoader.

## Why it matters
DataParallel splits the script's batch over the GPUs; under DDP the loader's batch size is per process. Left alone, the global batch grows
W-fold: W times fewer steps at the same learning rate, another training run. `ddp.local_batch(B)` is B / W; a batch that does not divide is
a clear error at the start. `apply --batch per-rank` keeps the number per rank instead and says what that asks of the learning rate.

## Example
```python
loader = DataLoader(train_set, batch_size=args.batch_size)
```
becomes
```python
loader = DataLoader(train_set, batch_size=ddp.local_batch(args.batch_size))
```

## When it is not fixed
A loader without a batch size has batches of one sample, which cannot be divided.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM202", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def batch_size_not_divided(script: Script) -> Iterator[Hit]:
    if script.settings.batch == "per-rank":
        return
    for call in script.train_loader_calls:
        if not script.reads_statically(call):
            continue
        size = script.argument(call, "batch_size", 1)
        if size is None:
            yield Hit(
                call, "this training loader has batches of one sample: they cannot be divided over ranks", severity=Severity.BLOCKER,
                advice="give the loader a batch_size, or run apply with --batch per-rank",
            )  # fmt: skip
        else:
            yield Hit(
                size,
                "the global batch would grow with the number of ranks",
                (Wrap(script.span(size), f"{script.ddp}.local_batch({{}})"), AddImport(script.import_line)),
            )
