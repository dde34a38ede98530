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
from collections.abc import Iterator, Set

from dpmigrate.edit import AddImport, Edit, Enclose
from dpmigrate.facts.outside import called, downloading, downloads, postponed
from dpmigrate.facts.ranks import Stretch, asks_files, run_by_all, stretch
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: classes whose constructor calls ``download`` and ``process`` where their files are not there yet
#: (https://pytorch-geometric.readthedocs.io/en/latest/tutorial/create_dataset.html, https://docs.dgl.ai/api/python/dgl.data.html)
_PREPARING = frozenset(
    {f"torch_geometric.data.{name}" for name in ("Dataset", "InMemoryDataset", "OnDiskDataset")}
    | {f"torch_geometric.data.{name}" for name in ("dataset.Dataset", "in_memory_dataset.InMemoryDataset")}
    | {"dgl.data.DGLDataset", "dgl.data.dgl_dataset.DGLDataset", "dgl.data.DGLBuiltinDataset"}
)


@rule("DPM508", severity=Severity.ERROR, fix=Fix.SAFE)
def download_on_every_rank(script: Script) -> Iterator[Hit]:
    done: dict[ast.stmt, Edit] = {}
    late = {node: [c for c in script.roles.calls if any(v.node is node for v in script.values.eval(c.func))] for node in postponed(script.names)}
    for node, calls in late.items():
        if not calls and not script.roles.inside_module(node):
            yield Hit(
                node, "this fetches files where it is called, which is not seen: ranks may fetch them at once",
                advice="fetch the files before the training, where every rank comes by",
            )  # fmt: skip
    postponed_calls = frozenset(c for calls in late.values() for c in calls)
    wholes = {stmt: _together(script, stmt) for stmt in _fetching(script, postponed_calls)}
    first = {script.names.function(stmt) for stmt, whole in wholes.items() if whole is not None and not any(map(script.meets, _inside(script, whole)))}
    for stmt, whole in wholes.items():
        at_once = postponed_calls.isdisjoint(called(script.names, stmt)) and not _prepares(script, stmt)
        if at_once and all(_fetched_inside(script, call, first) for call in downloading(script.names, stmt)):
            continue
        if whole is None:
            yield Hit(
                stmt, "ranks would fetch these files at once, and perhaps not all of them come here",
                advice="fetch the files before the training, where every rank comes by",
            )  # fmt: skip
            continue
        inside = _inside(script, whole)
        if any(map(script.meets, inside)):
            yield Hit(
                stmt, "all ranks would fetch these files at once, in a statement in which they also wait for each other", severity=Severity.BLOCKER,
                advice="fetch the files in a statement of its own, before the training",
            )  # fmt: skip
            continue
        enclose = next((e for s, e in done.items() if script.names.is_inside(stmt, s)), None)  # they wait once
        if enclose is None:
            enclose = Enclose(script.span(whole.first), script.span(whole.last), f"with {script.ddp}.main_first():")
        done |= dict.fromkeys(inside, enclose)
        yield Hit(stmt, "all ranks would fetch these files at once", (enclose, AddImport(script.import_line)))


def _together(script: Script, stmt: ast.stmt) -> Stretch | None:
    """What goes under the header: `if not os.path.exists(…)` must not be asked while rank 0 writes. None where perhaps not all ranks come by."""
    whole = stretch(script.roles, stmt, lambda test: asks_files(script.roles, test) or not script.alike(test))
    return None if whole is None or script.parted(whole.first) else whole


def _inside(script: Script, whole: Stretch) -> list[ast.stmt]:
    block = script.names.block(whole.first)
    return block[block.index(whole.first) : block.index(whole.last) + 1]


def _fetched_inside(script: Script, call: ast.Call, first: Set[ast.AST]) -> bool:
    """Whether the call fetches in functions of the program alone, each with a statement that rank 0 runs first: they wait once."""
    entered = [{e, *script.roles.all_entered(e)} for e in script.roles.entered(call)]
    return bool(entered) and all(functions & first and script.names.function(call) not in functions for functions in entered)


def _fetching(script: Script, late: frozenset[ast.Call]) -> Iterator[ast.stmt]:
    """The simple statements that fetch files and that all ranks run, if any does; ``late`` are the calls of what fetches only when it is called."""
    for stmt in script.names.nodes:
        simple = isinstance(stmt, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return | ast.AugAssign)
        if not simple or not run_by_all(script.roles, stmt):
            continue
        assert isinstance(stmt, ast.stmt)
        if script.roles.inside_module(stmt) and not _unpacks(script, stmt):
            continue
        fetches = downloads(script.names, stmt) or not late.isdisjoint(called(script.names, stmt)) or _prepares(script, stmt)
        if fetches and not script.made_once(stmt):
            yield stmt


def _unpacks(script: Script, stmt: ast.stmt) -> bool:
    """Whether a model that is built gets a part from a hub, whose repository is unpacked in place; weights alone appear as whole files."""
    function = script.names.function(stmt)
    built = isinstance(function, ast.FunctionDef) and function.name == "__init__"
    return built and any(script.names.dotted(c.func) == "torch.hub.load" for c in called(script.names, stmt))


def _prepares(script: Script, stmt: ast.stmt) -> bool:
    """Whether a data set of the program is built that writes its files by itself, where they are not there yet."""
    values = script.values
    built = (v.cls for c in called(script.names, stmt) for v in values.eval(c) if v.kind == "object" and v.node is c and v.cls is not None)
    return any(
        values.defs.method(cls, name) is not None and any(script.names.dotted(b) in _PREPARING for k in values.defs.bases(cls) for b in k.bases)
        for cls in built
        for name in ("process", "download")
    )
