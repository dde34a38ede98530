"""The batch size is used for something else than the loader.

## What it finds
The variable of a training loader's batch size in `view`, `reshape`, `torch.zeros` and the like in the training loop, and in a model's constructor.

## Why it matters
The setting stays the global batch size; a rank's batch is a part of it. A shape made from the setting does not fit the rank's tensors.

## Example
```python
x = x.view(args.batch_size, -1)
```
becomes
```python
x = x.view(ddp.local_batch(args.batch_size), -1)
```

## When it is not fixed
In a model's constructor, and in functions that training and evaluation share.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dpmigrate.edit import Replace, Wrap
from dpmigrate.facts.copies import counts
from dpmigrate.facts.script import Script
from dpmigrate.facts.values import Key
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_SHAPES = frozenset(
    [
        "view",
        "reshape",
        "expand",
        "zeros",
        "ones",
        "randn",
        "rand",
        "full",
        "empty",
        "repeat",
        "resize_",
        "new_zeros",
        "new_ones",
        "new_full",
        "unflatten",
        "arange",
        "randperm",
        "permutation",
        "eye",
        "normal",
        "tile",
    ]
)

_BATCH_SIZE = re.compile(r"(train_?)?(batch_?(size|sz)?|bs|bsz)", re.IGNORECASE)


@rule("DPM203", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def batch_size_elsewhere(script: Script) -> Iterator[Hit]:
    if script.settings.batch == "per-rank":
        return
    sizes = [s for c in script.train_loader_calls for s in _sizes(script, c)]
    settings = {ast.unparse(s) for s in sizes if isinstance(s, ast.Attribute)}
    variables = {key for s in sizes for key, _ in script.roles.roots(s)}
    for node in script.names.nodes:
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if not (_means(script, node, variables) if isinstance(node, ast.Name) else ast.unparse(node) in settings):
            continue
        if _divides_a_count(script, node):
            yield Hit(node, "a rank's count of a batch is divided by the global batch size", (Wrap(script.span(node), f"{script.ddp}.local_batch({{}})"),))
            continue
        call = next((a for a in script.names.ancestors(node) if isinstance(a, ast.Call)), None)
        if call is None or call in script.roles.loader_calls or script.roles.inside_module(node):
            continue
        if any(v.node is call for v in script.roles.models):
            yield Hit(
                node,
                f"{script.text(node)} goes into the model; a rank's batch is smaller",
                severity=Severity.BLOCKER,
                advice="size such state from the input: x.size(0)",
            )
        elif isinstance(call.func, ast.Attribute | ast.Name) and ast.unparse(call.func).rsplit(".", 1)[-1] in _SHAPES:
            yield from _shape(script, node)


def _sizes(script: Script, call: ast.Call) -> Iterator[ast.Name | ast.Attribute]:
    """Where a loader's batch size comes from; for one that code outside of the program makes, whatever is called so and may be given to it."""
    if script.roles.makes_loader(call):
        size = script.argument(call, "batch_size", 1)
        if isinstance(size, ast.Name | ast.Attribute):
            yield size
        return
    for node in script.names.nodes:
        if isinstance(node, ast.Attribute) and _BATCH_SIZE.fullmatch(node.attr):
            yield node
    for given in (*call.args, *(k.value for k in call.keywords)):
        if isinstance(given, ast.Name) and _BATCH_SIZE.fullmatch(given.id):
            yield given


def _means(script: Script, node: ast.Name, variables: set[Key]) -> bool:
    """Whether the name is the setting: the loader's variable, or a parameter that is given it, and not the size of a batch at hand."""
    bindings = script.names.bindings(script.names.scope_of[node], node.id)
    if any(b.how != "param" and script.roles.region(b.target) != "outside" for b in bindings):
        return False
    return bool({key for key, _ in script.roles.roots(node)} & variables)


def _divides_a_count(script: Script, node: ast.expr) -> bool:
    """``correct.item() / float(batch_size)`` for one batch of training: a number, so nothing that is differentiated."""
    above = script.names.parent[node]
    outer: ast.AST = node
    if isinstance(above, ast.Call) and script.names.dotted(above.func) in ("?.float", "?.int"):
        outer, above = above, script.names.parent[above]
    if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Div) or above.right is not outer or script.roles.region(node) != "train":
        return False
    counts = [n for n in ast.walk(above.left) if isinstance(n, ast.Name)]
    values = [above.left, *(b.value for n in counts for b in script.names.bindings(script.names.scope_of[n], n.id) if b.value is not None)]
    batch = [v for v in values if any(isinstance(n, ast.Attribute) and n.attr == "item" for n in ast.walk(v))]
    grown = [n for n in counts if any(b.how == "aug" for b in script.names.bindings(script.names.scope_of[n], n.id))]
    if any(c.lineno < node.lineno for c, _ in script.methods("eval") if script.names.statement(c) in script.names.block(script.names.statement(node))):
        return False  # a batch of evaluation, which is not divided
    return bool(batch) and not grown and any(script.names.is_inside(node, loop.node) for loop in script.roles.train_loops)


def _share_of_a_copy(script: Script, quotient: ast.BinOp, size: ast.expr) -> bool:
    """``batch_size // torch.cuda.device_count()``"""
    return isinstance(quotient.op, ast.Div | ast.FloorDiv) and quotient.left is size and counts(script.roles, quotient.right)


def _shape(script: Script, node: ast.expr) -> Iterator[Hit]:
    region = script.roles.region(node)
    above = script.names.parent[node]
    if region == "train" and script.from_data_parallel and isinstance(above, ast.BinOp) and _share_of_a_copy(script, above, node):
        yield Hit(above, "a GPU's part of the global batch: it is a rank's", (Replace(script.span(above), f"{script.ddp}.local_batch({script.text(node)})"),))
    elif region == "train":
        yield Hit(node, "a rank's batch is smaller than the global batch size", (Wrap(script.span(node), f"{script.ddp}.local_batch({{}})"),))
    elif region == "both":
        yield Hit(
            node,
            "this shape is used in training and evaluation, whose batches differ",
            severity=Severity.BLOCKER,
            advice="take the size from the input: x.size(0)",
        )
