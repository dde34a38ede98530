"""Ranks race to create a directory.

## What it finds
`os.mkdir`, `os.makedirs` and `Path.mkdir` without `exist_ok=True`, also behind `if not os.path.exists(…)`.

## Why it matters
Two ranks see that the directory is missing, one creates it, the other fails with FileExistsError.

## Example
```python
if not os.path.isdir("out"):
    os.mkdir("out")
```
becomes
```python
if not os.path.isdir("out"):
    os.makedirs("out", exist_ok=True)
```

## When it is not fixed
Always fixed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Edit, Replace, SetArg
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM505", severity=Severity.ERROR, fix=Fix.SAFE)
def makedirs_race(script: Script) -> Iterator[Hit]:
    for call in script.calls("os.makedirs", "os.mkdir"):
        if _exist_ok(script, call, 2):
            continue
        edits: list[Edit] = [SetArg(script.span(call), "exist_ok", "True")]
        if script.names.dotted(call.func) == "os.mkdir" and isinstance(call.func, ast.Attribute):
            edits.append(Replace(script.span(call.func), f"{script.text(call.func.value)}.makedirs"))
        elif script.names.dotted(call.func) == "os.mkdir":
            continue
        yield Hit(call, "two ranks may create this directory at the same time", tuple(edits))
    for call, _ in script.methods("mkdir"):
        if not _exist_ok(script, call, 2):
            yield Hit(call, "two ranks may create this directory at the same time", (SetArg(script.span(call), "exist_ok", "True", 2),))


def _exist_ok(script: Script, call: ast.Call, index: int) -> bool:
    given = script.argument(call, "exist_ok", index)
    return given is not None and not (isinstance(given, ast.Constant) and given.value is False)
