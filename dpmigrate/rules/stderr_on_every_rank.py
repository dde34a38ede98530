"""A line goes past what silences the other ranks.

## What it finds
`print(…, file=sys.stderr)` and `sys.stderr.write(…)` in the loops over epochs and batches; `stdout.write(…)` and `print(…, file=stdout)` after
`from sys import stdout`.

## Why it matters
`ddp.setup()` silences the other ranks in one place: `print`, `sys.stdout`, `logging`, `warnings` and tqdm need no test round each call. stderr stays open
there, since tracebacks must be seen, and so does a stdout that was imported by name before. A progress bar written there would be drawn by every rank over
the others'.

## Example
```python
sys.stderr.write(f"\\r{i}/{len(loader)}")
```
becomes
```python
if ddp.is_main():
    sys.stderr.write(f"\\r{i}/{len(loader)}")
```

## When it is not fixed
In an exception handler, and before the training: messages about errors are for every rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import by_main


@rule("DPM501", severity=Severity.NOTE, fix=Fix.SAFE)
def stderr_on_every_rank(script: Script) -> Iterator[Hit]:
    loops = {*script.repeating_loops, *(b.node for b in script.roles.batch_loops)}
    functions = {f for loop in loops for f in script.roles.all_entered(loop)}
    for call in script.roles.calls:
        stream = _stream(script, call)
        if stream is None or script.is_statement(call) is None:
            continue
        around = list(script.names.ancestors(call))
        if any(isinstance(a, ast.ExceptHandler) for a in around):
            continue
        if any(a in loops or (isinstance(a, FunctionNode) and a in functions) for a in around):
            yield Hit(call, f"every rank would write this line: {script.text(stream)} is not silenced", (by_main(script, call), AddImport(script.import_line)))


def _stream(script: Script, call: ast.Call) -> ast.expr | None:
    """The stream that is open on every rank, where the call writes to one."""
    stream = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in ("write", "writelines") else None
    if script.names.dotted(call.func) == "?.print":
        stream = script.argument(call, "file")
    dotted = script.names.dotted(stream) if stream is not None else ""
    return stream if dotted == "sys.stderr" or (dotted == "sys.stdout" and isinstance(stream, ast.Name)) else None
