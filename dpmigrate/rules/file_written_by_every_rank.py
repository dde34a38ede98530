"""A file is opened for writing by every rank.

## What it finds
`open(path, "w")`, `path.open("w")` and the other writing modes, `logging.FileHandler(path)`, `logging.basicConfig(filename=…)`, loguru's
`logger.add(path)`, and archives: `h5py.File(path, "w")`, `zipfile.ZipFile(path, "w")`. `os.fsync(…)` and `os.fdatasync(…)`, which bring such a file to the
disk.

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
which is `os.devnull` on the other ranks, so the code that writes stays as it is. An archive cannot be written there: `ddp.main_only(h5py.File, path, "w")`
is an object without effect on the other ranks. `os.devnull` cannot be synced, so rank 0 alone does that (`if ddp.is_main():`): a stream that syncs itself
would otherwise fail on the other ranks, and at the end of the program at the latest.

## When it is not fixed
When the mode is not a literal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, MainOnly, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import by_main

_HANDLERS = ("logging.FileHandler", "logging.handlers.RotatingFileHandler", "logging.handlers.TimedRotatingFileHandler", "logging.handlers.WatchedFileHandler")
_ARCHIVES = ("h5py.File", "zipfile.ZipFile", "tarfile.open")


@rule("DPM509", severity=Severity.ERROR, fix=Fix.SAFE)
def file_written_by_every_rank(script: Script) -> Iterator[Hit]:
    for path in _paths(script):
        yield Hit(path, "every rank would write this file", (Wrap(script.span(path), f"{script.ddp}.main_path({{}})"), AddImport(script.import_line)))
    for call in script.calls(*_ARCHIVES):
        if _writing(script.argument(call, "mode", 1)):
            yield Hit(call, "every rank would write this file", (MainOnly(script.span(call), f"{script.ddp}.main_only"), AddImport(script.import_line)))
    for call in script.calls("os.fsync", "os.fdatasync"):
        yield Hit(call, "only rank 0 has this file: the others would fail here", (by_main(script, call), AddImport(script.import_line)))


def _paths(script: Script) -> Iterator[ast.expr]:
    for call in script.calls("?.open", "io.open", "codecs.open", "gzip.open"):
        path, mode = script.argument(call, "file", 0), script.argument(call, "mode", 1)
        if path is not None and _writing(mode):
            yield path
    if any(d.partition(".")[0] == "pathlib" for d in script.names.imports.values()):
        yield from (func.value for call, func in script.methods("open") if _writing(script.argument(call, "mode", 0)))
    for call in script.calls("loguru.logger.add"):
        sink = script.argument(call, "sink", 0)
        if sink is not None and script.names.dotted(sink) not in ("sys.stderr", "sys.stdout"):
            yield sink
    for call in script.calls(*_HANDLERS):
        path = script.argument(call, "filename", 0)
        if path is not None:
            yield path
    for call in script.calls("logging.basicConfig"):
        path = script.argument(call, "filename")
        if path is not None and not (isinstance(path, ast.Constant) and path.value is None):
            yield path


def _writing(mode: ast.expr | None) -> bool:
    """A mode that writes: letters of a mode, and one of those that write."""
    if not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
        return False
    letters = set(mode.value.partition(":")[0])
    return letters <= set("rwax+bt-") and bool(letters & set("wax+"))
