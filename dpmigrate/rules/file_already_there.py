"""A rank may stop because of a file that rank 0 has just made.

## What it finds
A test that ends the program, or raises, where a file or folder is there: `if (out / "metrics.csv").exists(): raise ValueError("refusing to overwrite")`.

## Why it matters
The ranks come to such a test at different times. Rank 0 goes on and makes the file; a rank that asks later finds it and stops, and the job with it.

## Example
```python
if os.path.exists("metrics.csv"):
    raise FileExistsError("metrics.csv")
```
becomes
```python
if ddp.from_main(os.path.exists("metrics.csv")):
    raise FileExistsError("metrics.csv")
```
so that what rank 0 finds holds for all.

## When it is not fixed
Where only some ranks may come to the test. Tests for a file that has to be there (`if not os.path.exists(data)`) are no matter: it is no result of the run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.endings import is_exit
from dpmigrate.facts.fresh import asks_existence
from dpmigrate.facts.names import Loop
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import parted, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_MESSAGE = "a rank that comes here after rank 0 may find what rank 0 has just made, and stop"


@rule("DPM517", severity=Severity.ERROR, fix=Fix.SAFE)
def file_already_there(script: Script) -> Iterator[Hit]:
    for node in script.names.nodes:
        if not isinstance(node, ast.If) or not any(_stops(script, s) for s in node.body) or not _is_there(script, node.test):
            continue
        if any(isinstance(a, Loop) for a in script.names.ancestors(node)) or not run_by_all(script.roles, node) or script.made_once(node.test):
            continue  # a search for a free name is another rule's
        if parted(script.roles, node):
            advice = "ask where all ranks come: ddp.from_main(...)"
            yield Hit(node.test, _MESSAGE, severity=Severity.WARNING, advice=advice)
        else:
            yield Hit(node.test, _MESSAGE, (Wrap(script.span(node.test), f"{script.ddp}.from_main({{}})"), AddImport(script.import_line)))


def _stops(script: Script, stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Raise) or is_exit(script.names, stmt)


def _is_there(script: Script, test: ast.expr) -> bool:
    """Whether the test asks for something that is there, and not whether it is missing."""
    missing = [n for n in walk(test) if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)]
    asked = (n for n in walk(test) if isinstance(n, ast.Call) and asks_existence(script, n))
    return any(not any(script.names.is_inside(call, n) for n in missing) for call in asked)
