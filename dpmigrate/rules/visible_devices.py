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

## When it is not fixed
When the assignment is part of a larger expression.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.launch import environment_writes
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import unset


@rule("DPM104", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def visible_devices(script: Script) -> Iterator[Hit]:
    for write in environment_writes(script.names):
        if write.name == "CUDA_VISIBLE_DEVICES":
            yield Hit(
                write.node, "the choice of GPUs belongs to the launch command: CUDA_VISIBLE_DEVICES=… torchrun …", (unset(script, write),),
                advice=f"{script.text(write.node)} is gone: set CUDA_VISIBLE_DEVICES in the shell, and --nproc-per-node to the number of its GPUs",
            )  # fmt: skip
