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

from collections.abc import Iterator

from dpmigrate.facts.optimizers import closures
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM907", severity=Severity.BLOCKER)
def closure_optimizer(script: Script) -> Iterator[Hit]:
    advice = "use an optimizer that takes one gradient a step, or reduce the loss inside the closure by hand"
    for o in script.roles.optimizers:
        if o.qual.endswith(".LBFGS"):
            yield Hit(o.call, "LBFGS calls the loss a different number of times on each rank", advice=advice)
    for call, _ in closures(script.roles):
        yield Hit(call, "step(closure) evaluates the loss inside the optimizer, on local data only", advice=advice)
