"""Ranks race to create a directory.

## What it finds
`os.mkdir`, `os.makedirs` and `Path.mkdir` without `exist_ok=True`, also behind `if not os.path.exists(…)`. Where `exist_ok` is the program's own
decision, rank 0 creates the directory first, by that decision.

## Why it matters
Two ranks see that the directory is missing, one creates it, the other fails with FileExistsError.

## Example
```python
if not os.path.isdir("out"):
    os.mkdir("out")
```
becomes
```python
if not os.path.isdir("out"):
    os.makedirs("out", exist_ok=True)
```

## When it is not fixed
Where the script is ready for a directory that is there already (`except OSError: pass`) nothing is changed.
Nor is the `mkdir` of other libraries (`sftp.mkdir(path)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Enclose, Replace, SetArg
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.ranks import parted, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM505", severity=Severity.ERROR, fix=Fix.SAFE)
def makedirs_race(script: Script) -> Iterator[Hit]:
    for call in script.calls("os.makedirs", "os.mkdir"):
        given = script.argument(call, "exist_ok", 2)
        if _caught(script, call) or _is_true(script, given) or script.made_once(call):
            continue
        if given is not None and not _is_false(given):
            yield from _by_option(script, call, given)
            continue
        edits: list[Edit] = [SetArg(script.span(call), "exist_ok", "True", 2)]
        if script.names.dotted(call.func) == "os.mkdir":
            plain = isinstance(call.func, ast.Attribute)  # `from os import mkdir` does not bring os
            edits.append(Replace(script.span(call.func), f"{script.text(call.func.value)}.makedirs" if isinstance(call.func, ast.Attribute) else "os.makedirs"))
            edits += [] if plain else [AddImport("import os")]
        yield Hit(call, "two ranks may create this directory at the same time", tuple(edits))
    for call, _ in script.methods("mkdir"):
        given = script.argument(call, "exist_ok", 2)
        if _caught(script, call) or _is_true(script, given) or script.made_once(call) or (call.args and not _is_mode(call.args[0])):
            continue
        if given is not None and not _is_false(given):
            yield from _by_option(script, call, given)
        else:
            yield Hit(call, "two ranks may create this directory at the same time", (SetArg(script.span(call), "exist_ok", "True", 2),))


def _by_option(script: Script, call: ast.Call, given: ast.expr) -> Iterator[Hit]:
    """The program decides whether the directory may be there: rank 0 looks first, and for the others it may."""
    stmt = script.is_statement(call)
    if stmt is not None and run_by_all(script.roles, call) and not parted(script.roles, call):
        own = f"({script.text(given)})" if isinstance(given, ast.IfExp | ast.NamedExpr) else script.text(given)
        value = f"{own} or not {script.ddp}.is_main()"
        edits = (SetArg(script.span(call), "exist_ok", value, 2), Enclose(script.span(stmt), script.span(stmt), f"with {script.ddp}.main_first():"))
        yield Hit(call, "two ranks may create this directory at the same time", (*edits, AddImport(script.import_line)))
    else:
        yield Hit(
            call, "two ranks may create this directory at the same time, and the second would stop where exist_ok is false",
            advice="write exist_ok=True, and look before the training whether the directory may be used",
        )  # fmt: skip


def _caught(script: Script, call: ast.Call) -> bool:
    """Whether the script is ready for a directory that is there: ``try: os.makedirs(d)``, ``except OSError: pass``."""
    inner: ast.AST = call
    for a in script.names.ancestors(call):
        if isinstance(a, FunctionNode):
            return False
        if isinstance(a, ast.Try) and inner is a.body[-1] and any(_expects(h) for h in a.handlers):
            return True
        inner = a
    return False


def _expects(handler: ast.ExceptHandler) -> bool:
    kinds = [handler.type] if not isinstance(handler.type, ast.Tuple) else handler.type.elts
    known = any(k is None or ast.unparse(k).rpartition(".")[2] in _EXPECTED for k in kinds)
    return known and not any(isinstance(n, ast.Raise | ast.Call) for s in handler.body for n in ast.walk(s) if not _asks_errno(handler, n))


def _asks_errno(handler: ast.ExceptHandler, node: ast.AST) -> bool:
    """``if e.errno != errno.EEXIST: raise`` lets only other errors through."""
    return isinstance(node, ast.Raise) and node.exc is None and any("EEXIST" in ast.unparse(s) for s in handler.body)


_EXPECTED = frozenset({"OSError", "IOError", "EnvironmentError", "FileExistsError", "Exception"})


def _is_mode(node: ast.expr) -> bool:
    """``path.mkdir(0o755)``; a name there is another library's ``mkdir(path)``."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_true(script: Script, given: ast.expr | None) -> bool:
    """Whether it can only be True, as it stands or by what a variable is given."""
    values = [given] if isinstance(given, ast.Constant) else [v.node for v in script.values.eval(given)]
    return bool(values) and all(isinstance(v, ast.Constant) and v.value is True for v in values)


def _is_false(given: ast.expr) -> bool:
    return isinstance(given, ast.Constant) and given.value is False
