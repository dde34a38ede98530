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
unless its name is made of the clock or of a listing of directories, and so another one each time. Where it is not seen that all ranks come there, as in a
context manager, it is `exist_ok=True`, and the report says that a second run does not stop any more.

## When it is not fixed
Where the script is ready for a directory that is there already (`except OSError: pass`) nothing is changed. Where it goes on with another name or another
way then (`except OSError: run += 1`), each rank would find what another one has made: that is refused, since rank 0 alone has to look for the name.
Nor is the `mkdir` of other libraries (`sftp.mkdir(path)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Enclose, Replace, SetArg
from dpmigrate.facts.directories import may_be, unprepared
from dpmigrate.facts.fresh import clocks, listings
from dpmigrate.facts.names import position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.origins import origins
from dpmigrate.facts.ranks import asks_files, files_asked, parted, parting, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_RACE = "two ranks may create this directory at the same time"


@rule("DPM505", severity=Severity.ERROR, fix=Fix.SAFE)
def makedirs_race(script: Script) -> Iterator[Hit]:
    for made in unprepared(script):
        call = made.call
        if script.prepares(call):
            continue
        if made.decides:
            advice = "let rank 0 alone look for the name, and take its answer with ddp.from_main"
            yield Hit(call, "every rank makes this directory, and goes on by whether it is there: the others would find that of rank 0", advice=advice)
        elif made.exist_ok is not None:
            yield _by_option(script, call, made.exist_ok)
        elif _stops(script, call) and _reached_by_all(script, call):
            yield _by_option(script, call, None)
        else:
            asked = any(asks_files(script.roles, test) for test in parting(script.roles, call))  # also before a function that makes it is called
            loses = script.is_statement(call) is not None and not asked and _stops(script, call)
            advice = "exist_ok=True is written here: a second run does not stop any more where this directory is there, and writes into it" if loses else ""
            yield Hit(call, _RACE, (SetArg(script.span(call), "exist_ok", "True", 2), *_with_parents(script, call)), advice=advice)


def _with_parents(script: Script, call: ast.Call) -> tuple[Edit, ...]:
    """``os.makedirs`` for ``os.mkdir``, which has no such argument."""
    if script.names.dotted(call.func) != "os.mkdir":
        return ()
    if isinstance(call.func, ast.Attribute):
        return (Replace(script.span(call.func), f"{script.text(call.func.value)}.makedirs"),)
    return Replace(script.span(call.func), "os.makedirs"), AddImport("import os")  # `from os import mkdir` does not bring os


def _stops(script: Script, call: ast.Call) -> bool:
    """Whether the program stops where the directory is there, since nothing asks before and its name is always the same."""
    around = (a for a in script.names.ancestors(call) if isinstance(a, ast.If | ast.While | ast.Try))
    asked = any(isinstance(a, ast.Try) or asks_files(script.roles, a.test) for a in around)
    path = call.func.value if isinstance(call.func, ast.Attribute) and not script.names.dotted(call.func) else script.argument(call, "name", 0)
    before = (s for s in walk(script.names.function(call)) if isinstance(s, ast.If) and position(s) < position(call))
    if asked or any(may_be(script, p, path) for s in before for p in files_asked(script.roles, s.test)):
        return False
    anew = {*clocks(script), *(c for c, _ in listings(script))}
    return path is not None and not any(n in anew for n, _ in origins(script.roles, path))


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
