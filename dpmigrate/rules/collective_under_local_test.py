"""Ranks may not all reach a place where they wait for each other.

## What it finds
A training loop, or an evaluation that is split over the ranks, under an `if` whose test may differ between ranks: `if val_loss < best: test(…)`.

## Why it matters
A rank that finds the test false does not take part, and the others wait for it until the timeout. Values that were computed in full on every rank may differ
in the last digit.

## Example
```python
if val_loss < best:
    test_acc = test(model, test_loader)
```
becomes
```python
if ddp.any_rank(val_loss < best):
    test_acc = test(model, test_loader)
```

## When it is not fixed
Tests in conditional expressions and exception handlers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.control import uniform
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM511", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def collective_under_local_test(script: Script) -> Iterator[Hit]:
    tests: dict[ast.expr, None] = {}
    for meeting in script.meetings:
        for node in script.leading_to(meeting):
            for a in script.names.ancestors(node):
                if isinstance(a, FunctionNode):
                    break
                if isinstance(a, ast.If) and not script.names.is_inside(node, a.test) and not uniform(script.names, a.test):
                    tests[a.test] = None
    for test in tests:
        edits = (Wrap(script.span(test), f"{script.ddp}.any_rank({{}})"), AddImport(script.import_line))
        yield Hit(test, "all ranks must go the same way here: they wait for each other further on", edits)
