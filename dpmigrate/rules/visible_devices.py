"""The script chooses its GPUs by CUDA_VISIBLE_DEVICES.

## What it finds
`os.environ["CUDA_VISIBLE_DEVICES"] = …` in the script, also by `setdefault`, `update` and `os.putenv`.

## Why it matters
Every rank would see the same few GPUs, often one; the second rank fails with "invalid device ordinal". The choice belongs to the command that starts
the program.

## Example
```python
os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
```
goes, and the program is started with
```python
# CUDA_VISIBLE_DEVICES=0,1 torchrun --standalone --nproc-per-node=2 train.py
```

`torch.cuda.device_count()` counted the GPUs that the program had chosen. Where something is multiplied by it (a batch size, a learning rate), it would
count all GPUs of the machine, and the number that it was is written instead: `batch_size = 64 * 2`.

## When it is not fixed
When the assignment is part of a larger expression. Where the choice is an option, or one of several, the number that was counted is not known: this is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Replace
from dpmigrate.facts.copies import multiplied
from dpmigrate.facts.launch import chosen_gpus, environment_writes
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import unset


@rule("DPM104", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def visible_devices(script: Script) -> Iterator[Hit]:
    writes = [w for w in environment_writes(script.names) if w.name == "CUDA_VISIBLE_DEVICES"]
    for write in writes:
        needed = "; the program reads it later, and stops where it is not set" if _is_needed(script) else ""
        yield Hit(
            write.node, "the choice of GPUs belongs to the launch command: CUDA_VISIBLE_DEVICES=… torchrun …", (unset(script, write),),
            advice=f"{script.text(write.node)} is gone: set CUDA_VISIBLE_DEVICES in the shell, and --nproc-per-node to the number of its GPUs{needed}",
        )  # fmt: skip
    for call in multiplied(script.roles) if writes else ():
        words = f"{script.text(call)} counted the GPUs that the program had chosen, and counts all of the machine without that choice"
        number = chosen_gpus(script.names)
        if number is not None:
            yield Hit(call, words, (Replace(script.span(call), str(number)),))
        else:
            yield Hit(
                call, f"{words}: what is multiplied by it, as a batch size, grows", severity=Severity.WARNING,
                advice="write the number of GPUs that it means, or let the command that starts the program choose as many",
            )  # fmt: skip


def _is_needed(script: Script) -> bool:
    """Whether the program reads the variable so that it has to be there: ``os.environ["CUDA_VISIBLE_DEVICES"].split(",")``."""
    reads = (n for n in script.names.nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load))
    return any(
        isinstance(n.slice, ast.Constant) and n.slice.value == "CUDA_VISIBLE_DEVICES" and script.names.dotted(n.value) == "os.environ" for n in reads
    )
