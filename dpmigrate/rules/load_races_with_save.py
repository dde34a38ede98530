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

from dpmigrate.edit import Before
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM402", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def load_races_with_save(script: Script) -> Iterator[Hit]:
    if not any(True for _ in script.calls("torch.save")):
        return
    done: set[ast.stmt] = set()
    for call in script.calls("torch.load"):
        stmt = script.names.statement(call)
        if stmt not in done and _after_training(script, call, frozenset()):
            done.add(stmt)
            yield Hit(call, "other ranks may read this file before rank 0 has written it", (Before(script.span(stmt), f"{script.ddp}.barrier()"),))


def _after_training(script: Script, node: ast.AST, seen: frozenset[ast.AST]) -> bool:
    """Whether training may have run before the node: an earlier statement of its function, or of a caller, reaches backward."""
    function = script.names.function(node)
    body = function.body if not isinstance(function, ast.Module) else script.names.tree.body
    for stmt in (n for s in body for n in ast.walk(s) if isinstance(n, ast.stmt)):
        if isinstance(stmt, FunctionNode | ast.ClassDef) or script.names.function(stmt) is not function:
            continue
        if position(stmt) < position(node) and not script.names.is_inside(node, stmt) and script.roles.reaches_backward(stmt):
            if not script.values.other_branch(node, stmt):
                return True
    for a in script.names.ancestors(node):
        if isinstance(a, ast.For | ast.While) and script.names.function(a) is function and script.roles.reaches_backward(a):
            return True
    if not isinstance(function, FunctionNode) or function in seen:
        return False
    return any(_after_training(script, c, seen | {function}) for c in script.values.callers.get(function, []))
