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

A program that makes a directory without asking stops where it is there, so that a second run overwrites nothing. That stays so for rank 0:
```python
os.makedirs("out")
```
becomes
```python
with ddp.main_first():
    os.makedirs("out", exist_ok=not ddp.is_main())
```
unless its name is made of the clock or of a listing of directories, and so another one each time.

## When it is not fixed
Where the script is ready for a directory that is there already (`except OSError: pass`) nothing is changed.
Nor is the `mkdir` of other libraries (`sftp.mkdir(path)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Enclose, Replace, SetArg
from dpmigrate.facts.directories import unprepared
from dpmigrate.facts.fresh import clocks, listings
from dpmigrate.facts.names import position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.origins import origins
from dpmigrate.facts.ranks import asks_files, files_asked, parted, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_RACE = "two ranks may create this directory at the same time"


@rule("DPM505", severity=Severity.ERROR, fix=Fix.SAFE)
def makedirs_race(script: Script) -> Iterator[Hit]:
    for made in unprepared(script):
        call = made.call
        if made.exist_ok is not None:
            yield _by_option(script, call, made.exist_ok)
        elif _stops(script, call):
            yield _by_option(script, call, None)
        else:
            yield Hit(call, _RACE, (SetArg(script.span(call), "exist_ok", "True", 2), *_with_parents(script, call)))


def _with_parents(script: Script, call: ast.Call) -> tuple[Edit, ...]:
    """``os.makedirs`` for ``os.mkdir``, which has no such argument."""
    if script.names.dotted(call.func) != "os.mkdir":
        return ()
    if isinstance(call.func, ast.Attribute):
        return (Replace(script.span(call.func), f"{script.text(call.func.value)}.makedirs"),)
    return Replace(script.span(call.func), "os.makedirs"), AddImport("import os")  # `from os import mkdir` does not bring os


def _stops(script: Script, call: ast.Call) -> bool:
    """Whether the program stops where the directory is there, since nothing asks before and its name is always the same."""
    if not _reached_by_all(script, call):
        return False
    around = (a for a in script.names.ancestors(call) if isinstance(a, ast.If | ast.While | ast.Try))
    asked = any(isinstance(a, ast.Try) or asks_files(script.roles, a.test) for a in around)
    path = call.func.value if isinstance(call.func, ast.Attribute) and not script.names.dotted(call.func) else script.argument(call, "name", 0)
    before = (s for s in walk(script.names.function(call)) if isinstance(s, ast.If) and position(s) < position(call))
    if asked or any(_may_be(script, p, path) for s in before for p in files_asked(script.roles, s.test)):
        return False
    anew = {*clocks(script), *(c for c, _ in listings(script))}
    return path is not None and not any(n in anew for n, _ in origins(script.roles, path))


def _may_be(script: Script, asked: ast.expr | None, path: ast.expr | None) -> bool:
    """Whether a path that a test looks at may be the one that is made; one that goes on behind it (``join(root, name)`` behind ``root``) is another."""
    if asked is None or path is None:
        return True
    one, other = _spelt(script, asked), _spelt(script, path)
    literal = isinstance(one, ast.Constant) and isinstance(other, ast.Constant)
    return ast.dump(one) == ast.dump(other) or not (literal or _goes_on(script, one, other) or _goes_on(script, other, one))


def _spelt(script: Script, path: ast.expr) -> ast.expr:
    """What the one assignment to a variable gives it, or the expression itself."""
    while isinstance(path, ast.Name):
        bound = list(script.names.bindings(script.names.scope_of[path], path.id))
        value = bound[0].value if len(bound) == 1 and bound[0].how == "assign" and not bound[0].path else None
        if not isinstance(value, ast.expr):
            break
        path = value
    return path


def _goes_on(script: Script, path: ast.expr, folder: ast.expr) -> bool:
    """Whether a path begins with a folder and goes on behind it: ``os.path.join(folder, name)``, ``folder / name``, ``folder + "/a"``, ``f"{folder}/a"``."""
    path = _spelt(script, path)
    if isinstance(path, ast.Call) and script.names.dotted(path.func) == "os.path.join" and len(path.args) > 1:
        first: ast.expr = path.args[0]
    elif isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div | ast.Add):
        first = path.left
    elif isinstance(path, ast.JoinedStr) and len(path.values) > 1 and isinstance(path.values[0], ast.FormattedValue):
        first = path.values[0].value
    else:
        return False
    return ast.dump(_spelt(script, first)) == ast.dump(folder) or _goes_on(script, first, folder)


def _reached_by_all(script: Script, call: ast.Call) -> bool:
    return script.is_statement(call) is not None and run_by_all(script.roles, call) and not parted(script.roles, call)


def _by_option(script: Script, call: ast.Call, given: ast.expr | None) -> Hit:
    """The program decides whether the directory may be there, or stops there (``given`` is None): rank 0 looks first, and for the others it may."""
    stmt = script.is_statement(call)
    if stmt is not None and _reached_by_all(script, call):
        value = f"not {script.ddp}.is_main()"
        if given is not None:
            own = f"({script.text(given)})" if isinstance(given, ast.IfExp | ast.NamedExpr) else script.text(given)
            value = f"{own} or {value}"
        edits = (SetArg(script.span(call), "exist_ok", value, 2), *_with_parents(script, call))
        first = Enclose(script.span(stmt), script.span(stmt), f"with {script.ddp}.main_first():")
        return Hit(call, _RACE, (*edits, first, AddImport(script.import_line)))
    advice = "write exist_ok=True, and look before the training whether the directory may be used"
    return Hit(call, f"{_RACE}, and the second would stop where exist_ok is false", advice=advice)
