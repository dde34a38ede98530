"""Every rank downloads the same files.

## What it finds
Data sets with `download=True`, `pretrained=True` models, `torch.hub`, `from_pretrained`, and other fetching functions.

## Why it matters
The ranks write the same files at the same time, and one reads what another has half written.

## Example
```python
train_set = CIFAR10("data", download=True)
```
becomes
```python
with ddp.main_first():
    train_set = CIFAR10("data", download=True)
```
Rank 0 goes first; the others then find the files.

## When it is not fixed
Downloads inside models, methods of data sets that worker processes call, and functions outside of the program.
A statement that also trains or evaluates is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Enclose
from dpmigrate.facts.outside import downloads
from dpmigrate.facts.ranks import before_file_tests, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM508", severity=Severity.ERROR, fix=Fix.SAFE)
def download_on_every_rank(script: Script) -> Iterator[Hit]:
    for stmt in script.names.nodes:
        simple = isinstance(stmt, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return | ast.AugAssign)
        if simple and not script.roles.inside_module(stmt) and run_by_all(script.roles, stmt) and downloads(script.names, stmt):
            assert isinstance(stmt, ast.stmt)
            if script.made_once(stmt):
                continue
            whole = before_file_tests(script.roles, stmt)  # `if not os.path.exists(…)` must not be asked while rank 0 writes
            header = f"with {script.ddp}.main_first():"
            edits = (Enclose(script.span(whole), script.span(whole), header), AddImport(script.import_line))
            if script.meets(whole):
                yield Hit(
                    stmt, "all ranks would fetch these files at once, in a statement in which they also wait for each other", severity=Severity.BLOCKER,
                    advice="fetch the files in a statement of its own, before the training",
                )  # fmt: skip
            else:
                yield Hit(stmt, "all ranks would fetch these files at once", edits)
