"""The model's parameters are changed after the wrap.

## What it finds
`requires_grad` set (also by `requires_grad_()`, or in a method of the model: `model.freeze()`, a `train()` of its own), a layer replaced
(`model.module.fc = …`, `model.module.layers[6] = …`, `add_module`), a weight shared or normalised (`weight_norm`), another type given to the parameters
(`half()`, `double()`, `to(torch.float16)`, `network_to_half(…)`), on a wrapped model. A model that is moved to the CPU to be saved, moved back, and trained
again: `torch.save(net.cpu().state_dict(), path)`.

## Why it matters
DistributedDataParallel looks at the parameters once, when it is built. Parameters frozen later fail at the second step; parameters unfrozen or added
later are never reduced, silently. So are those that have been given another type, or were on another device in between: the hooks on their gradients are
gone, and each rank trains alone.

## Example
```python
model = nn.DataParallel(model)
for epoch in range(10):
    if epoch == 3:
        for p in model.module.backbone.parameters():
            p.requires_grad = True
```
becomes, in its first line,
```python
model = ddp.wrap(model, find_unused=True, thaws=True)
```
DDP is then shown all parameters as trained ones, frozen or not, and looks in each forward for those that get no gradient in it (DPM111 says what that costs).

Of a model that is saved the tensors are copied, and it stays where it is: `ddp.save({k: v.cpu() for k, v in net.module.state_dict().items()}, path)`.

## When it is not fixed
Where layers or parameters are replaced or added, and where the type is changed: the model has to be changed before it is wrapped. For models that the script
does not wrap itself the wrap is put after such statements, and after a change of type also where the script wraps the model before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Replace, Wrap
from dpmigrate.facts.moves import saved_on_cpu
from dpmigrate.facts.parameters import of_wrap
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import bare, option_edit

_SAID = {
    "frozen": "requires_grad is set after the wrap: DDP has already looked at the parameters",
    "method": "{text}() sets requires_grad after the wrap: DDP has already looked at the parameters",
    "layer": "{text} is replaced after the wrap: its parameters are never reduced",
    "added": "{text}(…) after the wrap: the new parameters are never reduced",
    "type": "the type of the model is changed after the wrap: its parameters are not reduced any more",
}


@rule("DPM110", severity=Severity.ERROR, fix=Fix.SAFE)
def changed_after_wrap(script: Script) -> Iterator[Hit]:
    for change in script.changes:
        node = change.node
        message = _SAID[change.kind].format(text=script.text(node.func if isinstance(node, ast.Call) else node))
        advice = "change the type of the model before it is wrapped" if change.kind == "type" else "change the model before it is wrapped"
        wraps = [w for w in script.wraps.wraps if change.thaws and of_wrap(script, change, w)]
        if wraps:
            yield Hit(node, message, tuple(option_edit(script, w, name) for w in wraps for name in ("find_unused", "thaws")))
        else:
            yield Hit(node, message, severity=Severity.BLOCKER, advice=advice)
    for state, away, model in saved_on_cpu(script.roles):
        said = f"{script.text(away)} moves the model away from its wrap: DDP's hooks would be gone when it is trained again"
        held = bare(script, model).template if any(v.kind == "wrapped" for v in script.roles.model_vals(model)) else "{}"
        copied = Wrap(script.span(state), "{k: v.cpu() for k, v in {}.items()}")
        yield Hit(away, said, (Replace(script.span(away), held.replace("{}", script.text(model))), copied))
