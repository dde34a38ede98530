"""The order of a set is another one in every process.

## What it finds
`list(set(…))`, `tuple(set(…))`, `enumerate(set(…))` and loops over a set where data are prepared, also through a name of the set.

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
In methods of data sets and models and in functions that are not called from the program itself, which ranks do
not run in step; `sorted(set(…))` is right as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Wrap
from dpmigrate.facts.ranks import left_to_main, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: what gives the same whatever the order
_ORDERLESS = ("?.sorted", "?.len", "?.set", "?.frozenset", "?.sum", "?.max", "?.min", "?.any", "?.all")


@rule("DPM208", severity=Severity.ERROR, fix=Fix.SAFE)
def set_order_per_rank(script: Script) -> Iterator[Hit]:
    for node, edit in _places(script):
        apart = script.roles.region(node) != "outside" or script.names.cls(node) is not None or not run_by_all(script.roles, node)
        if apart or left_to_main(script.roles, node) or _orderless(script, node):
            continue
        yield Hit(node, "the order of a set differs between processes", (edit, AddImport(script.import_line)))


def _places(script: Script) -> Iterator[tuple[ast.expr, Edit]]:
    for call in script.calls("?.list", "?.tuple"):
        if call.args and _is_set(script, call.args[0]):
            yield call, Wrap(script.span(call), f"{script.ddp}.from_main({{}})")
    listed = f"{script.ddp}.from_main(list({{}}))"
    for call in script.calls("?.enumerate"):
        if call.args and _is_set(script, call.args[0]):
            yield call, Wrap(script.span(call.args[0]), listed)
    for node in script.names.nodes:
        if isinstance(node, ast.For) and _is_set(script, node.iter):
            yield node.iter, Wrap(script.span(node.iter), listed)
        elif isinstance(node, ast.ListComp) and _is_set(script, node.generators[0].iter):
            yield node, Wrap(script.span(node.generators[0].iter), listed)


def _orderless(script: Script, node: ast.AST) -> bool:
    return any(isinstance(a, ast.Call) and script.names.dotted(a.func) in _ORDERLESS for a in script.names.ancestors(node))


def _is_set(script: Script, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        bound = [b for b in script.names.bindings(script.names.scope_of[node], node.id) if b.how != "aug"]
        return bool(bound) and all(b.how == "assign" and not b.path and isinstance(b.value, ast.expr) and _displayed(script, b.value) for b in bound)
    return _displayed(script, node)


def _displayed(script: Script, node: ast.expr) -> bool:
    return isinstance(node, ast.Set | ast.SetComp) or (isinstance(node, ast.Call) and script.names.dotted(node.func) in ("?.set", "?.frozenset"))
