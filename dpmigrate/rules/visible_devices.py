"""The script chooses its GPUs by CUDA_VISIBLE_DEVICES.

## What it finds
`os.environ["CUDA_VISIBLE_DEVICES"] = …` in the script.

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

import ast
from collections.abc import Iterator

from dpmigrate.edit import Delete
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM104", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def visible_devices(script: Script) -> Iterator[Hit]:
    for node in script.names.nodes:
        stmt: ast.stmt | None = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            if script.names.dotted(target.value) == "os.environ" and isinstance(target.slice, ast.Constant) and target.slice.value == "CUDA_VISIBLE_DEVICES":
                stmt = node
        elif isinstance(node, ast.Call) and script.names.dotted(node.func) in ("os.environ.setdefault", "os.putenv"):
            if node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == "CUDA_VISIBLE_DEVICES":
                stmt = script.is_statement(node)
        if stmt is not None:
            yield Hit(
                stmt, "the choice of GPUs belongs to the launch command: CUDA_VISIBLE_DEVICES=… torchrun …", (Delete(script.span(stmt)),),
                advice=f"{script.text(stmt)} is gone: set CUDA_VISIBLE_DEVICES in the shell, and --nproc-per-node to the number of its GPUs",
            )  # fmt: skip
