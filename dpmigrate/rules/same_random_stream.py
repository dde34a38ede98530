"""All ranks would draw the same random numbers while training.

## What it finds
The loop over epochs.

## Why it matters
Until the data are split and the model is built all ranks must draw the same (unseeded splits leaked 85 of 200 validation samples). From then on equal
streams mean the same augmentation and the same dropout masks on every rank.

## Example
```python
for epoch in range(epochs):
    train(epoch)
```
becomes
```python
ddp.seed_ranks()
for epoch in range(epochs):
    train(epoch)
```

Where a model is built or data are split after the loop, or before each of several (a second stage, the folds of a cross-validation), the ranks draw for
themselves in the loop alone, and all build the same:
```python
with ddp.own_streams():
    for epoch in range(epochs):
        train(epoch)
```

An iterator over the loader that is made before the loop (`batches = iter(loader)`) seeds its workers there: `ddp.seed_ranks()` comes before it, or where more
is done between them, the iterator is made in `with ddp.own_streams():`.

A seed for each epoch makes the streams equal again: `set_seed(seed + epoch)` at the beginning of a turn is followed by `ddp.seed_ranks()`.

## When it is not fixed
When the model is built in the loop over the batches, or by what it calls, and when the loop stands in a generator: the streams stay equal.
Data that are drawn inside the loop are DPM222's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from dpmigrate.edit import AddImport, After, Before, Enclose
from dpmigrate.facts.early import begun_before
from dpmigrate.facts.names import FunctionNode, Loop, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.redrawn import repeated
from dpmigrate.facts.script import Script
from dpmigrate.facts.wraps import Wrap
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_SEEDS = ("torch.manual_seed", "torch.random.manual_seed", "random.seed", "?.random.seed", "numpy.random.seed")


@rule("DPM210", severity=Severity.WARNING, fix=Fix.SAFE)
def same_random_stream(script: Script) -> Iterator[Hit]:
    loops = (*script.repeating_loops, *(b.node for b in script.roles.train_loops))
    if not loops:
        return
    outer = [a for a in loops if not any(b is not a and _within(script, a, b) for b in loops)]
    built = [
        *(built for w in script.wraps.wraps if script.wrapped_by(w) & script.roles.models for built in _built(script, w)),
        *(c for c in script.train_loader_calls if _draws(script, c) and not repeated(script, c)),  # DPM222 lets these draw together
        *(c for c in script.calls("torch.utils.data.random_split") if not repeated(script, c)),
    ]
    message = "all ranks would draw the same augmentation and dropout"
    apart = [a for a in outer if not any(_again(script, b, a) for b in built)]
    for call in _beside(script, loops, outer, apart):
        stmt = script.names.statement(call)
        if not any(_again(script, b, stmt) for b in built):
            yield Hit(call, message, (Before(script.span(stmt), f"{script.ddp}.seed_ranks()"),))
    for loop in outer:
        if loop in apart:
            begun = begun_before(script, loop)
            first = next((s for s in begun if s.first and not any(_again(script, b, s.stmt) for b in built)), None)
            yield Hit(loop, message, (Before(script.span(first.stmt if first is not None else loop), f"{script.ddp}.seed_ranks()"),))
            for other in begun if first is None else ():
                whole = script.span(other.own)
                early = "the workers of all ranks would draw the same random numbers in this pass"
                yield Hit(other.own, early, (Enclose(whole, whole, f"with {script.ddp}.own_streams():"), AddImport(script.import_line)))
            last = _seeded_again(script, loop)
            if last is not None:
                again = "this seeds all ranks alike: they would draw the same augmentation and dropout from here on"
                yield Hit(last, again, (After(script.span(last), f"{script.ddp}.seed_ranks()"), AddImport(script.import_line)))
            continue
        alone = _alone(script, loop, loops, built)
        for inner in alone:
            whole = script.span(inner)
            yield Hit(inner, message, (Enclose(whole, whole, f"with {script.ddp}.own_streams():"), AddImport(script.import_line)))
        if not alone:
            yield Hit(
                loop,
                "the model or the data are built inside this loop: all ranks keep one random stream, "
                "so augmentation and dropout are the same on every rank",
                severity=Severity.NOTE,
            )


def _built(script: Script, wrap: Wrap) -> list[ast.AST]:
    """Where a model is built: it is wrapped there, but for one that wraps itself in each of its trainings."""
    made = [v.node for v in script.wrapped_by(wrap) if isinstance(v.node, ast.Call)] if wrap.again else []
    return list(made) or [wrap.stmt]


def _seeded_again(script: Script, loop: Loop) -> ast.stmt | None:
    """The last statement of a turn, before it trains, that seeds the process: ``set_seed(seed + epoch)``."""
    seeding = {script.names.function(c): c for c in script.calls(*_SEEDS)}
    found = None
    for stmt in loop.body:
        if script.roles.reaches_backward(stmt):
            break
        if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
            call = stmt.value
            called = any(call in script.values.callers.get(f, []) for f in seeding if isinstance(f, FunctionNode))
            if called or script.names.dotted(call.func) in _SEEDS:
                found = stmt
    return found


def _beside(script: Script, loops: Sequence[Loop], outer: Sequence[Loop], apart: Sequence[Loop]) -> Iterator[ast.Call]:
    """Calls outside of all training loops by which a function trains that such a loop calls as well: ``if pretrain: for …: tune() else: tune()``.

    ``apart`` are the loops before which the ranks get streams of their own; in others what trains by itself has them.
    """
    inner = [a for a in loops if a not in outer and not any(b is not a and script.names.is_inside(a, b) for b in loops)]
    inner = [a for a in inner if all(b in apart for b in outer if _within(script, a, b))]
    calls = (c for a in inner for c in script.values.callers.get(script.names.function(a), []))
    yield from (c for c in dict.fromkeys(calls) if _passes_by(script, c, loops, frozenset()))


def _passes_by(script: Script, node: ast.AST, loops: Sequence[Loop], seen: frozenset[ast.AST]) -> bool:
    """Whether a way is seen from the start of the program to the node that goes through none of the loops."""
    function = script.names.function(node)
    if function in seen or any(script.names.is_inside(node, a) for a in loops):
        return False
    calls = script.values.callers.get(function, [])
    return not isinstance(function, FunctionNode) or any(_passes_by(script, c, loops, seen | {function}) for c in calls)


def _alone(script: Script, loop: Loop, loops: Sequence[Loop], built: Sequence[ast.AST]) -> list[Loop]:
    """The outermost of the loops in a loop, itself among them, in which nothing is built."""
    inside = [a for a in loops if a is loop or _within(script, a, loop)]
    found = [a for a in dict.fromkeys(inside) if not any(_built_in(script, b, a) for b in built)]
    outer = [a for a in found if not any(b is not a and _within(script, a, b) for b in found)]
    # a generator is left in the middle of the loop, with the streams of the body
    return [a for a in outer if not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in walk(a))]


def _built_in(script: Script, built: ast.AST, loop: ast.stmt) -> bool:
    """Whether the model or the data are built in the loop, or in a function that it calls."""
    return script.names.is_inside(built, loop) or script.names.function(built) in script.roles.all_entered(loop)


def _draws(script: Script, call: ast.Call) -> bool:
    """Whether building the loader may draw random numbers: a data set that is built with it, an order of its own, a loader outside of the program."""
    if not script.roles.makes_loader(call) or any(script.argument(call, name) is not None for name in ("sampler", "batch_sampler", "generator")):
        return True
    data = script.argument(call, "dataset", 0)
    return not isinstance(data, ast.Name | ast.Attribute) or bool(call.keywords and any(k.arg is None for k in call.keywords))


def _within(script: Script, inner: Loop, outer: Loop) -> bool:
    """Whether the loop stands in the other one, or in a function that it calls."""
    return script.names.is_inside(inner, outer) or script.names.function(inner) in script.roles.all_entered(outer)


def _again(script: Script, built: ast.AST, loop: ast.stmt) -> bool:
    """Whether the model or the data may be built once the loop, or a statement that trains, has begun: in it, below it, in a second call of its function."""
    names, home = script.names, script.names.function(built)
    if _built_in(script, built, loop):
        return True
    for node in script.leading_to(loop):
        function = names.function(node)
        for stmt in (s for s in walk(function) if isinstance(s, ast.stmt) and names.function(s) is function and position(s) > position(node)):
            if isinstance(stmt, FunctionNode | ast.ClassDef) or names.is_inside(stmt, loop) or script.values.order.other_branch(node, stmt):
                continue
            if names.is_inside(built, stmt) or home in script.roles.all_entered(stmt):
                return True
    return False
