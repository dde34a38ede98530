"""The model, or the place of its wrap, cannot be established.

## What it finds
A training program in which no optimizer is given the parameters of a model that can be followed, a model reached by two names, a variable
that may hold the bare model or the wrapper, a trained parameter that belongs to no model.

## Why it matters
The wrap decides whether gradients are averaged at all. A wrong guess trains one model per rank and reports success.

## Example
```python
optimizer = build(cfg)  # parameters from where?
```
can be followed when it is written as
```python
optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
```

A tensor that a step makes of its batch and optimises by itself, such as an adversarial perturbation, belongs to no model and needs none: nothing of it is
averaged. Its loss has to be a sum over the samples, so that each sample has the gradient that one process would give it.

## When it is not fixed
Always: it is a refusal. The message says which name could not be followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.nodes import walk
from dpmigrate.facts.optimizers import Optimizer, closures, module_of
from dpmigrate.facts.perturbations import perturbations
from dpmigrate.facts.script import Script
from dpmigrate.facts.values import Val, Vals
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM904", severity=Severity.BLOCKER)
def untraceable_model(script: Script) -> Iterator[Hit]:
    if script.entry is None:
        return  # what trains here is put together elsewhere: DPM909 says so
    roles = script.roles
    advice = "keep the model in one variable from its construction to the training loop"
    for node, why in script.wraps.problems:
        yield Hit(node, script.told(why), advice=why.advice or advice)
    if script.wraps.problems or not roles.train_loops:
        return
    if not roles.optimizers:
        yield Hit(
            roles.backwards[0], "no optimizer is built in this program from a model's parameters", advice="build it as torch.optim.X(model.parameters(), …)"
        )
    found = perturbations(script)
    for p in (p for p in found if not p.summed):
        yield Hit(
            p.optimizer.call, f"{script.text(p.tensor)} is made for each batch, and its loss is no sum: a part of the batch gives it another gradient",
            advice="sum the loss of the perturbation over the samples (reduction='sum'), so that each sample has a gradient of its own",
        )  # fmt: skip
    mine = {p.optimizer for p in found}
    for o in (o for o in roles.optimizers if o not in mine):
        if not o.models:
            yield Hit(o.call, "whose parameters this optimizer gets cannot be followed", advice=advice)
    given = [(o.call, a) for o in roles.optimizers if o not in mine for a in (*o.call.args, *(k.value for k in o.call.keywords))]
    given += [(c, a) for c, _ in script.methods("add_param_group") for a in c.args]
    for call, arg in given:
        loose = next(_loose(script, arg, 4), None)
        if loose is not None:
            yield Hit(
                call, f"{script.text(loose)} is trained, but belongs to no model: its gradient would not be averaged",
                advice="make it a parameter of the model, and use it in forward()",
            )  # fmt: skip
    if roles.optimizers and all(o.models or o in mine for o in roles.optimizers):
        yield from _uncalled(script, advice)


def _loose(script: Script, node: ast.expr, depth: int) -> Iterator[ast.expr]:
    """Parameters made by hand that the expression holds: ``nn.Parameter(…)``, ``torch.zeros(1, requires_grad=True)``."""
    for n in walk(node):
        if not isinstance(n, ast.Name | ast.Attribute | ast.Call):
            continue
        for v in script.values.eval(n):
            if isinstance(v.node, ast.List | ast.Tuple) and isinstance(n, ast.Name) and depth:
                yield from _loose(script, v.node, depth - 1)
            elif v.kind == "call" and isinstance(v.node, ast.Call) and _by_hand(v.qual, v.node) and not (v.qual in _PARAMETER and _of_model(script, n)):
                yield n


_PARAMETER = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")


def _of_model(script: Script, node: ast.expr) -> bool:
    """Whether it is an attribute of a model that is trained, which the model holds as a parameter: ``model.temperature``."""
    if not isinstance(node, ast.Attribute):
        return False
    owners = module_of(script.roles, node.value)
    return bool(owners) and owners <= script.roles.models and all(v.cls is not None and script.values.defs.is_module_class(v.cls) for v in owners)


def _by_hand(qual: str, call: ast.Call) -> bool:
    if qual in _PARAMETER:
        return True
    asked = next((k.value for k in call.keywords if k.arg == "requires_grad"), None)
    return qual.startswith("torch.") and isinstance(asked, ast.Constant) and asked.value is True


def _behind(script: Script, node: ast.expr) -> Vals:
    return frozenset(x for v in script.roles.model_vals(node) for x in script.values.inner(v))


def _in_own_method(script: Script, loop: ast.AST, models: Vals) -> bool:
    """Whether the loop stands in a method of a class that one of the models is of."""
    cls = script.names.cls(loop)
    return cls is not None and any(m.cls is not None and cls in script.values.defs.bases(m.cls) for m in models)


#: what keeps an optimizer and makes no step of it
_SCHEDULERS = ("torch.optim.lr_scheduler.", "torch.optim.swa_utils.SWALR")


def _may_step(script: Script, optimizer: Optimizer) -> bool:
    """Whether anything in the program may step the optimizer: a step of what is not known, or code that is not read and is given it."""
    roles, values = script.roles, script.values
    for call in roles.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
            holders = [call.func.value, *call.args]
            if any(not (vals := values.eval(h)) or any(v.node is optimizer.call or _unread(v) for v in vals) for h in holders):
                return True
        elif not any(True for _ in values.targets(call)) and not roles.names.dotted(call.func).startswith(_SCHEDULERS):
            given = (*call.args, *(k.value for k in call.keywords))
            named = (n for a in given for n in walk(a) if isinstance(n, ast.Name | ast.Attribute))
            if any(v.node is optimizer.call for n in named for v in values.eval(n)):
                return True
    return False


def _unread(v: Val) -> bool:
    """Whether it is what code gives that is not read, and may be anything."""
    return v.kind in ("call", "ext") and not v.qual.startswith("torch.")


def _uncalled(script: Script, advice: str) -> Iterator[Hit]:
    """Models of optimizers whose training forward is not seen: nothing shows that the wrap would be used."""
    roles = script.roles
    closed = {o for _, o in closures(roles)}  # the optimizer calls the model, out of sight
    called = frozenset(v for p in roles.training_passes for w in roles.model_vals(p.model) for v in roles.values.inner(w))
    for o in roles.optimizers:
        if o in closed or not o.models:
            continue
        if not o.models & called and not _may_step(script, o):
            continue  # built for a part of the program that never runs with its settings: it trains nothing
        if not o.models & called:
            inside = next((c for c in roles.calls if roles.inside_module(c) and _behind(script, c.func) & o.models), None)
            if inside is not None:
                held = f"{script.text(inside.func)}, which this optimizer trains, is called by a module that holds it ({script.where(inside)})"
                yield Hit(
                    o.call, f"{held}: where to wrap is not known",
                    advice="let the class that holds models and optimizers be no nn.Module, or train the whole of it by one optimizer and call it as model(x)",
                )  # fmt: skip
                return
            own = next((b for b in roles.train_loops if _in_own_method(script, b.node, o.models)), None)
            if own is not None:
                method = script.names.function(own.node)
                yield Hit(
                    own.node, f"the model trains itself, in its method {method.name}, and would go round its own wrapper",  # type: ignore[union-attr]
                    advice="make the method a function that is given the model, and call it with the model: the wrapper then takes the model's place",
                )  # fmt: skip
                return
            yield Hit(o.call, "the model that this optimizer trains is not seen to be called in the training loop", advice=advice)
            return
        lost = [r for r in o.receivers if not module_of(roles, r) and not _is_part(script, r)]
        if lost:
            yield Hit(lost[0], f"what {script.text(lost[0])} is cannot be followed, but the optimizer trains it", advice=advice)
            return


def _is_part(script: Script, receiver: ast.expr) -> bool:
    """Whether it is a layer out of a list of a model's own: ``for layer in model.layers: params += list(layer.parameters())``."""
    if not isinstance(receiver, ast.Name):
        return False
    bound = list(script.names.bindings(script.names.scope_of[receiver], receiver.id))
    loops = [b for b in bound if b.how == "for" and b.value is not None]
    over = [[n.value for n in walk(b.value) if isinstance(n, ast.Attribute)] for b in loops if b.value is not None]
    return bool(bound) and len(loops) == len(bound) and all(any(module_of(script.roles, m) for m in held) for held in over)
