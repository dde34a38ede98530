"""A rank may leave the training loop, or skip a batch, alone.

## What it finds
`break`, `continue`, `return` and `sys.exit` in a training loop under a test that may differ between ranks (a NaN loss, a time limit, an
exception that is caught), as far as it is not made of settings and counters.

## Why it matters
Every `backward()` waits for all ranks. A rank that skips one waits for ever in the next collective, or meets another one's bucket: with
equal sizes there is not even an error.

## Example
```python
if torch.isnan(loss):
    continue
```
has to become
```python
if ddp.any_rank(torch.isnan(loss)):
    continue
```
which every rank must reach, before the backward.

## When it is not fixed
Always: it is a refusal; in the loop over epochs, where all ranks meet, DPM610 repairs it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.control import exits
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM322", severity=Severity.BLOCKER)
def rank_leaves_loop(script: Script) -> Iterator[Hit]:
    for b in script.roles.train_loops:
        for e in exits(script.names, script.roles, b.node):
            word = type(e.node).__name__.lower() if not isinstance(e.node, ast.Expr) else "exit"
            about = f"under {script.text(e.test)}" if e.test is not None else "in an exception handler"
            yield Hit(e.node, f"{word} {about}: one rank may do this alone, and the others wait for ever", advice="decide it together: if ddp.any_rank(…)")
