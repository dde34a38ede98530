"""A checkpoint is written by every rank.

## What it finds
`torch.save`, however it is imported, in the script or in a helper function, also where it is handed on: `Thread(target=torch.save, args=…)`,
`writers = {".pt": torch.save, ".json": write_json}`.

## Why it matters
Ranks that write one file at once tear it (1 of 40 unreadable), and a reader that comes meanwhile finds half of it. `ddp.save` writes on rank 0 only,
to a temporary file that replaces the old one when it is complete.

## Example
```python
torch.save(state, path)
```
becomes
```python
ddp.save(state, path)
```

## When it is not fixed
What a data set saves of the sample that it is asked for, under a name of that sample's own (`torch.save(x, f"cache/{i}.pt")` in `__getitem__`): each rank
keeps the samples that it is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Replace
from dpmigrate.facts.sample_files import keeps_one_sample
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import bare

_SAVE = "torch.save"


@rule("DPM401", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def save_on_every_rank(script: Script) -> Iterator[Hit]:
    done: set[ast.expr] = set()
    calls = list(script.calls(_SAVE))
    of_samples = any(keeps_one_sample(script, call) for call in calls if script.names.dotted(call.func) != _SAVE)
    handed = [] if of_samples else [node for node in script.names.nodes if _is_handed_on(script, node)]
    for function in handed:
        edits = (Replace(script.span(function), f"{script.ddp}.save"), AddImport(script.import_line))
        yield Hit(function, "every rank would write the files of this function", edits)
    for call in calls:
        if keeps_one_sample(script, call):
            continue
        sole = all(v.kind == "ext" and v.qual == _SAVE for v in script.values.eval(call.func))  # `getattr(torch, "save")(x, path)`
        if script.names.dotted(call.func) == _SAVE or (sole and not handed):  # what is handed on is another function where it has its name
            yield Hit(call, "every rank would write this file", (Replace(script.span(call.func), f"{script.ddp}.save"), AddImport(script.import_line)))
        for obj in _saved(script, script.argument(call, "obj", 0)):
            if obj not in done and any(v.kind == "wrapped" for v in script.roles.model_vals(obj)):
                done.add(obj)
                off = (bare(script, obj), *_taken_out(script, obj))
                yield Hit(obj, "the wrapper would be pickled; it can be loaded only where a process group runs", off)


def _is_handed_on(script: Script, node: ast.AST) -> bool:
    """Whether ``torch.save`` stands for a function that somebody else calls: an argument, a default, an entry of a table, what a variable is given."""
    if not isinstance(node, ast.Attribute | ast.Name) or script.names.dotted(node) != _SAVE:
        return False
    above = script.names.parent[node]
    called = isinstance(above, ast.Call) and above.func is node
    return not called and not isinstance(above, ast.Attribute | ast.Compare) and isinstance(node.ctx, ast.Load)


def _saved(script: Script, obj: ast.expr | None) -> Iterator[ast.expr]:
    """``model`` of ``save(model, …)``, and of ``save({"model": model}, …)``, through a name too: the module is saved, not the wrapper."""
    if obj is None:
        return
    yield obj
    for v in script.values.eval(obj):
        if isinstance(v.node, ast.Dict):
            yield from v.node.values
        elif isinstance(v.node, ast.Tuple | ast.List):
            yield from v.node.elts


def _taken_out(script: Script, entry: ast.expr) -> Iterator[Edit]:
    """Where the wrapper is taken off what a dictionary has had: ``states["model"].module``; that is the module itself now."""
    held = script.names.parent[entry]
    if not isinstance(held, ast.Dict):
        return
    key = held.keys[held.values.index(entry)]
    for off in script.names.attributes("module"):
        of = off.value
        if isinstance(of, ast.Subscript) and key is not None and ast.unparse(of.slice) == ast.unparse(key) and isinstance(off.ctx, ast.Load):
            if any(v.node is held for v in script.values.eval(of.value)):
                yield Replace(script.span(off), f"{script.ddp}.unwrap({script.text(of)})")
                yield AddImport(script.import_line)
