"""The number of GPUs stands for the copies of the model.

## What it finds
In a program with DataParallel, `torch.cuda.device_count()`, `len(gpu_ids)`, `n_gpu` and the like: as divisor of what the copies give together
(`loss.sum() / n_gpu`), as size of an input that has an element for each copy (`x.repeat(n_gpu, 1)`, `[length] * n_gpu`), as divisor of the size of a batch.
Also a sum over the losses of the copies that nothing divides.

## Why it matters
DataParallel cuts its inputs into one part for each GPU and puts the results together, so a loss that the model computes comes back as a vector. Under DDP each
rank has one copy, whose loss is one number, while `device_count()` still counts all GPUs of the machine: the loss, and with it the learning rate, would
be that many times too small, and an input would have elements that belong to nobody. Averaging over the ranks is what DDP does itself.

The number of GPUs in a batch size or a learning rate stays: there it means the whole program, which keeps its global batch.

## Example
```python
loss = model(x, y, table.repeat(n_gpu, 1))
loss = loss.sum() / n_gpu
```
becomes
```python
loss = model(x, y, table.repeat(1, 1))
loss = loss.sum()
```

## When it is not fixed
A sum of the copies' losses without a division: under DataParallel the gradient grew with the number of GPUs, and on one GPU it was that of the mean. It is
the latter now. A tensor with an element for each GPU that is not seen to go into the model. Loss sums over the samples keep their divisor (DPM301).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import Delete, DropArg, Edit, Replace
from dpmigrate.facts.copies import Average, averages, sums, uses
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM134", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def number_of_copies(script: Script) -> Iterator[Hit]:
    if not script.from_data_parallel:
        return
    divided: set[ast.AST] = set()
    for average in averages(script.roles):
        if script.losses.norm(average.total.node).norm is not Norm.SUM:
            divided.add(average.total.node)
            yield Hit(
                average.node,
                "divided by the number of GPUs, but a rank has one copy of the model: it would be that many times too small",
                (_undivided(script, average),),
            )
    for use in uses(script.roles):
        if use.kind == "input":
            yield Hit(use.count, "an element for each GPU, but a rank has one copy of the model", (Replace(script.span(use.count), "1"),))
        elif use.kind == "share":
            assert isinstance(use.node, ast.BinOp)
            yield Hit(use.node, "a GPU's part of a batch: a rank has that already", (Replace(script.span(use.node), script.text(use.node.left)),))
        elif use.kind == "gradient":
            call = next(b for b in script.roles.backwards if script.names.is_inside(use.node, b))
            drop = DropArg(script.span(call), "gradient", 0 if use.node in call.args else None)
            yield Hit(call, f"a gradient for the loss of each GPU, but a rank has one{_SMALLER}", (drop,))
        else:
            yield Hit(
                use.node, "a tensor with an element for each GPU; if it goes into the model, a rank needs one element", severity=Severity.WARNING,
                advice="write 1 in the place of the number of GPUs where it means the copies of the model",
            )  # fmt: skip
    for backward in script.roles.backwards:
        assert isinstance(backward.func, ast.Attribute)
        for total in sums(script.roles, backward.func.value):
            if total.node not in divided and script.losses.norm(total.given).norm is Norm.MEAN:
                divided.add(total.node)
                yield Hit(
                    total.node, f"the sum of the losses of all copies of the model: under DDP it is one copy's{_SMALLER}", severity=Severity.WARNING,
                    advice="nothing has to change if the program is to train as on one GPU; else multiply the learning rate",
                )  # fmt: skip


_SMALLER = ", and the gradient is that of the mean: on N GPUs DataParallel made it N times larger"


def _undivided(script: Script, average: Average) -> Edit:
    node = average.node
    if isinstance(node, ast.AugAssign):
        return Delete(script.span(node))
    if any(isinstance(n, ast.Call) and script.roles.model_vals(n.func) for n in walk(node.left)):
        return Replace(script.span(node.right), "1")  # the call of the model may be changed itself
    return Replace(script.span(node), script.text(node.left))
