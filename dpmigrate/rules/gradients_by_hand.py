"""Gradients are taken with torch.autograd.grad.

## What it finds
`torch.autograd.grad` with respect to a model's parameters, in a program that trains.

## Why it matters
DistributedDataParallel averages gradients in hooks of `backward()`. `autograd.grad` does not run them: the gradients stay local and the ranks
drift apart without an error.

## Example
```python
grads = torch.autograd.grad(loss, model.parameters())
```
has to become
```python
loss.backward()
```

## When it is not fixed
Always: it is a refusal. Gradients with respect to inputs (a gradient penalty) are right as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM908", severity=Severity.BLOCKER)
def gradients_by_hand(script: Script) -> Iterator[Hit]:
    for call in script.calls("torch.autograd.grad", "torch.autograd.backward", "torch.func.grad", "torch.func.functional_call"):
        wanted = script.argument(call, "inputs", 1)
        about = [] if wanted is None else list(ast.walk(wanted))
        if wanted is None or any(isinstance(n, ast.Attribute) and n.attr in ("parameters", "weight", "bias") for n in about) or "param" in ast.unparse(wanted):
            yield Hit(call, "gradients taken this way are not averaged over the ranks", advice="use loss.backward(), which DDP hooks into")
