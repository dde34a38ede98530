"""The model, or the place of its wrap, cannot be established.

## What it finds
A training program in which no optimizer is given the parameters of a model that can be followed, a model reached by two names, a variable
that may hold the bare model or the wrapper.

## Why it matters
The wrap decides whether gradients are averaged at all. A wrong guess trains one model per rank and reports success.

## Example
```python
optimizer = build(cfg)          # parameters from where?
```
can be followed when it is written as
```python
optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
```

## When it is not fixed
Always: it is a refusal. The message says which name could not be followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM904", severity=Severity.BLOCKER)
def untraceable_model(script: Script) -> Iterator[Hit]:
    roles = script.roles
    advice = "keep the model in one variable from its construction to the training loop"
    for node, why in script.wraps.problems:
        yield Hit(node, why, advice=advice)
    if script.wraps.problems or not roles.train_loops:
        return
    if not roles.optimizers:
        yield Hit(roles.backwards[0], "no optimizer is built in this file from a model's parameters", advice="build it as torch.optim.X(model.parameters(), …)")
    for o in roles.optimizers:
        if not o.models:
            yield Hit(o.call, "whose parameters this optimizer gets cannot be followed", advice=advice)
    if roles.optimizers and all(o.models for o in roles.optimizers):
        yield from _uncalled(script, advice)


def _uncalled(script: Script, advice: str) -> Iterator[Hit]:
    """Models of optimizers whose training forward is not seen: nothing shows that the wrap would be used."""
    roles = script.roles
    called = frozenset(v for c in roles.forward_calls if roles.region(c) in ("train", "both") for w in roles.model_vals(c.func) for v in roles.values.inner(w))
    for o in roles.optimizers:
        if not o.models & called:
            yield Hit(o.call, "the model that this optimizer trains is not seen to be called in the training loop", advice=advice)
            return
        lost = [r for r in o.receivers if not roles.values.eval(r) and not roles._module_of(r)]
        if lost:
            yield Hit(lost[0], f"what {script.text(lost[0])} is cannot be followed, but the optimizer trains it", advice=advice)
            return
