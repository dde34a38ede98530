"""A file is opened for writing by every rank.

## What it finds
`open(path, "w")`, `path.open("w")` and the other writing modes, `logging.FileHandler(path)`, `logging.basicConfig(filename=…)`, the handlers of
`logging.config.dictConfig`, loguru's `logger.add(path)`, and archives: `h5py.File(path, "w")`, `zipfile.ZipFile(path, "w")`. What else of a library is given a
path and a mode that writes: `jsonlines.open(path, mode="a")`. An execution of the program on paper says so. `os.fsync(…)` and `os.fdatasync(…)`, which bring
such a file to the disk.

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
which is `os.devnull` on the other ranks, so the code that writes stays as it is. For the mode `"x"`, which wants a file that is not there, it is
`ddp.main_path("log.csv", new=True)`: a file of its own in a temporary directory on the other ranks, removed at the end.

An archive cannot be written to `os.devnull`, nor is it known of what another library opens: `ddp.main_only(h5py.File, path, "w")` is an object without
effect on the other ranks. `os.devnull` cannot be synced either, so rank 0 alone does that (`if ddp.is_main():`): a stream that syncs itself would otherwise
fail on the other ranks, and at the end of the program at the latest.

A database (`sqlite3.connect(path)`) and a shelf (`shelve.open(path)`) are written so as well, where the program reads nothing of them.

## When it is not fixed
When it is not known which values the mode may have, or some of them read. Neither is what a library opens to write and read (`np.memmap(path, mode="w+")`),
nor a file of the mode `r+`, or of `a+` that is read, nor a database or a shelf that the program writes and reads, nor a file that `os.open(path, flags)`
writes: such a program is refused. Nor what a data set opens for the sample that it is asked for, under a name of that sample's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, MainOnly, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.facts.written import archives, databases, must_be_new, opened, openers, shelves
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import by_main


@rule("DPM509", severity=Severity.ERROR, fix=Fix.SAFE)
def file_written_by_every_rank(script: Script) -> Iterator[Hit]:
    for path in opened(script):
        if not script.made_once(path):
            new = ", new=True" if must_be_new(script, path) else ""
            edit = Wrap(script.span(path), f"{script.ddp}.main_path({{}}{new})")
            yield Hit(path, "every rank would write this file", (edit, AddImport(script.import_line)))
    for call in (*archives(script), *openers(script), *databases(script), *shelves(script)):
        if not script.made_once(call):
            yield Hit(call, "every rank would write this file", (MainOnly(script.span(call), f"{script.ddp}.main_only"), AddImport(script.import_line)))
    for call in script.calls("os.fsync", "os.fdatasync"):
        yield Hit(call, "only rank 0 has this file: the others would fail here", (by_main(script, call), AddImport(script.import_line)))
