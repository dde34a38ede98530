"""The wrapper is handed to code that knows only the model.

## What it finds
A wrapped model as an argument of a function or class of another file, outside the computation of the loss: `evaluate(net, loader)`,
`save_checkpoint(net, path)`, `ema.update(net)`.

## Why it matters
That code was written for the bare model. The wrapper has none of its attributes (`net.n_classes`), its state dict has the prefix `module.`, and its
forward belongs to training.

## Example
```python
from evaluate import evaluate

score = evaluate(net, val_loader)
```
becomes
```python
from evaluate import evaluate

score = evaluate(net.module, val_loader)
```

## When it is not fixed
When the function gets an optimizer as well, or what it gives goes into the loss: then it may train, which must go through the wrapper. A function that did
the same under DataParallel (`nn.DataParallel` in the source) is left as it is, because it knows the wrapper.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Wrap
from dpmigrate.facts.script import Script, written_names
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: libraries that take a wrapper as it is, and Python's own functions
_KNOW_IT = ("torch.", "?.", "copy.", "functools.", "dpmigrate_runtime.")


@rule("DPM117", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def wrapper_handed_out(script: Script) -> Iterator[Hit]:
    if script.from_data_parallel:
        return
    for call in script.roles.calls:
        if not _elsewhere(script, call) or _may_train(script, call):
            continue
        for given in (*call.args, *(k.value for k in call.keywords)):
            kinds = {v.kind == "wrapped" for v in script.values.eval(given)} if isinstance(given, ast.Name | ast.Attribute) else set()
            if True not in kinds:
                continue
            edits: list[Edit] = [Wrap(script.span(given), "{}.module" if kinds == {True} else f"{script.ddp}.unwrap({{}})"), AddImport(script.import_line)]
            yield Hit(given, f"{script.text(call.func)} of another file would get the wrapper instead of the model", tuple(edits))


def _elsewhere(script: Script, call: ast.Call) -> bool:
    """Whether what is called stands in another file: imported, or a method of an object that something imported has made."""
    dotted = script.names.dotted(call.func)
    if dotted:
        return not dotted.startswith(_KNOW_IT)
    if not isinstance(call.func, ast.Attribute):
        return False
    owners = script.values.eval(call.func.value)
    return bool(owners) and all(v.kind == "call" and bool(v.qual) and not v.qual.startswith(_KNOW_IT) for v in owners)


def _may_train(script: Script, call: ast.Call) -> bool:
    """Whether the call gets an optimizer, or its value goes into a loss."""
    optimizers = {o.call for o in script.roles.optimizers}
    given = [*call.args, *(k.value for k in call.keywords)]
    if any(v.node in optimizers for g in given for v in script.values.eval(g)):
        return True
    stmt = script.names.statement(call)
    if isinstance(stmt, ast.Expr):
        return any(b is stmt.value for b in script.roles.backwards)
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [n for n in [getattr(stmt, "target", None)] if isinstance(n, ast.AST)]
    return bool(written_names(*targets) & script.loss_sources)
