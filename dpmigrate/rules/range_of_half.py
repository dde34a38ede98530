"""A number is outside the range of float16.

## What it finds
With `--amp` in float16, in the methods of models: `masked_fill` with a number below -65504 or above 65504, and a number below 6e-8 that is added.

## Why it matters
Under autocast the outputs of linear and convolution layers and of matrix products are float16. Filling them with -1e9 is a RuntimeError ("value cannot be
converted to type at::Half without overflow"); 1e-8 added to them is 0, and what was to be kept from a division by zero is not.

## Example
```python
scores = scores.masked_fill(mask == 0, -1e9)
weights = scores / (scores.sum(-1, keepdim=True) + 1e-8)
```
should become
```python
scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
weights = scores / (scores.sum(-1, keepdim=True) + 1e-6)
```

## When it is not fixed
Always: whether the tensor is float16 at that place is not known, and another number is another result. `--amp-dtype bfloat16` has the range of float32.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import scales

_LARGEST, _SMALLEST = 65504.0, 2.0**-24


@rule("DPM319", severity=Severity.WARNING)
def range_of_half(script: Script) -> Iterator[Hit]:
    if not scales(script):
        return
    for call, _ in script.methods("masked_fill", "masked_fill_"):
        value = script.argument(call, "value", 1)
        number = _number(value) if value is not None else None
        if number is not None and abs(number) > _LARGEST:
            yield Hit(
                call,
                "the number does not fit into float16: a RuntimeError where this tensor comes from a layer under autocast",
                advice="use torch.finfo(x.dtype).min, or --amp-dtype bfloat16",
            )
    for node in script.names.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and script.roles.inside_module(node):
            added = [n for n in (_number(node.left), _number(node.right)) if n is not None]
            if any(0 < n < _SMALLEST for n in added):
                yield Hit(node, "this small number is 0 in float16: it keeps nothing from being zero there", advice="use 1e-6, or --amp-dtype bfloat16")


def _number(node: ast.expr) -> float | None:
    """The value of a literal such as ``-1e9``."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    return float(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else None
