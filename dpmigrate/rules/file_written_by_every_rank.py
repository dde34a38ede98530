"""A file is opened for writing by every rank.

## What it finds
`open(path, "w")` and the other writing modes, `logging.FileHandler(path)`, `logging.basicConfig(filename=…)`.

## Why it matters
The ranks overwrite each other, or their lines are mixed.

## Example
```python
log = open("log.csv", "w")
```
becomes
```python
log = open(ddp.main_path("log.csv"), "w")
```
which is `os.devnull` on the other ranks, so the code that writes stays as it is.

## When it is not fixed
When the mode is not a literal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_HANDLERS = ("logging.FileHandler", "logging.handlers.RotatingFileHandler", "logging.handlers.TimedRotatingFileHandler", "logging.handlers.WatchedFileHandler")


@rule("DPM509", severity=Severity.ERROR, fix=Fix.SAFE)
def file_written_by_every_rank(script: Script) -> Iterator[Hit]:
    for path in _paths(script):
        yield Hit(path, "every rank would write this file", (Wrap(script.span(path), f"{script.ddp}.main_path({{}})"), AddImport(script.import_line)))


def _paths(script: Script) -> Iterator[ast.expr]:
    for call in script.calls("?.open", "io.open", "codecs.open", "gzip.open"):
        path, mode = script.argument(call, "file", 0), script.argument(call, "mode", 1)
        if path is not None and isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) & set("wax+"):
            yield path
    for call in script.calls(*_HANDLERS):
        path = script.argument(call, "filename", 0)
        if path is not None:
            yield path
    for call in script.calls("logging.basicConfig"):
        path = script.argument(call, "filename")
        if path is not None and not (isinstance(path, ast.Constant) and path.value is None):
            yield path
