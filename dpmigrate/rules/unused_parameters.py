"""Some training steps do not use all parameters of the model.

## What it finds
In the model's class in this program: a layer that `__init__` makes and nothing calls; a layer that `forward` calls only behind a test that changes from
step to step (a random number, the samples, the step, an argument that the training loop varies); one of several layers chosen by such a value; a layer
that goes only into an output that no training step puts into its loss (`features, logits = model(x)`). Where nothing of this is seen, `apply`
executes the result on paper: a layer of the model that no loss reaches there (`self.blocks[0](x)` where there are two), or that is frozen after the wrap, is
found as well. So is a model of a library of which only parts are used and not the whole (`self.encoder.layer1(x)` of a `resnet18`, `forward_features`): what
else it holds, as its last layer, is not seen.

## Why it matters
DistributedDataParallel waits for the gradient of every parameter: the second step stops with "Expected to have finished reduction in the prior iteration".
A model in `ddp.wrap` goes on: what a backward leaves out counts as zero on this rank, and a parameter that no rank has used keeps no gradient, as in one
process. It does that at the end of the backward, after which all gradients are exchanged at once. With `find_unused=True` it looks for those parameters
when the backward begins, so that the exchange runs beside it; that is worth its while where there are such parameters, and only there is it written.

## Example
```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(16, 2), nn.Linear(16, 2)])

    def forward(self, x, task):
        return self.heads[task](x)

model = nn.DataParallel(Net())
```
becomes, in its last line,
```python
model = ddp.wrap(Net(), find_unused=True)
```

## When it is not fixed
A test that looks at the samples (`if x.mean() > 0`), in a program of one device: each rank would decide by its part of the batch, which is refused. Under
DataParallel each GPU did so already.

Models outside of the program: whether their layers are used is not known. Nothing is written for them, since `ddp.wrap` finds out.
`static_graph=True` is never written: it fails where the choice changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.facts.unused import Unused
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import option_edit


@rule("DPM111", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def unused_parameters(script: Script) -> Iterator[Hit]:
    if any(True for _ in script.wraps.problems):
        return
    for w in script.wraps.wraps:
        for u in script.unused(w):
            if u.by_data and not script.from_data_parallel:
                yield Hit(u.node, _said(script, u), severity=Severity.BLOCKER, advice="let each sample decide for itself, or all ranks together")
            else:
                edit = option_edit(script, w, "find_unused")  # the wrap's own rule names it as well, so that neither can be left out
                yield Hit(u.node, _said(script, u), (edit,))
        if w in script.shown_unused and not script.unused(w):
            yield Hit(w.node, script.shown_unused[w], (option_edit(script, w, "find_unused"),))


def _said(script: Script, u: Unused) -> str:
    name = f"{u.cls.name}.{u.name}"
    if u.idle:
        return f"{name} goes into an output that no loss is made of: DDP would stop in the second step"
    if u.test is None:
        return f"{name} has parameters that nothing uses: DDP would stop in the second step"
    why = "; each rank decides by its own samples" if u.by_data else ""
    return f"a step may not use all of {name} ({script.where(u.test)}): DDP would stop in the second step{why}"
