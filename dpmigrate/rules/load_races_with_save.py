"""A file that rank 0 has just written is read by all ranks.

## What it finds
`torch.load` that runs after training: the best checkpoint for the final test.

## Why it matters
The other ranks may read before rank 0 has written: the file of an earlier epoch, or none.

## Example
```python
model.load_state_dict(torch.load("best.pt"))
```
becomes
```python
ddp.barrier()
model.module.load_state_dict(torch.load("best.pt", map_location=ddp.device()))
```

## When it is not fixed
Always fixed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Before
from dpmigrate.facts.meetings import late_loads
from dpmigrate.facts.ranks import before_file_tests
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM402", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def load_races_with_save(script: Script) -> Iterator[Hit]:
    done: set[ast.stmt] = set()
    for call in late_loads(script):
        stmt = before_file_tests(script.roles, script.names.statement(call))  # the others may not ask for the file before it is there
        if stmt not in done:
            done.add(stmt)
            edits = (Before(script.span(stmt), f"{script.ddp}.barrier()"), AddImport(script.import_line))
            yield Hit(call, "other ranks may read this file before rank 0 has written it", edits)
