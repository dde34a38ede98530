"""Checkpoints of the DataParallel program have keys with the prefix module.

## What it finds
`load_state_dict` of a model in a program that used DataParallel, and keys of which it cuts the first seven characters (`k[7:]`).

## Why it matters
The migrated program saves the keys of the bare model. Files from before the migration still carry `module.`; with strict=False they would load nothing,
silently. The other way round it cannot be helped: a program that loads into its DataParallel wrapper wants the prefix, and finds none in new files.

## Example
```python
model.load_state_dict(checkpoint["model"])
```
becomes
```python
model.module.load_state_dict(ddp.clean_keys(checkpoint["model"]))
```
and `k[7:]` becomes `k.removeprefix("module.")`: of new keys, which have no prefix, it would cut the name of a layer.

## When it is not fixed
Always fixed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dpmigrate.edit import Replace, Wrap
from dpmigrate.facts.names import last
from dpmigrate.facts.passes import compiled
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_PREFIX = "module."
#: what has states without names of layers, where only its own name says what it is
_STATEFUL = re.compile(r"optim|sched|scaler", re.IGNORECASE)


@rule("DPM404", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def old_checkpoint_keys(script: Script) -> Iterator[Hit]:
    if not script.from_data_parallel:
        return
    for call, func in script.methods("load_state_dict"):
        state = script.argument(call, "state_dict", 0)
        loaded = script.values.eval(func.value)
        named = not script.roles.model_vals(func.value) and bool(_STATEFUL.search(last(func.value)))
        stateful = named or (bool(loaded) and all(v.qual.startswith(("torch.optim.", "torch.amp.", "torch.cuda.amp.")) for v in loaded))
        if state is not None and not stateful:
            edits = [Wrap(script.span(state), f"{script.ddp}.clean_keys({{}})")]
            if compiled(script.roles) and script.roles.model_vals(func.value) and script.roles.wrapped(func.value) is False:
                edits.append(Wrap(script.span(func.value), f"{script.ddp}.unwrap({{}})"))  # which has _orig_mod. in its keys
            yield Hit(state, "old checkpoints of this program have module. in their keys", tuple(edits))
    for node in script.names.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and _cuts_prefix(node.slice) and _is_key(script, node.value):
            edit = Replace(script.span(node), f'{node.value.id}.removeprefix("{_PREFIX}")')
            yield Hit(node, "new checkpoints of this program have no module. in their keys: this cuts the name of a layer", (edit,))


def _cuts_prefix(part: ast.expr) -> bool:
    """``[7:]``, ``[len("module."):]``"""
    if not isinstance(part, ast.Slice) or part.lower is None or part.upper is not None or part.step is not None:
        return False
    match part.lower:
        case ast.Constant(value=7) | ast.Call(func=ast.Name(id="len"), args=[ast.Constant(value="module.")]):
            return True
    return False


def _is_key(script: Script, name: ast.Name) -> bool:
    """Whether a variable goes through the keys of a dictionary: ``for k, v in state.items()``."""
    bound = list(script.names.bindings(script.names.scope_of[name], name.id))
    methods = ((b.path, getattr(b.value.func, "attr", "")) for b in bound if b.how == "for" and isinstance(b.value, ast.Call))
    keys = [path[1:] == (0,) if attr == "items" else attr == "keys" for path, attr in methods]
    return bool(keys) and len(keys) == len(bound) and all(keys)
