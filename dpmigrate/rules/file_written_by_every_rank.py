"""A file is opened for writing by every rank.

## What it finds
`open(path, "w")`, `path.open("w")` and the other writing modes, `logging.FileHandler(path)`, `logging.basicConfig(filename=…)`, loguru's
`logger.add(path)`, and archives: `h5py.File(path, "w")`, `zipfile.ZipFile(path, "w")`.

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
is an object without effect on the other ranks.

## When it is not fixed
When the mode is not a literal.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, MainOnly, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.facts.written import archives, opened
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM509", severity=Severity.ERROR, fix=Fix.SAFE)
def file_written_by_every_rank(script: Script) -> Iterator[Hit]:
    for path in opened(script):
        if not script.made_once(path):
            yield Hit(path, "every rank would write this file", (Wrap(script.span(path), f"{script.ddp}.main_path({{}})"), AddImport(script.import_line)))
    for call in archives(script):
        if not script.made_once(call):
            yield Hit(call, "every rank would write this file", (MainOnly(script.span(call), f"{script.ddp}.main_only"), AddImport(script.import_line)))
