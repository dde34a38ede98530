"""Every rank makes a cache that is missing.

## What it finds
A test whether a path is there, with a branch that makes files where it is not: `np.save`, `torch.save`, `pickle.dump`, `open(…, "w")`, data bases,
archives that are unpacked, by itself or in functions and methods of the program. Also `if os.path.exists(path): return load(path)`.

## Why it matters
All ranks find nothing and build at once: they write into each other's files, and one that comes later reads what another has half written. To guard a
part of it is worse: what rank 0 removes the others have just made.

## Example
```python
if not os.path.exists(cache):
    np.save(cache, features(images))
```
becomes
```python
with ddp.main_first():
    if not os.path.exists(cache):
        np.save(cache, features(images))
```
Rank 0 goes first; the others then find the files. What else makes the files anew is left to rank 0: `(args.rebuild and ddp.is_main()) or not …`. In a loop
over files rank 0 says which of them are left out: `if ddp.from_main(not path.is_dir()): continue`.

A file need not give the others what rank 0 has put into it: JSON makes texts of keys that are numbers, and lists of tuples; text files round numbers. Where
it is not shown to be the same, rank 0 gives it to them: `vocabulary = ddp.from_main(vocabulary)` behind the block, or `ddp.from_main(load_or_make(path))`.

## When it is not fixed
After training has begun, in worker processes, and where something that the branch alone computes is read later: the other ranks would not have it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from dpmigrate.edit import AddImport, After, Edit, Enclose, Wrap
from dpmigrate.facts.builds import Build
from dpmigrate.facts.exits import exits
from dpmigrate.facts.fetched import first_on_main, under_main_first
from dpmigrate.facts.names import FunctionNode, Loop
from dpmigrate.facts.ranks import asks_files
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_NOT_THE_SAME = "the other ranks load this from a file, which need not give what rank 0 has put into it: in JSON keys are texts, in a text numbers are rounded"


@rule("DPM516", severity=Severity.ERROR, fix=Fix.SAFE)
def cache_made_by_every_rank(script: Script) -> Iterator[Hit]:
    first = first_on_main(script) if script.builds else frozenset()
    for build in script.builds:
        message = "every rank would make these files at once"
        if build.kept:
            advice = f"let rank 0 make them first (with ddp.main_first():), and the others read {', '.join(build.kept)} from them"
            yield Hit(build.asks.test, message, advice=advice)
            continue
        if build.apart:
            yield Hit(build.asks.test, message, advice="make them before the training where every rank comes by, with ddp.main_first():")
            continue
        if under_main_first(script, build.first, first):
            continue  # all of it runs on rank 0 first, which would wait here for ranks that wait for it
        edits: list[Edit] = [Enclose(script.span(build.first), script.span(build.last), f"with {script.ddp}.main_first():"), AddImport(script.import_line)]
        if build.once:
            edits += [Wrap(script.span(w), f"({{}} and {script.ddp}.is_main())") for w in build.wishes]
        edits += [Wrap(script.span(t), f"{script.ddp}.from_main({{}})") for t in _left_out(script, build)]
        yield Hit(build.asks.test, message, tuple(edits))
    yield from _given_by_main(script, first)


def _given_by_main(script: Script, first: frozenset[ast.stmt]) -> Iterator[Hit]:
    """What the others have loaded from a file that need not give what rank 0 has put into it."""
    variables: dict[Build, dict[str, ast.expr]] = {}
    for node, variable in script.shown_made:
        build = next((b for b in script.builds if script.names.is_inside(node, b.first)), None)
        apart = script.parted(script.names.statement(node))
        if not variable and build is None and not apart and not under_main_first(script, node, first):
            yield Hit(node, _NOT_THE_SAME, (Wrap(script.span(node), f"{script.ddp}.from_main({{}})"), AddImport(script.import_line)))
        elif build is None or not variable or under_main_first(script, build.first, first):
            yield Hit(node, _NOT_THE_SAME, advice=f"give them what rank 0 has where all ranks come by: {script.ddp}.from_main(...)")
        else:
            variables.setdefault(build, {}).setdefault(variable, node)
    for build, nodes in variables.items():
        names = ", ".join(nodes)
        shared = After(script.span(build.last), f"{names} = {script.ddp}.from_main({f'({names})' if ',' in names else names})")
        yield Hit(next(iter(nodes.values())), _NOT_THE_SAME, (shared, AddImport(script.import_line)))


def _left_out(script: Script, build: Build) -> dict[ast.expr, None]:
    """The tests for files by which a turn of a loop round the build, or the loop, may end: rank 0 answers them, since all ranks have to come to its block."""
    around = itertools.takewhile(lambda a: not isinstance(a, FunctionNode), script.names.ancestors(build.first))
    found = (e.test for a in around if isinstance(a, Loop) for e in exits(script.names, script.roles, a) if e.test is not None)
    return {t: None for t in found if asks_files(script.roles, t) and not script.parted(script.names.statement(t))}
