"""The model's parameters are changed after the wrap.

## What it finds
`requires_grad` set, or a layer replaced, on a wrapped model.

## Why it matters
DistributedDataParallel looks at the parameters once, when it is built. Parameters frozen later fail at the second step; parameters unfrozen or added
later are never reduced, silently.

## Example
```python
model = nn.DataParallel(model)
model.module.fc = nn.Linear(512, 10)
```
has to become
```python
model.fc = nn.Linear(512, 10)
model = nn.DataParallel(model)
```

## When it is not fixed
Always: it is a refusal. For models that the script does not wrap itself the wrap is put after such statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM110", severity=Severity.BLOCKER)
def changed_after_wrap(script: Script) -> Iterator[Hit]:
    roles, advice = script.roles, "change the model before it is wrapped"
    for node in script.names.nodes:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store) or roles.inside_module(node):
            continue
        stmt = script.names.statement(node)
        if node.attr == "requires_grad" and _of_wrapped(script, node.value):
            yield Hit(node, "requires_grad is set after the wrap: DDP has already looked at the parameters", advice=advice)
        elif isinstance(stmt, ast.Assign) and _inside_wrapped(script, node) and any(v.qual.startswith("torch.nn.") for v in script.values.eval(stmt.value)):
            yield Hit(node, f"{script.text(node)} is replaced after the wrap: its parameters are never reduced", advice=advice)


def _inside_wrapped(script: Script, node: ast.Attribute) -> bool:
    value = node.value
    if isinstance(value, ast.Attribute) and value.attr == "module":
        value = value.value
    return bool(script.roles.model_vals(value)) and script.roles.wrapped(value) is not False


def _of_wrapped(script: Script, node: ast.expr) -> bool:
    """``p`` of ``for p in model.parameters()`` where the model is wrapped."""
    if not isinstance(node, ast.Name):
        return False
    for b in script.names.bindings(script.names.scope_of[node], node.id):
        if b.how == "for" and b.value is not None and script.names.is_inside(node, script.names.statement(b.target)):
            for n in ast.walk(b.value):
                if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters") and _inside_wrapped(script, n):
                    return True
    return False
