"""A model is found by name when the program runs, and its class is not seen.

## What it finds
Trained models of which the program says only at run time what they are, in a way that cannot be followed: `importlib.import_module(cfg.model)`,
`hydra.utils.instantiate(cfg.model)`, `eval(name)`, a registry that nothing in the program fills.

## Why it matters
The wrap is right for any model. What the class itself does is not seen, nor changed: layers that a step leaves out, by which DDP stops in the second
step; counters and queues in buffers; losses that `forward` computes over the batch; fixed GPU numbers.

## Example
```python
import importlib

model = importlib.import_module(args.model).Net()
```
is seen when it is written as
```python
from models.resnet import Net

model = Net()
```

## When it is not fixed
Always: it is a warning. Names that are computed but begin with a package (`import_module(f"models.{name}")`), look-ups in modules of the program and in
registries that decorators fill are followed: every class that they may find is looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.names import position
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM144", severity=Severity.WARNING)
def class_unseen(script: Script) -> Iterator[Hit]:
    models = {v.node for m in script.roles.models for v in script.values.inner(m) if v.kind == "call" and isinstance(v.node, ast.Call)}
    for call in sorted(models, key=position):
        corner = script.values.lookups.behind(call)
        if corner:
            yield Hit(
                call, f"the class of this model is found by {corner} when the program runs: not seen is whether a step leaves layers out, "
                "what its buffers count, and what files that only it imports do",
                advice="import the class by its name (from models.net import Net), or look for these in it yourself",
            )  # fmt: skip
