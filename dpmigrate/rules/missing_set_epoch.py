"""The epoch loop does not tell the sampler which epoch it is.

## What it finds
The loop that repeats the training loop, whatever its variable is called, over functions and methods.

## Why it matters
A DistributedSampler shuffles with seed + epoch. Without `set_epoch` every epoch has the order of the first.

## Example
```python
for epoch in range(epochs):
    train(model, loader)
```
becomes
```python
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    train(model, loader)
```

Where batches are taken with `next()`, no loop counts the epochs; each new pass gets its order where it begins:
```python
except StopIteration:
    ddp.next_epoch(loader)
    it = iter(loader)
```

## When it is not fixed
When the loop has no counter, or the loader has no name where the loop stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Before, Edit, First
from dpmigrate.facts.loops import BatchLoop, restarts
from dpmigrate.facts.names import Loop
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM205", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def missing_set_epoch(script: Script) -> Iterator[Hit]:
    for b in script.roles.train_feeds:
        if b.drawn is not None:
            yield from _drawn(script, b)
            continue
        places = script.epoch_places(b)
        if not places and not script.starts(b.node):
            yield Hit(
                b.node, "set_epoch is needed in the loop that repeats this one, but nothing in this file is seen to come here", severity=Severity.BLOCKER,
                advice="call the function that holds this loop by its name, from the loop over epochs",
            )  # fmt: skip
        for place in places:
            counter = epoch_counter(place.loop)
            if counter is None or place.loader is None:
                missing = "has no counter" if counter is None else "does not see the loader"
                yield Hit(
                    place.loop, f"set_epoch is needed here, but the loop {missing}", severity=Severity.BLOCKER,
                    advice="count the epochs in a variable of this loop, and keep the training loader in a variable that it sees",
                )  # fmt: skip
                continue
            code = f"{place.loader}.sampler.set_epoch({counter})"
            edit: Edit = Before(script.span(place.inner), code) if place.made_inside else First(script.span(place.loop), code)
            yield Hit(place.loop, f"every epoch would have the same order: {code} is missing", (edit,))


def _drawn(script: Script, loop: BatchLoop) -> Iterator[Hit]:
    """Batches taken with ``next()``: every new pass gets its order where it begins."""
    for place in restarts(script.roles, loop):
        if place.loader is None:
            yield Hit(
                place.stmt, "every pass that begins here would have the same order: the loader is made anew for it", severity=Severity.BLOCKER,
                advice="build the DataLoader once, in a variable of its own, before the loop",
            )  # fmt: skip
            continue
        code = f"{script.ddp}.next_epoch({script.text(place.loader)})"
        yield Hit(place.stmt, f"every pass that begins here would have the same order: {code} is missing", (Before(script.span(place.stmt), code),))


def epoch_counter(loop: Loop) -> str | None:
    """The name that counts the turns: the target of ``for``, the index of ``enumerate``, what a ``while`` adds one to."""
    if isinstance(loop, ast.While):
        for n in ast.walk(loop):
            if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add) and isinstance(n.value, ast.Constant) and n.value.value == 1:
                used = {ast.unparse(x) for x in ast.walk(loop.test) if isinstance(x, ast.Name | ast.Attribute)}
                if ast.unparse(n.target) in used:
                    return ast.unparse(n.target)
        return None
    target = loop.target
    if isinstance(target, ast.Tuple) and isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "enumerate":
        target = target.elts[0]
    return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute) else None
