"""Every rank opens an event or log file of its own.

## What it finds
`SummaryWriter` of `torch.utils.tensorboard` and `tensorboardX`, also of a module that is imported by a computed name, and classes outside of the program that
are called a Logger or Writer.

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
Always fixed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Enclose, MainOnly
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
    known = list(script.calls(*_WRITERS))
    for call in [*known, *(c for c in script.roles.calls if c not in known and _foreign_logger(script, c))]:
        edit: Edit = MainOnly(script.span(call), f"{script.ddp}.main_only")
        stmt = script.names.statement(call)
        if isinstance(stmt, ast.Assign) and stmt.value is call and all(script.names.dotted(t) in _STREAMS for t in stmt.targets) and not script.meets(stmt):
            edit = Enclose(script.span(stmt), script.span(stmt), f"if {script.ddp}.is_main():")
        yield Hit(call, "every rank would write a file of its own", (edit, AddImport(script.import_line)))


def _foreign_logger(script: Script, call: ast.Call) -> bool:
    """``Logger(path)`` outside of the program: what it writes cannot be seen here, that it writes says its name."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "SummaryWriter" and not script.names.dotted(call.func):
        return not any(v.kind in ("class", "func") for v in script.values.eval(call.func))  # importlib.import_module(name).SummaryWriter(path)
    dotted = script.names.dotted(call.func)
    name = dotted.rsplit(".", 1)[-1]
    if not dotted or dotted.startswith(("logging.", "torch.", "csv.", "wandb.", "mlflow.")) or not name.endswith(("Logger", "Writer")):
        return False
    return name[:1].isupper() and (not dotted.startswith("?.") or bool(script.names.stars))
