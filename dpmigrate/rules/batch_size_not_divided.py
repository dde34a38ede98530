"""The batch size of the script is the global one; each rank must take its share.

## What it finds
The batch size of every training DataLoader, also where it is changed later (`loader.batch_sampler.batch_size = 64`).

## Why it matters
DataParallel splits the script's batch over the GPUs; under DDP the loader's batch size is per process. Left alone, the global batch grows
W-fold: W times fewer steps at the same learning rate, another training run. `ddp.local_batch(B)` is B / W; a batch that does not divide is
a clear error at the start. `apply --batch per-rank` keeps the number per rank instead and says what that asks of the learning rate.

## Example
```python
loader = DataLoader(train_set, batch_size=args.batch_size)
```
becomes
```python
loader = DataLoader(train_set, batch_size=ddp.local_batch(args.batch_size))
```

## When it is not fixed
A loader without a batch size, or with a batch size of 1, has batches of one sample, which cannot be divided: it is refused. With `--batch per-rank` each of N
ranks takes one sample in a step, and the global batch becomes N. An option whose default is 1 is told: the migrated program wants another value on several
ranks. So is an odd number of samples, which two ranks cannot divide. A loader with `batch_size=None`, whose data set makes whole batches, is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.loaders import starred
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: the greatest batch size whose divisors are named
_READABLE = 10_000
_PER_RANK = "run apply with --batch per-rank: the global batch of N ranks is N then"


@rule("DPM202", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def batch_size_not_divided(script: Script) -> Iterator[Hit]:
    if script.settings.batch == "per-rank":
        return
    for call in script.train_loader_calls:
        if not script.reads_statically(call):
            for given in starred(script, call, "batch_size"):  # of loader_args = dict(batch_size=…)
                yield from _told(script, given, _numbers(script, given))
            continue
        size = script.argument(call, "batch_size", 1)
        known = [] if size is None else _numbers(script, size)
        if size is not None and known and all(isinstance(n, ast.Constant) and n.value is None for n in known):
            yield Hit(
                size, "this training loader has no batch size: the data set makes whole batches, of which every rank would take one",
                severity=Severity.BLOCKER,
                advice="let the data set give single samples, and the loader batch them",
            )  # fmt: skip
        elif size is None or (known and all(_is_one(n) for n in known)):
            yield Hit(
                call if size is None else size, "this training loader has batches of one sample: they cannot be divided over ranks", severity=Severity.BLOCKER,
                advice=f"give the loader a batch_size that the number of ranks divides, or {_PER_RANK}",
            )  # fmt: skip
        else:
            yield from _told(script, size, known)
            yield Hit(
                size,
                "the global batch would grow with the number of ranks",
                (Wrap(script.span(size), f"{script.ddp}.local_batch({{}})"), AddImport(script.import_line)),
            )
    yield from _set_later(script)


def _set_later(script: Script) -> Iterator[Hit]:
    """``loader.batch_sampler.batch_size = 2 * size``: torch's sampler of batches has the size of a rank's."""
    for stmt in script.names.nodes:
        targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target] if isinstance(stmt, ast.AugAssign) else []
        for target in targets:
            if not isinstance(target, ast.Attribute) or target.attr != "batch_size":
                continue
            held = script.roles.given(target.value) if isinstance(target.value, ast.Name) else [target.value]
            samplers = [h for h in held if isinstance(h, ast.Attribute) and h.attr == "batch_sampler"]
            calls = {v.node for h in samplers for v in script.roles.loaders_of(h.value)}
            own = [c for c in calls if isinstance(c, ast.Call) and script.argument(c, "batch_sampler", 4) is not None]
            if not calls & {*script.train_loader_calls} or len(own) == len(calls):
                continue  # a batch sampler of the program's own has global batches, which are split
            assert isinstance(stmt, ast.Assign | ast.AugAssign)
            if isinstance(stmt, ast.AugAssign) and not isinstance(stmt.op, ast.Add | ast.Sub):
                continue  # so many times what it was
            message = "the batches would grow with the number of ranks: this is the size of a rank's"
            if own or len(targets) > 1 or not all(isinstance(c, ast.Call) and c in script.train_loader_calls and script.reads_statically(c) for c in calls):
                yield Hit(stmt, message, severity=Severity.BLOCKER, advice=f"give it {script.ddp}.local_batch(…) for a training loader alone")
            else:
                yield Hit(stmt.value, message, (Wrap(script.span(stmt.value), f"{script.ddp}.local_batch({{}})"), AddImport(script.import_line)))


def _told(script: Script, size: ast.expr, known: list[ast.expr]) -> Iterator[Hit]:
    """What is said of a size that some numbers of ranks do not divide, by the program or by the default of an option."""
    defaults = list(_defaults(script, size))
    for number in dict.fromkeys([*known, *(d for d in defaults if not _is_one(d))]):
        if ranks := _odd(number):
            yield Hit(
                number, f"batches of {script.text(number)} samples can be divided over {ranks} ranks only: with others the program stops at once",
                severity=Severity.WARNING, advice=f"take a batch size that the number of ranks divides, or {_PER_RANK}",
            )  # fmt: skip
    for default in filter(_is_one, defaults):
        taken = _without_axis(script)
        written = f", and {script.text(taken)} takes the axis of the samples away: the step is written for one" if taken is not None else ""
        yield Hit(
            default, f"this batch size of one sample cannot be divided over ranks: several of them stop at the start{written}", severity=Severity.WARNING,
            advice=(f"start them with a batch size that the number of ranks divides, or {_PER_RANK}" if taken is None else f"Keep it, and {_PER_RANK}"),
        )  # fmt: skip


def _without_axis(script: Script) -> ast.Call | None:
    """Where a training step takes the axis of the samples out of what its loader gives: ``x.squeeze(0)``."""
    for loop in script.roles.train_loops:
        for call in (n for s in loop.node.body for n in walk(s) if isinstance(n, ast.Call)):
            func = call.func
            dims = [a.value for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Constant)]
            if isinstance(func, ast.Attribute) and func.attr == "squeeze" and dims == [0] and _part_of_batch(script, loop, func.value):
                return call
    return None


def _part_of_batch(script: Script, loop: BatchLoop, node: ast.expr) -> bool:
    """Whether an expression is what a loop takes of its loader, or a part of it: ``batch["image"]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    taken = walk(loop.node.target) if not isinstance(loop.node, ast.While) else ()
    return isinstance(node, ast.Name) and any(isinstance(n, ast.Name) and n.id == node.id for n in taken)


