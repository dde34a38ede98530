"""The batch size is used for something else than the loader.

## What it finds
The batch size of a training loader, under whatever name, where it counts the samples of a training step: in shapes (`view`, `torch.zeros`,
`Tensor(batch_size, 3)`), draws (`noise.sample((batch_size,))`), slices (`scores[:batch_size]`), `torch.split`, comparisons (`x.size(0) != batch_size`), also
above the loops, where what is made is used in the training step, and in a function or a layer that is given it: there it is divided once. A tensor that
meets no batch, as noise for pictures, stays as it is.

## Why it matters
The setting stays the global batch size; a rank's batch is a part of it. A shape made from the setting does not fit the rank's tensors, a target of one column
is broadcast against them, and a slice behind the end of a batch is empty: without an error.

## Example
```python
x = x.view(args.batch_size, -1)
```
becomes
```python
x = x.view(ddp.local_batch(args.batch_size), -1)
```

## When it is not fixed
In a model's constructor, in functions that training and evaluation share without being given the size, where positions in the data set are counted in batches
(`scores[i * batch_size : (i + 1) * batch_size]`), and in a loop over the samples of a batch that adds to the loss. What the program does with a size in other
ways (`total += batch_size`) is not looked at. A step that leaves a smaller batch out (`if len(x) != batch_size: continue`) is refused where the loader's
arguments cannot be read, since the ranks' last batches may be filled up.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from dpmigrate.edit import AddImport, Replace, Wrap
from dpmigrate.facts.copies import counts
from dpmigrate.facts.library import FLOATS, MOVES
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.names import last
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.facts.sizes import Count
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: what counts hits, and makes another number type of the count
_COUNTED = FLOATS | MOVES | {"sum", "item", "detach"}
_SMALLER = "a rank's batch is smaller than the global batch size"


@rule("DPM203", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def batch_size_elsewhere(script: Script) -> Iterator[Hit]:
    if script.settings.batch == "per-rank":
        return
    for node in script.names.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and _divides_a_count(script, node) and script.sizes.means(node):
            yield Hit(node, "a rank's count of a batch is divided by the global batch size", _local(script, node))
    whole = {script.names.function(n) for n, template in script.shown_bent.items() if template.startswith("batch_rows")} if script.whole_sizes else set()
    for count in script.sizes.counts:
        if count.where != "train" or not _beside(script, count, whole):
            yield _told(script, count)


def _beside(script: Script, count: Count, whole: Collection[ast.AST]) -> bool:
    """Whether a size is for a function in which the samples of all ranks meet, or for another method of its class: ``Contrastive(args.batch_size)``."""
    classes = {c for f in whole if (c := script.values.defs.method_class(f)) is not None}
    above = script.names.parent[count.node]
    call = script.names.parent[above] if isinstance(above, ast.keyword) else above
    given = {f for f, _ in script.values.targets(call)} if isinstance(call, ast.Call) else set()
    functions = {script.names.function(count.node), *given}
    return any(f in whole or script.values.defs.method_class(f) in classes for f in functions)


def _local(script: Script, node: ast.expr) -> tuple[Wrap, AddImport]:
    return Wrap(script.span(node), f"{script.ddp}.local_batch({{}})"), AddImport(script.import_line)


def _told(script: Script, count: Count) -> Hit:
    node, above = count.node, script.names.parent[count.node]
    if count in script.sizes.smaller_left_out and not all(map(script.reads_statically, script.train_loader_calls)):
        message = "a last batch that is smaller is left out here: the ranks' last batches may be filled up, and would be trained on"
        return Hit(node, message, severity=Severity.BLOCKER, advice="give the loader drop_last=True instead")
    if count.where == "model":
        message = f"{script.text(node)} goes into the model; a rank's batch is smaller"
        return Hit(node, message, severity=Severity.BLOCKER, advice="size such state from the input: x.size(0)")
    if count.where == "position":
        message = "a position counted in global batches: a rank's batches hold other samples"
        return Hit(node, message, severity=Severity.BLOCKER, advice="let the data set give the index of each sample, and store by that")
    if count.where == "samples":
        message = "a loop over the samples of the global batch adds to the loss: a rank has fewer, and what divides the sum has to be theirs"
        return Hit(node, message, severity=Severity.BLOCKER, advice="go over len(x), and divide by it, for a batch x")
    if count.where == "both":
        message = "this size is used in training and evaluation, whose batches differ"
        return Hit(node, message, severity=Severity.BLOCKER, advice="take the size from the input: x.size(0)")
    if script.from_data_parallel and isinstance(above, ast.BinOp) and _share_of_a_copy(script, above, node):
        edits = (Replace(script.span(above), f"{script.ddp}.local_batch({script.text(node)})"), AddImport(script.import_line))
        return Hit(above, "a GPU's part of the global batch: it is a rank's", edits)
    return Hit(node, _SMALLER, _local(script, node))


def _divides_a_count(script: Script, node: ast.expr) -> bool:
    """``correct.item() / float(batch_size * points)`` for one batch of training: a number or a count of hits, so nothing that is differentiated."""
    outer: ast.AST = node
    above = script.names.parent[node]
    while _multiplies(above) or (isinstance(above, ast.Call) and script.names.dotted(above.func) in ("?.float", "?.int")):
        outer, above = above, script.names.parent[above]
    if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Div) or above.right is not outer or script.roles.region(node) != "train":
        return False
    counts = [n for n in walk(above.left) if isinstance(n, ast.Name)]
    values = [above.left, *(b.value for n in counts for b in script.names.bindings(script.names.scope_of[n], n.id) if b.value is not None)]
    batch = [n.value for v in values for n in walk(v) if isinstance(n, ast.Attribute) and n.attr == "item"]
    batch += [v for v in values if isinstance(v, ast.expr) and _hits(v)]
    if any(script.losses.norm(b).norm is Norm.MEAN for b in batch):
        return False  # a mean, which no number of samples is part of
    grown = [n for n in counts if any(b.how == "aug" for b in script.names.bindings(script.names.scope_of[n], n.id))]
    if any(c.lineno < node.lineno for c, _ in script.methods("eval") if script.names.statement(c) in script.names.block(script.names.statement(node))):
        return False  # a batch of evaluation, which is not divided
    return bool(batch) and not grown and any(script.names.is_inside(node, loop.node) for loop in script.roles.train_loops)


def _hits(node: ast.AST) -> bool:
    """``(output.argmax(1) == y).sum().float()``, ``torch.sum(pred.eq(y))``: of a comparison there is no gradient."""
    while isinstance(node, ast.Call) and last(node.func) in _COUNTED and isinstance(node.func, ast.Attribute):
        node = node.args[0] if node.args and isinstance(node.func.value, ast.Name) and last(node.func) == "sum" else node.func.value
    return isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and last(node.func) in ("eq", "equal"))


def _multiplies(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def _share_of_a_copy(script: Script, quotient: ast.BinOp, size: ast.expr) -> bool:
    """``batch_size // torch.cuda.device_count()``"""
    return isinstance(quotient.op, ast.Div | ast.FloorDiv) and quotient.left is size and counts(script.roles, quotient.right)
