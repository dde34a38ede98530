"""The loss is a sum over the batch.

## What it finds
A loss with `reduction="sum"`, or summed by hand, that goes into `backward()`.

## Why it matters
DistributedDataParallel averages the gradients of the ranks. The mean of the ranks' sums is W times smaller than the sum over the global batch
that the original took.

## Example
```python
loss = F.mse_loss(out, y, reduction="sum")
loss.backward()
```
becomes
```python
loss = F.mse_loss(out, y, reduction="sum")
(loss * ddp.world_size()).backward()
```

## When it is not fixed
When part of the loss is a mean and part a sum (DPM305).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Wrap
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM301", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def sum_loss(script: Script) -> Iterator[Hit]:
    for call in script.roles.backwards:
        loss = script.losses.of_backward(call)
        if loss.norm is not Norm.SUM:
            continue
        assert isinstance(call.func, ast.Attribute)
        node: ast.expr = call.func.value
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale" and node.args:
            node = node.args[0]
        inner = "{} * " if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else "({}) * "
        code = f"({inner}{script.ddp}.world_size())" if node is call.func.value else f"{inner}{script.ddp}.world_size()"
        why = f" ({loss.why})" if loss.why else ""
        yield Hit(call, f"the loss is a sum{why}: averaged gradients would be W times too small", (Wrap(script.span(node), code),))