def _numbers(script: Script, size: ast.expr) -> list[ast.expr]:
    """The values that a size is given in the program, itself where it is one: also through variables and parameters that hand it on."""
    found: dict[ast.expr, None] = {}
    todo, seen = [size], {size}
    while todo:
        node = todo.pop()
        given = script.roles.given(node) if isinstance(node, ast.Name | ast.Attribute) else []
        if not given:
            found[node] = None
        todo += [g for g in given if g not in seen]
        seen.update(given)
    return list(found) if size not in found or not isinstance(size, ast.Name | ast.Attribute) else []


def _defaults(script: Script, size: ast.expr) -> Iterator[ast.expr]:
    """The default of the option that gives the size."""
    words = {n.attr for n in (size, *_numbers(script, size)) if isinstance(n, ast.Attribute)}
    for call in script.names.calls("add_argument"):
        options = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        default = script.argument(call, "default")
        if default is not None and words & {o.lstrip("-").replace("-", "_") for o in options}:
            yield default


def _odd(node: ast.expr) -> str:
    """Over how many ranks a batch size can be divided that two do not divide; '' for any other."""
    size = node.value if isinstance(node, ast.Constant) and type(node.value) is int else 0
    fits = [str(n) for n in range(2, size + 1) if size % n == 0] if size % 2 and size <= _READABLE else []
    return (", ".join(fits[:-1]) + " or " if fits[1:] else "") + fits[-1] if fits else ""


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1 and not isinstance(node.value, bool)
