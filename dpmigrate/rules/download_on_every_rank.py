"""Every rank downloads the same files.

## What it finds
Data sets with `download=True`, `pretrained=True` models, `torch.hub`, `from_pretrained`, data sets of libraries that fetch by themselves
(keras, scikit-learn, torch_geometric), data sets of the program that derive from those of torch_geometric and DGL and have a `download` or
`process`, and other fetching functions.

## Why it matters
The ranks write the same files at the same time, and one reads what another has half written.

## Example
```python
train_set = CIFAR10("data", download=True)
```
becomes
```python
with ddp.main_first():
    train_set = CIFAR10("data", download=True)
```
Rank 0 goes first; the others then find the files. Questions whether a file is there, early returns and exceptions by which it is fetched go with it.
Where a function of the program does the fetching, the statement in it is changed, and the call of the function (`build(pretrained=True)`) stays.
A `lambda` or `functools.partial` that fetches does so where it is called, so the block goes round that statement.

## When it is not fixed
Downloads inside models (but `torch.hub.load` where they are built), methods of data sets that worker processes call, and functions outside of the program.
A `lambda` or `functools.partial` that fetches and whose calls are not seen is told.
A statement that also trains or evaluates is refused. Where perhaps not all ranks call the function that fetches, it is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Enclose
from dpmigrate.facts.fetched import inside, postponed_calls, run_first
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM508", severity=Severity.ERROR, fix=Fix.SAFE)
def download_on_every_rank(script: Script) -> Iterator[Hit]:
    done: dict[ast.stmt, Edit] = {}
    late = postponed_calls(script)
    for node, calls in late.items():
        if not calls and not script.roles.inside_module(node):
            yield Hit(
                node, "this fetches files where it is called, which is not seen: ranks may fetch them at once",
                advice="fetch the files before the training, where every rank comes by",
            )  # fmt: skip
    for stmt, whole in run_first(script, late).items():
        if whole is None:
            yield Hit(
                stmt, "ranks would fetch these files at once, and perhaps not all of them come here",
                advice="fetch the files before the training, where every rank comes by",
            )  # fmt: skip
            continue
        under = inside(script, whole)
        if any(map(script.meets, under)):
            yield Hit(
                stmt, "all ranks would fetch these files at once, in a statement in which they also wait for each other", severity=Severity.BLOCKER,
                advice="fetch the files in a statement of its own, before the training",
            )  # fmt: skip
            continue
        enclose = next((e for s, e in done.items() if script.names.is_inside(stmt, s)), None)  # they wait once
        if enclose is None:
            enclose = Enclose(script.span(whole.first), script.span(whole.last), f"with {script.ddp}.main_first():")
        done |= dict.fromkeys(under, enclose)
        yield Hit(stmt, "all ranks would fetch these files at once", (enclose, AddImport(script.import_line)))
