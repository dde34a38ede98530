"""The training loop does not go through a DataLoader.

## What it finds
A `backward()` that no `for … in loader` over a DataLoader of this file reaches: batches sliced by hand from tensors, `next(iterator)`,
one full batch, a loader from another file.

A step of the optimizer in a loop over parts of a batch (`for part in batch:`).

## Why it matters
Data parallelism means that the ranks train on different samples. Where the samples come from a DataLoader, a sampler divides them; where
they are cut by hand, only the author knows how.

## Example
```python
for i in range(0, len(x), batch_size):
    loss = criterion(model(x[i : i + batch_size]), y[i : i + batch_size])
```
can be migrated after it is written as
```python
loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
for xb, yb in loader:
    loss = criterion(model(xb), yb)
```

## When it is not fixed
Always: it is a refusal. The report says what was found instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.names import Loop
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM901", severity=Severity.BLOCKER)
def no_training_loop(script: Script) -> Iterator[Hit]:
    if script.entry is None:
        return  # what trains here is put together elsewhere: DPM909 says so
    roles = script.roles
    reached = {id(b) for loop in roles.train_loops for b in script.loop_backwards(loop)}
    lost = [b for b in roles.backwards if id(b) not in reached]
    if lost:
        yield Hit(lost[0], f"this backward() is not reached from a loop over a DataLoader: {_instead(script, lost[0])}", advice=_ADVICE)
        return
    for loop in roles.train_loops:
        if any(isinstance(a, ast.While | ast.For) and any(o.node is a for o in roles.batch_loops) for a in script.names.ancestors(loop.node)):
            yield Hit(loop.node, "this training loop stands inside another loop over a DataLoader", advice="train in one loop over one loader")
        for inner in (n for n in ast.walk(loop.node) if isinstance(n, ast.For) and n is not loop.node):
            if _steps_inside(script, inner) and _goes_over_batch(script, inner, loop.node):
                yield Hit(
                    inner, "the optimizer steps over parts of a batch: with smaller batches these would be other steps",
                    advice="let the DataLoader make the batches that are stepped on",
                )  # fmt: skip


def _steps_inside(script: Script, loop: ast.For) -> bool:
    """Whether every turn of the loop has a backward and clears the gradients: it steps; chunks of one step do not clear them."""
    calls = [n.func.attr for n in ast.walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return "zero_grad" in calls and any(script.names.is_inside(b, loop) for b in script.roles.backwards)


def _goes_over_batch(script: Script, inner: ast.For, loop: Loop) -> bool:
    """Whether the inner loop goes over what the outer one takes from the loader."""
    if isinstance(loop, ast.While):
        return False
    target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call) else loop.target
    batch = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in batch for n in ast.walk(inner.iter))


_ADVICE = "put the data into a Dataset and loop over a DataLoader of it: for batch in DataLoader(TensorDataset(x, y), batch_size=…, shuffle=True)"


def _instead(script: Script, backward: ast.Call) -> str:
    if not script.roles.loader_calls:
        return "no DataLoader is built in this file"
    loop = next((a for a in script.names.ancestors(backward) if isinstance(a, Loop)), None)
    inside = list(ast.walk(loop)) if loop is not None else []
    if any(
        isinstance(n, ast.Call) and (script.names.dotted(n.func) == "?.next" or (isinstance(n.func, ast.Attribute) and n.func.attr in ("next", "__next__")))
        for n in inside
    ):
        return "batches are taken with next()"
    if isinstance(loop, ast.For):
        return f"the loop goes over {ast.unparse(loop.iter)}, which is not a DataLoader that this file builds"
    if isinstance(loop, ast.While):
        return "the loop is a while loop that makes its own batches"
    return "it stands in a function that no loop of this file calls"
