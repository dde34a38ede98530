"""An attribute of the model is read through the wrapper.

## What it finds
`model.fc`, `model.state_dict()`, `model.load_state_dict(…)`, `model.config` and methods of the model's own, where `model` is the wrapper.

## Why it matters
The wrapper has no attributes of the model: AttributeError. Its `state_dict` has keys with a `module.` prefix that no other program can load.

## Example
```python
torch.save(model.state_dict(), "model.pt")
```
becomes
```python
ddp.save(model.module.state_dict(), "model.pt")
```

## When it is not fixed
Training passes through methods (DPM108). Where the name may mean the bare model or the wrapper, `ddp.unwrap(model)` is written, which is right for both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Wrap
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: what the wrapper answers as the model does
_BOTH = frozenset(
    [
        "parameters",
        "train",
        "eval",
        "zero_grad",
        "training",
        "module",
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "no_sync",
        "requires_grad_",
        "forward",
        "__class__",
    ]
)


@rule("DPM107", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def attribute_behind_wrapper(script: Script) -> Iterator[Hit]:
    roles = script.roles
    for node in script.names.nodes:
        if not isinstance(node, ast.Attribute) or node.attr in _BOTH or roles.inside_module(node):
            continue
        if not any(v.kind == "wrapped" for v in roles.model_vals(node.value)):
            continue
        template = "{}.module" if roles.wrapped(node.value) else f"{script.ddp}.unwrap({{}})"
        what = "has keys with the prefix module." if node.attr in ("state_dict", "load_state_dict") else "is not found on the wrapper"
        yield Hit(node, f"{script.text(node)} {what}", (Wrap(script.span(node.value), template),))
