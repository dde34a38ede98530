"""Every rank opens an event file.

## What it finds
`SummaryWriter` of `torch.utils.tensorboard` and `tensorboardX`.

## Why it matters
W event files in one folder: the curves of all ranks, mixed.

## Example
```python
writer = SummaryWriter("runs")
```
becomes
```python
writer = ddp.main_only(SummaryWriter, "runs")
```
On the other ranks that is an object whose methods do nothing.

## When it is not fixed
Always fixed.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, MainOnly
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_WRITERS = (
    "torch.utils.tensorboard.SummaryWriter", "torch.utils.tensorboard.writer.SummaryWriter", "tensorboardX.SummaryWriter", "tensorboardX.writer.SummaryWriter",
    "visdom.Visdom", "tensorboardX.FileWriter",
)  # fmt: skip


@rule("DPM503", severity=Severity.WARNING, fix=Fix.SAFE)
def summary_writer(script: Script) -> Iterator[Hit]:
    for call in script.calls(*_WRITERS):
        yield Hit(
            call, "every rank would write an event file of its own", (MainOnly(script.span(call), f"{script.ddp}.main_only"), AddImport(script.import_line))
        )
