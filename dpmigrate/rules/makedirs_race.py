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
`mkdir` of other libraries (`sftp.mkdir(path)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Replace, SetArg
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM505", severity=Severity.ERROR, fix=Fix.SAFE)
def makedirs_race(script: Script) -> Iterator[Hit]:
    for call in script.calls("os.makedirs", "os.mkdir"):
        if _exist_ok(script, call, 2):
            continue
        edits: list[Edit] = [SetArg(script.span(call), "exist_ok", "True", 2)]
        if script.names.dotted(call.func) == "os.mkdir":
            plain = isinstance(call.func, ast.Attribute)  # `from os import mkdir` does not bring os
            edits.append(Replace(script.span(call.func), f"{script.text(call.func.value)}.makedirs" if isinstance(call.func, ast.Attribute) else "os.makedirs"))
            edits += [] if plain else [AddImport("import os")]
        yield Hit(call, "two ranks may create this directory at the same time", tuple(edits))
    for call, _ in script.methods("mkdir"):
        if not _exist_ok(script, call, 2) and (not call.args or _is_mode(call.args[0])):
            yield Hit(call, "two ranks may create this directory at the same time", (SetArg(script.span(call), "exist_ok", "True", 2),))


def _is_mode(node: ast.expr) -> bool:
    """``path.mkdir(0o755)``; a name there is another library's ``mkdir(path)``."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _exist_ok(script: Script, call: ast.Call, index: int) -> bool:
    given = script.argument(call, "exist_ok", index)
    return given is not None and not (isinstance(given, ast.Constant) and given.value is False)
