"""The process group is not set up.

## What it finds
The place where the program starts: the first statement that runs, or the body of the `__main__` guard.

## Why it matters
Everything else needs it. `ddp.setup()` reads what torchrun gives, chooses NCCL on GPUs and gloo on CPUs, makes the rank's GPU the current one, gives
all ranks the random streams of rank 0 and silences the other ranks. Without torchrun it makes a group of one, so the program still runs as `python
train.py`.

## Example
```python
if __name__ == "__main__":
    main()
```
becomes
```python
if __name__ == "__main__":
    ddp.setup()
    main()
    ddp.cleanup()
```

## When it is not fixed
When nothing in the program starts the training (DPM909).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, Before, Edit, First
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM701", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def process_group_missing(script: Script) -> Iterator[Hit]:
    entry = script.entry
    if entry is None:
        return
    code = f"{script.ddp}.setup()"
    edit: Edit = First(script.span(entry.start), code) if entry.inside else Before(script.span(entry.start), code)
    yield Hit(entry.start, "the program sets up no process group", (edit, AddImport(script.import_line)))
