"""The number of samples that is shown is a rank's, not that of all ranks.

## What it finds
In training loops, the batch's number times its size (`batch_idx * len(data)`, `(i + 1) * x.size(0)`, `step * loader.batch_size`) where it is
printed, logged or kept in a variable.

## Why it matters
A rank's batch is a part of the global batch. The line of progress would end at 1/W of the data set (`[14976/60000 (100%)]` with four ranks), and a
tracker's axis of samples would be W times too short, so that its curves cannot be laid over those of earlier runs.

## Example
```python
print(f"{batch_idx * len(data)}/{len(train_loader.dataset)}")
```
becomes
```python
print(f"{batch_idx * len(data) * ddp.world_size()}/{len(train_loader.dataset)}")
```

## When it is not fixed
Where a sum of this rank is divided by the number: both are then of the same samples. A number times the setting (`batch_idx * args.batch_size`) is that
of the global batch, and right. Samples that are counted up in a variable are a total (DPM602).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.batch import measured, of_loader
from dpmigrate.facts.library import SHOWING
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import last, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: calls that show a number or hand it on as it is
_SHOWING = SHOWING | {"log", "log_metric", "add_scalar", "add_scalars", "str", "int", "float", "min", "dict"}


@rule("DPM613", severity=Severity.WARNING, fix=Fix.SAFE)
def samples_shown_per_rank(script: Script) -> Iterator[Hit]:
    edit, new = f"{{}} * {script.ddp}.world_size()", AddImport(script.import_line)
    done: set[ast.AST] = set()
    for loop in script.roles.train_feeds:
        numbers = _numbers(script, loop)
        for node in (n for s in loop.node.body for n in walk(s)):
            if not _product(node) or node in done or _product(script.names.parent[node]) or loop.branches:
                continue
            parts = list(_factors(node))
            if any(_number(p, numbers) for p in parts) and any(_size(script, loop, p) for p in parts) and _shown(script, loop, node):
                done.add(node)
                yield Hit(node, "this number of samples is one rank's", (Wrap(script.span(node), edit), new))


def _product(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def _factors(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from (*_factors(node.left), *_factors(node.right))
    else:
        yield node


def _numbers(script: Script, loop: BatchLoop) -> set[str]:
    """The names that count the batches: of ``enumerate`` and ``range``, and what grows by one in the loop."""
    found = {n.target.id for n in walk(loop.node) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and ast.unparse(n.value) == "1"}
    if isinstance(loop.node, ast.For):
        called = {script.names.dotted(c.func) for c in walk(loop.node.iter) if isinstance(c, ast.Call)}
        target = loop.node.target
        if isinstance(target, ast.Tuple) and "?.enumerate" in called:
            target = target.elts[0]
        if isinstance(target, ast.Name) and called & {"?.enumerate", "?.range"}:
            found.add(target.id)
    return found


def _number(node: ast.AST, numbers: set[str]) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant):
        node = node.left
    return isinstance(node, ast.Name) and node.id in numbers


def _size(script: Script, loop: BatchLoop, node: ast.AST) -> bool:
    """``len(x)``, ``x.size(0)``, ``x.shape[0]`` of a batch of this loop; ``loader.batch_size``, which is a rank's."""
    if of_loader(script.roles, node) & loop.loaders:
        return True
    sized = measured(script.names, node)
    while isinstance(sized, ast.Subscript):
        sized = sized.value
    if not isinstance(sized, ast.Name):
        return False
    bound = [b.target for b in script.names.bindings(script.names.scope_of[sized], sized.id)]
    if any(_of_inner_loop(script, loop, sized, t) for t in bound):
        return False
    if isinstance(loop.node, ast.For) and any(script.names.is_inside(t, loop.node.target) for t in bound):
        return True  # whatever other loops call by the name
    return bool(bound) and all(script.names.is_inside(t, loop.node) for t in bound)


def _of_inner_loop(script: Script, loop: BatchLoop, sized: ast.Name, target: ast.AST) -> bool:
    """Whether a loop within the turn, as of an evaluation, has given the variable what it holds behind it: a whole batch of that loop."""
    around = takewhile(lambda a: a is not loop.node, script.names.ancestors(target))
    inner = [a for a in around if isinstance(a, ast.For | ast.AsyncFor) and script.names.is_inside(target, a.target)]
    within = [a for a in inner if script.names.is_inside(a, loop.node)]
    return any(position(a) < position(sized) and not script.names.is_inside(sized, a) for a in within)


def _shown(script: Script, loop: BatchLoop, node: ast.AST) -> bool:
    """Whether the number is only shown, or kept in a variable that nothing is divided by."""
    inner = node
    for a in takewhile(lambda a: not isinstance(a, ast.stmt), script.names.ancestors(node)):
        if isinstance(a, ast.BinOp) and isinstance(a.op, ast.Div | ast.FloorDiv) and a.right is inner:
            return False
        if isinstance(a, ast.Call):
            called = last(a.func)
            if called not in _SHOWING:
                return False
        inner = a
    stmt = script.names.statement(node)
    kept = {ast.unparse(t) for t in _given(stmt, node)}
    divisors = [n.right for n in walk(script.names.function(loop.node)) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div | ast.FloorDiv)]
    used = {ast.unparse(n) for d in divisors for n in walk(d) if isinstance(n, ast.Name | ast.Attribute)}
    return isinstance(stmt, ast.Expr) or (bool(kept) and not kept & used)


def _given(stmt: ast.stmt, node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """The variables that an assignment gives the value in which the node stands: ``seen`` of ``loss, seen = loss.item(), i * len(x)``."""
    left = [(t, stmt.value) for t in stmt.targets] if isinstance(stmt, ast.Assign) else []
    while left:
        target, value = left.pop()
        if isinstance(target, ast.Name | ast.Attribute):
            yield target
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List) and len(target.elts) == len(value.elts):
            left += [(t, v) for t, v in zip(target.elts, value.elts, strict=True) if any(n is node for n in walk(v))]
