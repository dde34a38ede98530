"""A training step leaves small batches out, and a rank's part of a batch is smaller than the batch.

## What it finds
A test that compares the size of a batch with 1 or 2, and by which a training loop leaves its turn or goes backward: `if x.shape[0] == 1: continue`,
`if len(x) > 1: loss.backward()`.

## Why it matters
The original leaves out a last batch of one sample. Each rank asks for its part: a last batch of as many samples as there are ranks, or fewer, has parts of
one sample and is left out by all of them. The ranks do the same, and the training makes another number of steps.

## Example
```python
if x.shape[0] == 1:
    continue
```
makes the same steps where no batch is small:
```python
loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
```

## When it is not fixed
Always: such a test stands there for a layer that needs two samples, mostly BatchNorm after a linear layer, and that needs them of a rank's part as well; and
the sampler fills a batch of one sample up to one a rank. Nothing is said where `drop_last=True` leaves no small batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.batch import size_as_loaded
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.facts.seeds import is_given
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_UPSIDE_DOWN: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
#: tests of a size, with the number, that tell one sample from more
_ONE = {(ast.Eq, 1), (ast.NotEq, 1), (ast.LtE, 1), (ast.Gt, 1), (ast.Lt, 2), (ast.GtE, 2)}
#: and two or fewer from more
_TWO = {(ast.Eq, 2), (ast.NotEq, 2), (ast.LtE, 2), (ast.Gt, 2)}


@rule("DPM334", severity=Severity.WARNING)
def small_batches_left_out(script: Script) -> Iterator[Hit]:
    done: set[ast.AST] = set()
    for loop in script.roles.train_loops:
        if _always_full(script, loop):
            continue
        for n in (n for s in loop.node.body for n in walk(s)):
            if isinstance(n, ast.If) and n not in done and _decides(script, n):
                done.add(n)
                yield from _told(script, n.test)


def _always_full(script: Script, loop: BatchLoop) -> bool:
    """Whether no loader of the loop gives a last batch that is smaller than the others."""
    calls = [v.node for v in loop.loaders if isinstance(v.node, ast.Call)]
    return bool(calls) and all(is_given(script.argument(c, "drop_last", 8)) for c in calls)


def _decides(script: Script, choice: ast.If) -> bool:
    """Whether a step is made on one side of a test, or the turn left."""
    inside = [n for s in (*choice.body, *choice.orelse) for n in walk(s)]
    return any(isinstance(n, ast.Continue | ast.Break | ast.Return) for n in inside) or any(b in inside for b in script.roles.backwards)


def _told(script: Script, test: ast.expr) -> Iterator[Hit]:
    for n in walk(test):
        if not isinstance(n, ast.Compare) or len(n.ops) != 1:
            continue
        size, op, number = n.left, type(n.ops[0]), n.comparators[0]
        if isinstance(size, ast.Constant):
            size, op, number = number, _UPSIDE_DOWN.get(op, op), size
        asked = (op, number.value) if isinstance(number, ast.Constant) and type(number.value) is int else None
        if asked not in _ONE | _TWO or not size_as_loaded(script.roles, size):
            continue
        most, of_one = ("as many samples as there are ranks", "one sample") if asked in _ONE else ("twice as many samples as there are ranks", "up to two")
        yield Hit(
            n, f"{script.text(n)} asks for the size of a rank's part: a last batch of up to {most} is left out, by the original only one of {of_one}",
            advice="set drop_last=True: without a small last batch both make the same steps",
        )  # fmt: skip
