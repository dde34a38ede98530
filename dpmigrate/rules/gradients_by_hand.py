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

from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM908", severity=Severity.BLOCKER)
def gradients_by_hand(script: Script) -> Iterator[Hit]:
    for call in script.calls("torch.autograd.grad", "torch.autograd.backward", "torch.func.grad", "torch.func.functional_call"):
        wanted = script.argument(call, "inputs", 1)
        if wanted is None or _parameters(script, wanted, 4):
            yield Hit(call, "gradients taken this way are not averaged over the ranks", advice="use loss.backward(), which DDP hooks into")


def _parameters(script: Script, node: ast.expr, depth: int) -> bool:
    """Whether the expression means parameters, directly or through names."""
    for n in walk(node):
        if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters", "weight", "bias"):
            return True
        if isinstance(n, ast.Name) and "param" in n.id:
            return True
        if isinstance(n, ast.Name) and depth:
            given = [b.value for b in script.names.bindings(script.names.scope_of[n], n.id) if b.how in ("assign", "for") and isinstance(b.value, ast.expr)]
            if any(_parameters(script, v, depth - 1) for v in given if not script.names.is_inside(n, v)):
                return True
    return False
