"""The program trains, but nothing in its script starts the training.

## What it finds
A module with a training loop and no statement at module level that runs anything.

## Why it matters
The process group has to be set up before anything else and cleaned up after the training, in the script that is started.

## Example
```python
if __name__ == "__main__":
    main()
```
is what the entry script has; a module of functions or classes belongs to such a script.

## When it is not fixed
Always: it is a refusal. Give `dpmigrate` the script that is started.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM909", severity=Severity.BLOCKER)
def no_entry(script: Script) -> Iterator[Hit]:
    if script.entry is None:
        yield Hit(
            script.roles.backwards[0],
            "this program trains, but nothing in its script starts that",
            advice="give the script that is started: it is migrated together with the files that it imports; a package needs a call in its __main__.py",
        )
