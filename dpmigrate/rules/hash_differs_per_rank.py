"""`hash()` of a text is another number in every process.

## What it finds
The built-in `hash`, called or handed on (`map(hash, words)`, `key=hash`), whose value goes anywhere: into a split of files, the number of a word, a seed.

## Why it matters
Python hashes strings in every process with another seed. Ranks then train on other splits, whose lengths may differ too, or see the same word as other
features, and nothing reports it. In one process the numbers differ from run to run, so no fixed ones can be wrong.

## Example
```python
train_files = [f for f in files if hash(f) % 10 < 8]
```
becomes
```python
train_files = [f for f in files if ddp.same_hash(f) % 10 < 8]
```
Numbers keep the hash that they have.

## When it is not fixed
In `__hash__` methods, for keys of dicts and sets (`seen[hash(x)]`, `hash(x) in seen`), comparisons of two hashes and for what is printed, where nothing
but equality counts, and for what is a number for certain.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Replace
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: functions that give numbers, and those to whom only equality matters
_NUMBERS = frozenset({"?.int", "?.float", "?.len", "?.id", "?.ord", "?.round", "?.abs", "?.sum"})
_PRINTS = frozenset({"?.print", "?.repr", "?.hex"})
_KEYS = frozenset({"add", "discard", "get", "pop", "setdefault"})


@rule("DPM223", severity=Severity.ERROR, fix=Fix.SAFE)
def hash_differs_per_rank(script: Script) -> Iterator[Hit]:
    for node in (*script.names.reads("hash"), *script.names.attributes("hash")):
        if script.names.dotted(node) not in ("?.hash", "builtins.hash") or _defines_equality(script, node):
            continue
        call = script.names.parent[node]
        if isinstance(call, ast.Call) and call.func is node:
            if not call.args or _number(script, call.args[0]) or _compared(script, call):
                continue
        edits = (Replace(script.span(node), f"{script.ddp}.same_hash"), AddImport(script.import_line))
        yield Hit(node, "hash() of a text is another number in every process", edits)


def _defines_equality(script: Script, node: ast.AST) -> bool:
    function = script.names.function(node)
    return isinstance(function, FunctionNode) and function.name in ("__hash__", "__eq__")


def _number(script: Script, node: ast.expr) -> bool:
    """Whether the argument is a number for certain, whose hash is the same everywhere."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    return isinstance(node, ast.Call) and script.names.dotted(node.func) in _NUMBERS


def _compared(script: Script, call: ast.Call) -> bool:
    """Whether nothing but the equality with other hashes counts."""
    around = script.names.parent[call]
    if isinstance(around, ast.Subscript):
        return around.slice is call
    if isinstance(around, ast.Compare):
        return all(isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for op in around.ops)
    if isinstance(around, ast.Call) and call in around.args:
        key = isinstance(around.func, ast.Attribute) and around.func.attr in _KEYS and around.args[0] is call and not script.names.dotted(around.func)
        return key or script.names.dotted(around.func) in _PRINTS
    return isinstance(around, ast.FormattedValue) and _shown(script, around)


def _shown(script: Script, value: ast.FormattedValue) -> bool:
    """Whether a formatted text is printed only: of a file name all ranks must have the same."""
    text = script.names.parent[value]
    around = script.names.parent[text]
    return isinstance(around, ast.Call) and script.names.dotted(around.func) == "?.print"
