"""Several backward passes follow one forward pass.

## What it finds
A training step in which a `backward()` follows another without a forward pass of a model in between, or is repeated in a loop without one.

## Why it matters
DistributedDataParallel reduces gradients once per forward. After two forwards, the second of two backwards is not reduced: the ranks drift apart
without an error; one forward with two backwards fails or drifts. `ddp.wrap` averages at the end of each backward that goes through what the
wrapper's forward has returned, so what is left is a backward that goes past it.

## Example
```python
loss_a.backward(retain_graph=True)
loss_b.backward()
```
may become
```python
(loss_a + loss_b).backward()
```

## When it is not fixed
It is a refusal, and nothing is said where the result, executed on paper, shows that each backward goes through a wrapper.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.names import Loop, position
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM120", severity=Severity.BLOCKER)
def several_backwards(script: Script) -> Iterator[Hit]:
    for loop in script.roles.train_loops:
        by_function: dict[ast.AST, list[ast.Call]] = {}
        for b in script.loop_backwards(loop):
            by_function.setdefault(script.names.function(b), []).append(b)
        for function, calls in by_function.items():
            calls.sort(key=position)
            forwards = [p.call for p in script.roles.training_passes if script.names.function(p.call) is function]
            for b in calls:
                turns = next((a for a in script.names.ancestors(b) if isinstance(a, Loop) and script.names.function(a) is function), None)
                if turns is not None and turns is not loop.node and not _passes(script, turns):
                    yield Hit(b, _REPEATED, advice=_ADVICE, of_means=True)
            for number, second in enumerate(calls):
                earlier = [c for c in calls[:number] if not script.values.order.other_branch(second, script.names.statement(c))]
                if earlier and not any(_comes_between(script, c, earlier[-1], second) for c in forwards):
                    yield Hit(second, _FOLLOWS, advice=_ADVICE, of_means=True)


def _comes_between(script: Script, forward: ast.Call, first: ast.Call, second: ast.Call) -> bool:
    """``model(x).sum().backward()`` has its forward pass inside."""
    if script.names.is_inside(forward, first) or position(forward) < position(first):
        return False
    return script.names.is_inside(forward, second) or position(forward) < position(second)


_REPEATED = "this backward() is repeated without a forward pass in each turn: its gradients may not be averaged"
_FOLLOWS = "this backward() follows another without a forward pass in between: its gradients may not be averaged"
_ADVICE = "add the losses and call backward() once"


def _passes(script: Script, node: ast.AST) -> bool:
    """Whether a turn of the loop calls a model, itself or in a function."""
    functions = script.roles.all_entered(node)
    return any(script.names.is_inside(p.call, node) or script.names.function(p.call) in functions for p in script.roles.training_passes)
