"""A rank may leave the training loop, or skip a batch, alone.

## What it finds
`break`, `continue`, `return` and `sys.exit` in a training loop under a test that may differ between ranks (a NaN loss, a time limit), as far as
it is not made of settings and counters; `backward()` and `optimizer.step()` under such a test; a `try` round the training step that catches an
exception and goes on.

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
import itertools
from collections.abc import Iterator

from dpmigrate.facts import steps
from dpmigrate.facts.control import exits, is_exit, uniform
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_ADVICE = "decide it together: if ddp.any_rank(…)"


@rule("DPM322", severity=Severity.BLOCKER)
def rank_leaves_loop(script: Script) -> Iterator[Hit]:
    for b in script.roles.train_loops:
        for e in exits(script.names, script.roles, b.node):
            word = type(e.node).__name__.lower() if not isinstance(e.node, ast.Expr) else "exit"
            about = f"under {script.text(e.test)}" if e.test is not None else "in an exception handler"
            yield Hit(e.node, f"{word} {about}: one rank may do this alone, and the others wait for ever", advice=_ADVICE)
    for node in [*script.roles.backwards, *(s.call for s in steps.steps(script.roles))]:
        test = next(_skipping(script, node), None) if script.roles.region(node) in ("train", "both") else None
        if test is not None:
            what = "wait for ever" if node in script.roles.backwards else "take another step"
            yield Hit(node, f"under {script.text(test)} one rank may leave this out alone, and the others {what}", advice=_ADVICE)
    for guard in script.names.nodes:
        if isinstance(guard, ast.Try) and any(script.roles.reaches_backward(s) for s in guard.body) and _repeated(script, guard):
            for handler in guard.handlers:
                if _goes_on(script, handler):
                    yield Hit(handler, "a rank that meets this exception leaves out what the others wait for", advice="let the exception end the program")


def _skipping(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    """The tests in the loop that may keep one rank from the node; what both branches of a test do is left out by nobody."""
    loops = {b.node for b in script.roles.train_loops}
    words = ("scale", "backward") if node in script.roles.backwards else ("step",)
    for a in itertools.takewhile(lambda a: a not in loops and not isinstance(a, FunctionNode), script.names.ancestors(node)):
        if not isinstance(a, ast.If) or uniform(script.names, a.test) or not script.roles.about_numbers(a.test) or _of_gradients(script, a.test):
            continue
        sides = [any(isinstance(n, ast.Attribute) and n.attr in words for s in side for n in ast.walk(s)) for side in (a.body, a.orelse)]
        if not all(sides):
            yield a.test


def _of_gradients(script: Script, test: ast.expr) -> bool:
    """A test on the norm that clipping gives: after ``backward()`` gradients are the same on every rank."""
    names = [n for n in ast.walk(test) if isinstance(n, ast.Name) and not script.names.dotted(n)]
    return bool(names) and all(
        b.how == "assign" and not b.path and b.value is not None and steps.clips(script.roles, b.value)
        for n in names
        for b in script.names.bindings(script.names.scope_of[n], n.id)
    )


def _repeated(script: Script, node: ast.AST) -> bool:
    """Whether the node stands in a loop over epochs or batches: after the exception training goes on."""
    loops = {*script.repeating_loops, *(b.node for b in script.roles.train_loops)}
    return any(a in loops for n in script.leading_to(node) for a in script.names.ancestors(n))


def _goes_on(script: Script, handler: ast.ExceptHandler) -> bool:
    """Whether the handler neither raises nor ends the program; an interrupt from the keyboard comes to all ranks."""
    if handler.type is not None and script.names.dotted(handler.type) in ("?.KeyboardInterrupt", "?.StopIteration"):
        return False
    last = handler.body[-1]
    leaves = isinstance(last, ast.Break | ast.Continue | ast.Return) and any(b.node in script.names.ancestors(last) for b in script.roles.train_loops)
    return not isinstance(last, ast.Raise) and not is_exit(script.names, last) and not leaves
