"""The batch stays on the CPU: DataParallel moved it.

## What it finds
Calls of a model that was in DataParallel with a part of the batch as the loader gave it, never moved to a device (`model(images)`, `model(Variable(images))`),
or with a tensor that the program has made on the CPU, wherever it has (`model(torch.randn(8, 16))`, `model(noise(8, "cpu"))`).

## Why it matters
DataParallel's `forward` copies its inputs to the GPUs. DistributedDataParallel does so with `device_ids` alone (`ddp.wrap(model, move_inputs=True)`, which is
written where training may give the model something else that nothing has moved). Evaluation calls the bare module, and under plain `python` there is no
wrapper: both end with "Expected all tensors to be on the same device". Targets were never moved by either.

## Example
```python
for images, target in val_loader:
    output = model(images)
```
becomes
```python
for images, target in ddp.shard(val_loader):
    output = model.module(images.to(ddp.device()))
```

## When it is not fixed
In a program that runs on one GPU as well (`if torch.cuda.device_count() > 1: model = nn.DataParallel(model)`) and moves something that it gives the model, the
rest is left where it is: `pack_padded_sequence` wants lengths on the CPU.

A batch that is handed on as a whole (`for batch in loader: model(batch)`) is told: it may be a dict or a list, which has no `to`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.facts.unmoved import given
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM221", severity=Severity.ERROR, fix=Fix.SAFE)
def batch_left_on_cpu(script: Script) -> Iterator[Hit]:
    if not script.from_data_parallel:
        return
    for g in given(script):
        if g.unmoved in ("part", "tensor"):
            edits = (Wrap(script.span(g.node), f"{{}}.to({script.ddp}.device())"), AddImport(script.import_line))
            what = "tensor" if g.unmoved == "tensor" else "part of the batch"
            yield Hit(g.node, f"DataParallel moved this {what} to the GPU", edits)
        elif g.unmoved:
            yield Hit(
                g.node,
                "DataParallel moved this batch to the GPU",
                severity=Severity.WARNING,
                advice=f"move its tensors to {script.ddp}.device() in the loop",
            )
