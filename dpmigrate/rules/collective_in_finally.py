"""All ranks wait for each other in a ``finally``.

## What it finds
A training loop or an evaluation that is split over the ranks, in the `finally` of a `try`, also through functions.

## Why it matters
A rank that fails comes there while the others are still in their training: it waits for them until the timeout (10 minutes), and its traceback is shown only
then.

## Example
```python
try:
    train(model, loader)
finally:
    test(model, test_loader)
```
ends at once when a rank fails, if it is written as
```python
train(model, loader)
test(model, test_loader)
```

## When it is not fixed
Always reported only: whether an interrupted training is to be tested is the author's choice. Saving needs no other rank and may stay in `finally`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM515", severity=Severity.WARNING)
def collective_in_finally(script: Script) -> Iterator[Hit]:
    found = {node: None for place in script.meetings for node in script.leading_to(place) if _in_finally(script, node)}
    for node in found:
        yield Hit(
            node, "a rank that fails comes here alone and waits for the others until the timeout",
            advice="move it behind the try statement, so that it runs after a training that ended well",
        )  # fmt: skip


def _in_finally(script: Script, node: ast.AST) -> bool:
    inner = node
    for a in script.names.ancestors(node):
        if isinstance(a, FunctionNode):
            return False
        if isinstance(a, ast.Try) and inner in a.finalbody:
            return True
        inner = a
    return False
