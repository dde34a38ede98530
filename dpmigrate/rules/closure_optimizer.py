"""The optimizer calls the loss itself, through a closure.

## What it finds
`LBFGS`, and `optimizer.step(closure)`.

## Why it matters
The closure is called a number of times that depends on the loss, and the loss of each rank is its own: the ranks do different numbers of
backward passes, which hangs the job or lets the parameters drift apart (by 0.53 in one measured run).

## Example
```python
optimizer.step(closure)
```
has no data-parallel form of its own; an optimizer that takes one gradient per step (SGD, Adam) has.

## When it is not fixed
Always: it is a refusal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM907", severity=Severity.BLOCKER)
def closure_optimizer(script: Script) -> Iterator[Hit]:
    advice = "use an optimizer that takes one gradient a step, or reduce the loss inside the closure by hand"
    for o in script.roles.optimizers:
        if o.qual.endswith(".LBFGS"):
            yield Hit(o.call, "LBFGS calls the loss a different number of times on each rank", advice=advice)
    stepped = {o.call for o in script.roles.optimizers}
    for call, func in script.methods("step"):
        closure = script.argument(call, "closure", 0)
        if (
            closure is not None
            and not (isinstance(closure, ast.Constant) and closure.value is None)
            and any(v.node in stepped for v in script.values.eval(func.value))
        ):
            yield Hit(call, "step(closure) evaluates the loss inside the optimizer, on local data only", advice=advice)
