"""Gradients are clipped while they carry the scale of a GradScaler.

## What it finds
Clipping between a scaled `backward()` and `scaler.step(optimizer)` without `scaler.unscale_(optimizer)` before it, in a program that has a GradScaler.

## Why it matters
The scale is 65536 at first: a norm of 0.56 is seen as 3.7e4, so that a limit of 1.0 takes almost all of the gradient away (an update of 7e-6 instead of
0.26 was measured). How much is left depends on the scale, which changes while training.

## Example
```python
scaler.scale(loss).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
```
becomes
```python
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
```
With a disabled scaler `unscale_` does nothing.

## When it is not fixed
When the clipping does not stand in the block of the step: in the middle of an accumulation, or where the step depends on a test and the clipping does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Before
from dpmigrate.facts import precision, steps
from dpmigrate.facts.names import FunctionNode, Loop
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_CHANGES = "they are unscaled first now, so that the result trains otherwise than the original, also in one process"
_MESSAGE = "gradients are clipped while they carry the scale: the limit means another norm at every scale"


@rule("DPM313", severity=Severity.WARNING, fix=Fix.SAFE)
def clip_with_scale(script: Script) -> Iterator[Hit]:
    said: set[ast.stmt] = set()
    for step in precision.scaled_steps(script.roles):
        if precision.unscaled(script.roles, step):
            continue
        beside = steps.clips_before(script.roles, step.stmt)
        if beside:
            code = f"{script.text(step.scaler)}.unscale_({script.text(step.optimizer)})"
            yield Hit(beside[0], _MESSAGE, (Before(script.span(beside[0]), code),), advice=_CHANGES)
            said.update(beside)
            continue
        for clip in _before_the_test(script, step.stmt):
            if clip not in said:
                said.add(clip)
                yield Hit(clip, _MESSAGE, advice="clip right before scaler.step(optimizer), after scaler.unscale_(optimizer), under the same test")


def _before_the_test(script: Script, stmt: ast.stmt) -> Iterator[ast.stmt]:
    """What is clipped before an ``if`` that holds the step."""
    for a in script.names.ancestors(stmt):
        if isinstance(a, FunctionNode | Loop):
            return
        if isinstance(a, ast.If):
            yield from steps.clips_before(script.roles, a)
