"""Every rank opens an event or log file of its own.

## What it finds
`SummaryWriter` of `torch.utils.tensorboard` and `tensorboardX`, also of a module that is imported by a computed name, classes of the program
that derive from it, and classes outside of the program that are called a Logger or Writer.

## Why it matters
W event files in one folder: the curves of all ranks, mixed.

## Example
```python
writer = SummaryWriter("runs")
```
becomes
```python
writer = ddp.main_only(SummaryWriter, "runs")
```
On the other ranks that is an object whose methods do nothing. One that takes the place of `sys.stdout` is made on rank 0 only: libraries ask the stream for
its encoding and its file.

## When it is not fixed
A writer of the program's own that finds its path by the time or in a directory, or that is asked for more than its methods.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Enclose, MainOnly
from dpmigrate.facts.fresh import clocks, free_names, listings
from dpmigrate.facts.names import of_self
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_WRITERS = (
    "torch.utils.tensorboard.SummaryWriter", "torch.utils.tensorboard.writer.SummaryWriter", "tensorboardX.SummaryWriter", "tensorboardX.writer.SummaryWriter",
    "visdom.Visdom", "tensorboardX.FileWriter",
)  # fmt: skip
_STREAMS = ("sys.stdout", "sys.stderr")


@rule("DPM503", severity=Severity.WARNING, fix=Fix.SAFE)
def summary_writer(script: Script) -> Iterator[Hit]:
    derived = dict(_derived(script))
    for call in (c for c, why in derived.items() if why):
        yield Hit(call, f"every rank would write a file of its own, and {derived[call]}", advice="hold a writer in the class instead of deriving from it")
    known = [*script.calls(*_WRITERS), *(c for c, why in derived.items() if not why)]
    for call in [*known, *(c for c in script.roles.calls if c not in known and _foreign_logger(script, c))]:
        edit: Edit = MainOnly(script.span(call), f"{script.ddp}.main_only")
        stmt = script.names.statement(call)
        if isinstance(stmt, ast.Assign) and stmt.value is call and all(script.names.dotted(t) in _STREAMS for t in stmt.targets) and not script.meets(stmt):
            edit = Enclose(script.span(stmt), script.span(stmt), f"if {script.ddp}.is_main():")
        yield Hit(call, "every rank would write a file of its own", (edit, AddImport(script.import_line)))


def _derived(script: Script) -> Iterator[tuple[ast.Call, str]]:
    """The calls of classes of the program that derive from a writer, each with what speaks against an object without effect on the other ranks."""
    for call in script.roles.calls:
        classes = [v.cls for v in script.values.eval(call.func) if v.kind == "class" and v.cls is not None]
        if not any(script.names.dotted(b) in _WRITERS for c in classes for k in script.values.defs.bases(c) for b in k.bases):
            continue
        methods = [m for m, _ in script.values.targets(call)]
        entered = {f for m in methods for f in (m, *script.roles.all_entered(m))}
        paths = [*clocks(script), *(c for c, _ in listings(script)), *free_names(script)]
        asked = next((n for n in script.names.nodes if isinstance(n, ast.Attribute) and _reads(script, n, call)), None)
        if any(script.names.function(p) in entered for p in paths):
            yield call, "all ranks have to make its path together"
        else:
            yield call, f"the others ask for its {asked.attr} ({script.where(asked)})" if asked is not None else ""


def _reads(script: Script, node: ast.Attribute, made: ast.Call) -> bool:
    """Whether the attribute is one that an object without effect does not have: read outside of the class, and not called."""
    above = script.names.parent[node]
    if not isinstance(node.ctx, ast.Load) or (isinstance(above, ast.Call) and above.func is node) or isinstance(above, ast.Attribute) or of_self(node):
        return False
    return any(v.kind == "object" and v.node is made for v in script.values.eval(node.value))


def _foreign_logger(script: Script, call: ast.Call) -> bool:
    """``Logger(path)`` outside of the program: what it writes cannot be seen here, that it writes says its name."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "SummaryWriter" and not script.names.dotted(call.func):
        return not any(v.kind in ("class", "func") for v in script.values.eval(call.func))  # importlib.import_module(name).SummaryWriter(path)
    dotted = script.names.dotted(call.func)
    name = dotted.rsplit(".", 1)[-1]
    if not dotted or dotted.startswith(("logging.", "torch.", "csv.", "wandb.", "mlflow.")) or not name.endswith(("Logger", "Writer")):
        return False
    return name[:1].isupper() and (not dotted.startswith("?.") or bool(script.names.stars))
