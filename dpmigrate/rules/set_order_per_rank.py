"""The order of a set is another one in every process.

## What it finds
`list(set(…))`, `tuple(set(…))` and `enumerate(set(…))` where data are prepared.

## Why it matters
Python hashes strings differently in every process. A vocabulary or class list made from an unsorted set gives the same word different numbers on
different ranks: the gradients that are averaged belong to different words, and nothing reports it.

## Example
```python
classes = list(set(labels))
```
becomes
```python
classes = ddp.from_main(list(set(labels)))
```

## When it is not fixed
In methods of data sets and models, which ranks do not run in step; `sorted(set(…))` is right as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM208", severity=Severity.ERROR, fix=Fix.SAFE)
def set_order_per_rank(script: Script) -> Iterator[Hit]:
    for call in script.calls("?.list", "?.tuple", "?.enumerate"):
        if not call.args or not _is_set(script, call.args[0]) or script.roles.region(call) != "outside" or script.names.cls(call) is not None:
            continue
        if any(
            isinstance(a, ast.Call) and script.names.dotted(a.func) in ("?.sorted", "?.len", "?.set", "?.sum", "?.max", "?.min")
            for a in script.names.ancestors(call)
        ):
            continue
        counted = script.names.dotted(call.func) == "?.enumerate"
        edit: Edit = (
            Wrap(script.span(call.args[0]), f"{script.ddp}.from_main(list({{}}))") if counted else Wrap(script.span(call), f"{script.ddp}.from_main({{}})")
        )
        yield Hit(call, "the order of a set differs between processes", (edit, AddImport(script.import_line)))


def _is_set(script: Script, node: ast.expr) -> bool:
    return isinstance(node, ast.Set | ast.SetComp) or (isinstance(node, ast.Call) and script.names.dotted(node.func) in ("?.set", "?.frozenset"))
