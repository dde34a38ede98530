"""The wrapper is handed to code that expects the model.

## What it finds
A wrapped model as an argument of a function outside of the program: `copy.deepcopy(model)`, `EMA(model)`, `ema.update(model)`,
`summary(model, …)`, an evaluation function. Also `writer.add_graph(model, …)`, `isinstance(model, Net)` and `type(model)`; of programs with DataParallel
the name of the class alone (`type(model).__name__`), which was the model's on one GPU. And a wrapped model of which another one with a wrapper of its own is
made: `Fusion(text.model, audio.model)`.

## Why it matters
A copy of the wrapper is a second wrapper with a reducer of its own and keys with `module.`; a function that reads attributes of the model finds none;
one that evaluates should not wait for other ranks. A wrapper inside of a wrapped model is asked for layers that it has not, and its keys have `module.` within.

## Example
```python
ema_model = copy.deepcopy(model)
```
becomes
```python
ema_model = copy.deepcopy(model.module)
```

## When it is not fixed
Calls that are also given an optimizer, and calls in the training loop whose value goes into the loss: they may train, and training goes through the
wrapper.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from dpmigrate.edit import Replace
from dpmigrate.facts.passes import goes_into_loss
from dpmigrate.facts.script import Script
from dpmigrate.facts.unwraps import asks_class_of_wrapper
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import bare

_OWN = ("torch.save", "torch.nn.SyncBatchNorm.", "torch.compile", "torch.optim.", "torch.nn.parallel.", "torch.nn.DataParallel")

_COPY = frozenset({"copy.deepcopy", "copy.copy"})


@rule("DPM127", severity=Severity.WARNING, fix=Fix.SAFE, core=True)
def wrapper_handed_out(script: Script) -> Iterator[Hit]:
    roles = script.roles
    if script.from_data_parallel:
        yield from _copies(script)
    steppers = {o.call for o in roles.optimizers}
    for call in roles.calls:
        if _asks_class(script, call) or _traces(script, call):
            yield from _bare(script, call, call.args[:1])
            continue
        if _makes_wrapped(script, call):
            yield from _bare(script, call, [*call.args, *(k.value for k in call.keywords)])
            continue
        if not _foreign(script, call) or roles.inside_module(call):
            continue
        if roles.region(call) in ("train", "both") and goes_into_loss(roles, call):
            continue
        arguments = [*call.args, *(k.value for k in call.keywords)]
        if any(v.node in steppers for a in arguments for v in script.values.eval(a)):
            continue
        yield from _bare(script, call, arguments)


def _copies(script: Script) -> Iterator[Hit]:
    """``copy.deepcopy(model).module``: the copy is one of the model now, where it was one of DataParallel."""
    for node in script.names.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "module" and not script.roles.inside_module(node):
            vals = script.roles.present(node.value)
            copies = frozenset(v for v in vals if v.qual in _COPY and isinstance(v.node, ast.Call) and _of_wrapper(script, v.node))
            if copies:
                text = script.text(node.value)
                edit = Replace(script.span(node), text if copies == vals else f"{script.ddp}.unwrap({text})")
                yield Hit(node, f"{text} is a copy of the model, not of the wrapper", (edit,))


def _of_wrapper(script: Script, call: ast.Call) -> bool:
    return any(v.kind == "wrapped" for a in call.args[:1] for v in script.roles.model_vals(a))


def _bare(script: Script, call: ast.Call, arguments: list[ast.expr]) -> Iterator[Hit]:
    for a in arguments:
        if isinstance(a, ast.Name | ast.Attribute | ast.Subscript) and any(v.kind == "wrapped" for v in script.roles.model_vals(a)):
            yield Hit(a, f"{script.text(call.func)} is given the wrapper", (bare(script, a),))


def _asks_class(script: Script, call: ast.Call) -> bool:
    """``isinstance(model, Net)``, ``type(model)``: false or another name for the wrapper.

    A DataParallel program had a wrapper before, on several GPUs at least; ``type(model).__name__`` is meant to be the model's there, too.
    """
    asks = script.names.dotted(call.func) in ("?.isinstance", "?.type") and (not script.from_data_parallel or _names_class(script, call))
    return asks and all(asks_class_of_wrapper(script.names, n) is None for n in (call, script.names.parent[call]))


def _names_class(script: Script, call: ast.Call) -> bool:
    """``type(model).__name__``, which is not compared with the name of a wrapper."""
    name = script.names.parent[call]
    if not isinstance(name, ast.Attribute) or name.attr not in ("__name__", "__qualname__"):
        return False
    above = script.names.parent[name]
    held = (above.left, *above.comparators) if isinstance(above, ast.Compare) else ()
    return not any(isinstance(c, ast.Constant) and "DataParallel" in str(c.value) for c in held)


def _traces(script: Script, call: ast.Call) -> bool:
    """``writer.add_graph(model, …)``: a forward pass on the one rank that has the writer."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "add_graph" and not script.names.dotted(call.func)


def _makes_wrapped(script: Script, call: ast.Call) -> bool:
    """Whether the call makes a module that has a wrapper of its own, as a whole: what becomes a part of it is the bare model."""
    made = frozenset(v for v in script.values.eval(call) if v.node is call and v.cls is not None and script.values.defs.is_module_class(v.cls))
    return bool(made) and made <= frozenset(x for w in script.wraps.wraps for x in script.values.inner(w.made))


def _foreign(script: Script, call: ast.Call) -> bool:
    """Whether the function called is outside of the program: neither of this one, nor a builtin, nor one of torch's that know wrappers."""
    dotted = script.names.dotted(call.func)
    if isinstance(call.func, ast.Attribute) and not dotted:  # ema.update(model), for an object that another file's class made
        made = script.values.eval(call.func.value)
        return bool(made) and all(v.kind == "call" and bool(v.qual) and not v.qual.startswith(("torch.", "?.")) for v in made)
    if not dotted or dotted.startswith(_OWN) or script.values.is_wrap(call):
        return False
    return not (dotted.startswith("?.") and hasattr(builtins, dotted[2:]))
