"""The wrapper is handed to code that expects the model.

## What it finds
Outside the training loop, a wrapped model as an argument of a function of another file or library: `copy.deepcopy(model)`, `EMA(model)`,
`summary(model, …)`, an evaluation function.

## Why it matters
A copy of the wrapper is a second wrapper with a reducer of its own and keys with `module.`; a function that reads attributes of the model finds none;
one that evaluates should not wait for other ranks.

## Example
```python
ema_model = copy.deepcopy(model)
```
becomes
```python
ema_model = copy.deepcopy(model.module)
```

## When it is not fixed
Calls that are also given an optimizer: they may train, and training goes through the wrapper.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from dpmigrate.edit import Wrap
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_OWN = ("torch.save", "torch.compile", "torch.optim.", "torch.nn.parallel.", "torch.nn.DataParallel")


@rule("DPM127", severity=Severity.WARNING, fix=Fix.SAFE, core=True)
def wrapper_handed_out(script: Script) -> Iterator[Hit]:
    roles = script.roles
    steppers = {o.call for o in roles.optimizers}
    for call in roles.calls:
        if not _foreign(script, call) or roles.inside_module(call) or roles.region(call) in ("train", "both"):
            continue
        arguments = [*call.args, *(k.value for k in call.keywords)]
        if any(v.node in steppers for a in arguments for v in script.values.eval(a)):
            continue
        for a in arguments:
            if isinstance(a, ast.Name | ast.Attribute) and any(v.kind == "wrapped" for v in roles.model_vals(a)):
                template = "{}.module" if roles.wrapped(a) else f"{script.ddp}.unwrap({{}})"
                yield Hit(a, f"{script.text(call.func)} is given the wrapper", (Wrap(script.span(a), template),))


def _foreign(script: Script, call: ast.Call) -> bool:
    """Whether the function called is of another file: neither of this one, nor a builtin, nor one of torch's that know wrappers."""
    dotted = script.names.dotted(call.func)
    if not dotted or dotted.startswith(_OWN) or script.values.is_wrap(call):
        return False
    return not (dotted.startswith("?.") and hasattr(builtins, dotted[2:]))
