"""Activation checkpointing runs a second backward inside the first.

## What it finds
`torch.utils.checkpoint.checkpoint` and `checkpoint_sequential` with `use_reentrant=True`, or without `use_reentrant`, which means the same in most
versions of PyTorch.

## Why it matters
The re-entrant form computes gradients in a backward pass of its own. DistributedDataParallel then stops with "Expected to mark a variable ready only
once", or lets the ranks drift apart without an error where a layer is checkpointed twice, or reduces nothing. The other form gives the same numbers and
PyTorch recommends it.

## Example
```python
h = checkpoint(self.block, h)
```
becomes
```python
h = checkpoint(self.block, h, use_reentrant=False)
```

## When it is not fixed
Checkpointing outside of the program. A block none of whose inputs needs a gradient got none in the re-entrant form (PyTorch warns of it), and is trained now.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import SetArg
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM122", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def reentrant_checkpoint(script: Script) -> Iterator[Hit]:
    for call in script.calls("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"):
        given = script.argument(call, "use_reentrant")
        if any(k.arg is None for k in call.keywords) or (isinstance(given, ast.Constant) and given.value is False):
            continue
        yield Hit(call, "re-entrant checkpointing goes round DDP's reduction of gradients", (SetArg(script.span(call), "use_reentrant", "False"),))
