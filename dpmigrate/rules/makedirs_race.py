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
Where the script is ready for a directory that is there already (`except OSError: pass`) nothing is changed.
Nor is the `mkdir` of other libraries (`sftp.mkdir(path)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Replace, SetArg
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM505", severity=Severity.ERROR, fix=Fix.SAFE)
def makedirs_race(script: Script) -> Iterator[Hit]:
    for call in script.calls("os.makedirs", "os.mkdir"):
        if _exist_ok(script, call, 2) or _caught(script, call):
            continue
        edits: list[Edit] = [SetArg(script.span(call), "exist_ok", "True", 2)]
        if script.names.dotted(call.func) == "os.mkdir":
            plain = isinstance(call.func, ast.Attribute)  # `from os import mkdir` does not bring os
            edits.append(Replace(script.span(call.func), f"{script.text(call.func.value)}.makedirs" if isinstance(call.func, ast.Attribute) else "os.makedirs"))
            edits += [] if plain else [AddImport("import os")]
        yield Hit(call, "two ranks may create this directory at the same time", tuple(edits))
    for call, _ in script.methods("mkdir"):
        if not _exist_ok(script, call, 2) and not _caught(script, call) and (not call.args or _is_mode(call.args[0])):
            yield Hit(call, "two ranks may create this directory at the same time", (SetArg(script.span(call), "exist_ok", "True", 2),))


def _caught(script: Script, call: ast.Call) -> bool:
    """Whether the script is ready for a directory that is there: ``try: os.makedirs(d)``, ``except OSError: pass``."""
    inner: ast.AST = call
    for a in script.names.ancestors(call):
        if isinstance(a, FunctionNode):
            return False
        if isinstance(a, ast.Try) and inner is a.body[-1] and any(_expects(h) for h in a.handlers):
            return True
        inner = a
    return False


def _expects(handler: ast.ExceptHandler) -> bool:
    kinds = [handler.type] if not isinstance(handler.type, ast.Tuple) else handler.type.elts
    known = any(k is None or ast.unparse(k).rpartition(".")[2] in _EXPECTED for k in kinds)
    return known and not any(isinstance(n, ast.Raise | ast.Call) for s in handler.body for n in ast.walk(s) if not _asks_errno(handler, n))


def _asks_errno(handler: ast.ExceptHandler, node: ast.AST) -> bool:
    """``if e.errno != errno.EEXIST: raise`` lets only other errors through."""
    return isinstance(node, ast.Raise) and node.exc is None and any("EEXIST" in ast.unparse(s) for s in handler.body)


_EXPECTED = frozenset({"OSError", "IOError", "EnvironmentError", "FileExistsError", "Exception"})


def _is_mode(node: ast.expr) -> bool:
    """``path.mkdir(0o755)``; a name there is another library's ``mkdir(path)``."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _exist_ok(script: Script, call: ast.Call, index: int) -> bool:
    given = script.argument(call, "exist_ok", index)
    return given is not None and not (isinstance(given, ast.Constant) and given.value is False)
