"""The script sets what torchrun tells each process.

## What it finds
`os.environ["MASTER_ADDR"] = …`, `MASTER_PORT`, `RANK`, `WORLD_SIZE` and `LOCAL_RANK`, also by `setdefault`, `update` and `os.putenv`.

## Why it matters
torchrun has told each process its number and where to meet the others. With another port the processes wait at a place where nobody is, and the program hangs
until the timeout; with another `RANK` or `WORLD_SIZE` each takes itself for the only one.

## Example
```python
os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "12355"
```
goes. A port is chosen on the command line, where one is needed:
```python
# torchrun --standalone --nproc-per-node=2 train.py          finds a free one
# torchrun --master-port 29501 --nproc-per-node=2 train.py
```

## When it is not fixed
When the assignment is part of a larger expression.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.launch import LAUNCH_VARIABLES, environment_writes
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import unset


@rule("DPM704", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def launch_environment(script: Script) -> Iterator[Hit]:
    for write in environment_writes(script.names):
        if write.name in LAUNCH_VARIABLES:
            yield Hit(write.node, f"{write.name} is for torchrun to say: the processes would not find each other", (unset(script, write),))
