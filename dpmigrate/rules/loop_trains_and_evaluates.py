"""One loop serves training and evaluation, and which loader trains cannot be told.

## What it finds
A loop over a DataLoader in which `backward()` stands under a test on the phase, and over which of its loaders it comes is known neither from the calls of
the function (`run_epoch(loader, optimizer)`), nor from a loop over literals (`for phase in ("train", "val")`), nor from an execution of the program on
paper (`if model.training:`).

## Why it matters
The training loader is divided over the ranks with padding, so that all take the same number of steps; an evaluation must see every sample
exactly once. One loop over one variable cannot be told apart safely.

## Example
```python
for x, y in loaders[phase]:
    loss = criterion(model(x), y)
    if settings[phase]["learning"]:  # read from a file
        loss.backward()
```
can be migrated after it is split into a training loop and an evaluation loop.

## When it is not fixed
Always: it is a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM905", severity=Severity.BLOCKER)
def loop_trains_and_evaluates(script: Script) -> Iterator[Hit]:
    advice = "write the training loop and the evaluation loop apart, each over its own loader"
    for b in script.roles.train_loops:
        if b.branches and script.phases(b) is None:
            yield Hit(b.node, "this loop is taken to train and to evaluate, since a test inside decides whether backward() runs", advice=advice)
    for call in script.train_loader_calls:
        if not script.reads_statically(call) and not script.distributed_at(call) and not script.distributed_after(call):
            yield Hit(call, "this loader serves training and evaluation and has no variable of its own for training", advice=advice)
