"""torch.cuda.amp is deprecated.

## What it finds
`torch.cuda.amp.autocast` and `torch.cuda.amp.GradScaler`.

## Why it matters
They warn on every rank at every start and will go.

## Example
```python
with torch.cuda.amp.autocast():
    loss = criterion(model(x), y)
```
becomes
```python
with torch.autocast("cuda"):
    loss = criterion(model(x), y)
```

## When it is not fixed
Names that are imported under another name and used without a call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Edit, Replace
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import torch_at

_NEW = {
    "torch.cuda.amp.autocast": "torch.autocast",
    "torch.cuda.amp.autocast_mode.autocast": "torch.autocast",
    "torch.cuda.amp.GradScaler": "torch.amp.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
}


#: the parameters of the old classes, in order; the new ones have the device before them
_PARAMETERS = {
    "torch.autocast": ("enabled", "dtype", "cache_enabled"),
    "torch.amp.GradScaler": ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled"),
}


@rule("DPM316", severity=Severity.NOTE, fix=Fix.SAFE)
def deprecated_amp(script: Script) -> Iterator[Hit]:
    for call in script.calls(*_NEW):
        new = _NEW.get(script.names.dotted(call.func))
        if new is None or any(isinstance(a, ast.Starred) for a in call.args) or _may_be_new(script, call.func):
            continue
        positional = [f"{name}={script.text(a)}" for name, a in zip(_PARAMETERS[new], call.args, strict=False)]
        keywords = [f"{k.arg}={script.text(k.value)}" if k.arg else f"**{script.text(k.value)}" for k in call.keywords]
        arguments = ", ".join(['"cuda"', *positional, *keywords])
        edits: list[Edit] = [Replace(script.span(call), f"{new}({arguments})"), *torch_at(script, call)]
        yield Hit(call, f"{script.text(call.func)} is deprecated", tuple(edits))


def _may_be_new(script: Script, function: ast.expr) -> bool:
    """Whether the name is imported from one of two places, of which one may be new: ``try: from torch.amp import …``."""
    while isinstance(function, ast.Attribute):
        function = function.value
    if not isinstance(function, ast.Name):
        return False
    return sum(b.how == "import" for b in script.names.bindings(script.names.scope_of[function], function.id)) > 1
