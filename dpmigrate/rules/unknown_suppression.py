"""A comment asks for a rule to be ignored that does not exist.

## What it finds
`# dpmigrate: ignore[DPM999]`, where no code begins with DPM999.

## Why it matters
The comment does nothing: a finding that its author wanted to be silent is reported, or a slip of the pen hides that another one is.

## Example
```python
torch.save(state, path)  # dpmigrate: ignore[DPM4O1]
```
is meant to be
```python
torch.save(state, path)  # dpmigrate: ignore[DPM401]
```

## When it is not fixed
Always: only its author knows what was meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, registered, rule


@rule("DPM001", severity=Severity.NOTE)
def unknown_suppression(script: Script) -> Iterator[Hit]:
    for line, code in script.suppressions.written:
        if not any(known.startswith(code) for known in registered()):
            here = ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=0)
            yield Hit(here, f"no rule is called {code}: this comment leaves nothing alone", advice="'dpmigrate rules' lists the codes")
