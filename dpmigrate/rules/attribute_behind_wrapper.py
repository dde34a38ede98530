"""An attribute of the model is read through the wrapper.

## What it finds
`model.fc`, `model.state_dict()`, `model.load_state_dict(…)`, `model.config` and methods of the model's own, `model[0]`, `len(model)`,
`getattr(model, "fc")` and `getattr(model, "_orig_mod", model)`, `setattr(model, "alpha", 2)`, `delattr` and `vars(model)`, where `model` is the wrapper.

## Why it matters
The wrapper has no attributes of the model: AttributeError; what is set on it, the model inside never sees.
Its `state_dict` has keys with a `module.` prefix that a model without wrapper cannot load.

## Example
```python
torch.save(model.state_dict(), "model.pt")
```
becomes
```python
ddp.save(model.module.state_dict(), "model.pt")
```

## When it is not fixed
Training passes through methods (DPM108). Where the name may mean the wrapper or something else (the bare model, a copy, an optimizer of the
same dict), `ddp.unwrap(model)` is written, which is right for all; so it is where nobody in the program calls the function, and an attribute is called as the
one that holds the wrapper (`trainer.model.state_dict()` in a hook), and in a file that scripts import as well which are not rewritten with it.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from dpmigrate.edit import Wrap
from dpmigrate.facts.library import FLOATS, MOVES, SETTINGS
from dpmigrate.facts.moves import saved_on_cpu
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.passes import compiled
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity, is_main_guard
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import bare

#: what the wrapper answers as the model does
_BOTH = SETTINGS | MOVES | FLOATS | {"parameters", "training", "module", "no_sync", "forward"}

#: builtins that are given the model and look at, or change, what it holds
_ASK = frozenset(f"?.{name}" for name in ("len", "list", "iter", "enumerate", "getattr", "hasattr", "setattr", "delattr", "vars", "dir"))


@rule("DPM107", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def attribute_behind_wrapper(script: Script) -> Iterator[Hit]:
    roles = script.roles
    held = {w.target.rpartition(".")[2] for w in script.wraps.wraps if "." in w.target}
    detours = {id(n) for p in roles.detours for n in walk(p.call.func)}
    # with train() and eval() both have the same; what the program sets by itself is the model's
    sets = any(isinstance(n, ast.Attribute) and n.attr == "training" and isinstance(n.ctx, ast.Store) for n in script.names.nodes) or any(
        isinstance(a, ast.Constant) and a.value == "training" for c in script.calls("?.setattr") for a in c.args[1:2]
    )
    both = _BOTH - {"training"} if sets else _BOTH
    kept = _of_data_parallel(script)
    saved = {state.func for state, _, _ in saved_on_cpu(roles)}  # of DPM110, which takes the model's own state
    for node in script.names.nodes:
        if roles.inside_module(node) or id(node) in detours or node in saved:
            continue
        for value in _behind(script, node, both, kept):
            keys = isinstance(node, ast.Attribute) and node.attr in ("state_dict", "load_state_dict")
            if isinstance(node, ast.Attribute) and node.attr == "__class__" and script.from_data_parallel:
                continue  # it was a wrapper's class before
            by_name = keys and isinstance(value, ast.Attribute) and value.attr in held and not script.values.eval(value.value)
            if by_name or any(v.kind == "wrapped" for v in roles.model_vals(value)):
                # DPM404 takes every prefix off the keys that are loaded
                plain = keys and script.from_data_parallel and compiled(script.roles)
                edit = Wrap(script.span(value), f"{script.ddp}.unwrap({{}})") if plain else bare(script, value)
                otherwise = node.args[2] if isinstance(node, ast.Call) and len(node.args) > 2 else None
                edits = [edit]
                if otherwise is not None and any(v.kind == "wrapped" for v in roles.model_vals(otherwise)):
                    edits.append(bare(script, otherwise))  # getattr(model, "_orig_mod", model) is the bare model either way
                what = "has keys with the prefix module." if keys else "is not found on the wrapper"
                place = node.iter if isinstance(node, ast.For | ast.comprehension) else node
                yield Hit(place, f"{script.text(place)} {what}", tuple(edits))


def _of_data_parallel(script: Script) -> set[str]:
    """What the program sets on its DataParallel itself, ``net.best = loss``: the model inside did not have it, and has not got it now. All that the wrapper
    holds, ``vars(net)`` and ``net.__dict__``, is its own.
    """
    calls = [w.node for w in script.wraps.wraps if w.how == "call"]
    above = (a for call in calls for a in script.names.ancestors(call))
    if not calls or script.wraps.removed or any(isinstance(a, ast.If | ast.IfExp) and not is_main_guard(a) for a in above):
        return set()  # with one GPU it may be the model itself
    stored = [(n.attr, n.value) for n in script.names.nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    by_name = [c.args for c in script.calls("?.setattr") if len(c.args) == 3 and isinstance(c.args[1], ast.Constant)]
    stored += [(str(name.value), owner) for owner, name, _ in by_name if isinstance(name, ast.Constant)]
    found = ((name, script.roles.model_vals(owner)) for name, owner in stored if name not in _BOTH)
    return {"__dict__"} | {attr for attr, held in found if held and all(v.kind == "wrapped" for v in held)}


def _behind(script: Script, node: ast.AST, both: Container[str], kept: Container[str]) -> Iterator[ast.expr]:
    """The model of ``model.x``, ``model[0]``, ``for layer in model``, ``len(model)`` and ``setattr(model, name, value)``, but for what is on ``both``, or
    ``kept`` on the wrapper.
    """
    if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr not in both and node.attr not in kept):
        yield node.value
    elif isinstance(node, ast.For | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.Call) and script.names.dotted(node.func) == "?.vars" and "__dict__" in kept:
        return
    elif isinstance(node, ast.Call) and "__dict__" not in kept and (bound := _bound_to(script, node)) is not None:
        yield bound
    elif isinstance(node, ast.Call) and script.names.dotted(node.func) in _ASK and node.args:
        asked = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else None
        if asked not in both and asked not in kept:
            yield node.args[0]


def _bound_to(script: Script, call: ast.Call) -> ast.expr | None:
    """What a function becomes a method of: ``count.__get__(model)``, ``types.MethodType(count, model)``. The model has it, and is called past the wrapper."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "__get__" and call.args:
        return call.args[0]
    return call.args[1] if script.names.dotted(call.func) == "types.MethodType" and len(call.args) > 1 else None
