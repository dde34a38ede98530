"""Which statements fetch files that all ranks would fetch at once, and which rank 0 therefore runs first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING

from dpmigrate.facts.outside import called, downloading, downloads, postponed
from dpmigrate.facts.ranks import Stretch, asks_files, run_by_all, stretch

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script

#: classes whose constructor calls ``download`` and ``process`` where their files are not there yet
#: (https://pytorch-geometric.readthedocs.io/en/latest/tutorial/create_dataset.html, https://docs.dgl.ai/api/python/dgl.data.html)
_PREPARING = frozenset(
    {f"torch_geometric.data.{name}" for name in ("Dataset", "InMemoryDataset", "OnDiskDataset")}
    | {f"torch_geometric.data.{name}" for name in ("dataset.Dataset", "in_memory_dataset.InMemoryDataset")}
    | {"dgl.data.DGLDataset", "dgl.data.dgl_dataset.DGLDataset", "dgl.data.DGLBuiltinDataset"}
)


def postponed_calls(script: Script) -> dict[ast.AST, list[ast.Call]]:
    """What fetches files only when it is called, with its calls."""
    return {node: [c for c in script.roles.calls if any(v.node is node for v in script.values.eval(c.func))] for node in postponed(script.names)}


def run_first(script: Script, late: Mapping[ast.AST, list[ast.Call]]) -> dict[ast.stmt, Stretch | None]:
    """The statements that fetch files, with what rank 0 runs first; None where perhaps not all ranks come by."""
    calls = frozenset(c for found in late.values() for c in found)
    wholes = {stmt: together(script, stmt) for stmt in fetching(script, calls)}
    first = {script.names.function(stmt) for stmt, whole in wholes.items() if whole is not None and not any(map(script.meets, inside(script, whole)))}

    def elsewhere(stmt: ast.stmt) -> bool:
        at_once = calls.isdisjoint(called(script.names, stmt)) and not prepares(script, stmt)
        return at_once and all(fetched_inside(script, call, first) for call in downloading(script.names, stmt))

    return {stmt: whole for stmt, whole in wholes.items() if not elsewhere(stmt)}


def first_on_main(script: Script) -> frozenset[ast.stmt]:
    """The statements that rank 0 runs to their end before the other ranks begin them."""
    wholes = [inside(script, whole) for whole in run_first(script, postponed_calls(script)).values() if whole is not None]
    return frozenset(s for stmts in wholes if not any(map(script.meets, stmts)) for s in stmts)


def under_main_first(script: Script, node: ast.AST, first: frozenset[ast.stmt]) -> bool:
    """Whether the node runs in such a statement alone, whoever calls its function: the other ranks have waited for rank 0 before they come to it."""
    todo, seen = [node], set[ast.AST]()
    while todo:
        n = todo.pop()
        if any(script.names.is_inside(n, s) for s in first):
            continue
        function = script.names.function(n)
        callers = script.values.ways.get(function, [])
        if not callers:
            return False
        if function not in seen:
            seen.add(function)
            todo += callers
    return True


def together(script: Script, stmt: ast.stmt) -> Stretch | None:
    """What goes under the header: `if not os.path.exists(…)` must not be asked while rank 0 writes. None where perhaps not all ranks come by."""
    whole = stretch(script.roles, stmt, lambda test: asks_files(script.roles, test) or not script.alike(test))
    return None if whole is None or script.parted(whole.first) else whole


def inside(script: Script, whole: Stretch) -> list[ast.stmt]:
    """The statements of its block that go under the header."""
    block = script.names.block(whole.first)
    return block[block.index(whole.first) : block.index(whole.last) + 1]


def fetching(script: Script, late: frozenset[ast.Call]) -> Iterator[ast.stmt]:
    """The simple statements that fetch files and that all ranks run, if any does; ``late`` are the calls of what fetches only when it is called."""
    for stmt in script.names.nodes:
        simple = isinstance(stmt, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return | ast.AugAssign)
        if not simple or not run_by_all(script.roles, stmt):
            continue
        assert isinstance(stmt, ast.stmt)
        if script.roles.inside_module(stmt) and not _unpacks(script, stmt):
            continue
        fetches = downloads(script.names, stmt) or not late.isdisjoint(called(script.names, stmt)) or prepares(script, stmt)
        if fetches and not script.made_once(stmt):
            yield stmt


def _unpacks(script: Script, stmt: ast.stmt) -> bool:
    """Whether a model that is built gets a part from a hub, whose repository is unpacked in place; weights alone appear as whole files."""
    function = script.names.function(stmt)
    built = isinstance(function, ast.FunctionDef) and function.name == "__init__"
    return built and any(script.names.dotted(c.func) == "torch.hub.load" for c in called(script.names, stmt))


def prepares(script: Script, stmt: ast.stmt) -> bool:
    """Whether a data set of the program is built that writes its files by itself, where they are not there yet."""
    values = script.values
    built = (v.cls for c in called(script.names, stmt) for v in values.eval(c) if v.kind == "object" and v.node is c and v.cls is not None)
    return any(
        values.defs.method(cls, name) is not None and any(script.names.dotted(b) in _PREPARING for k in values.defs.bases(cls) for b in k.bases)
        for cls in built
        for name in ("process", "download")
    )


def fetched_inside(script: Script, call: ast.Call, first: Set[ast.AST]) -> bool:
    """Whether the call fetches in functions of the program alone, each with a statement that rank 0 runs first: they wait once."""
    entered = [{e, *script.roles.all_entered(e)} for e in script.roles.entered(call)]
    return bool(entered) and all(functions & first and script.names.function(call) not in functions for functions in entered)
