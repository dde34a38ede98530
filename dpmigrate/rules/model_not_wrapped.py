"""A model that is trained on one device has no wrap.

## What it finds
Every model whose parameters go to an optimizer and that no DataParallel call wraps.

## Why it matters
Without the wrap each rank trains a model of its own on its part of the data; nothing reports it. The wrap is put after the
statements that still need the bare model (moved, initialised, frozen, loaded), so weights are loaded first and wrapped then. A model that
is made in the call (`train(Net(), loader)`) is wrapped at the top of the function that trains it.

## Example
```python
model = Net().to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
```
becomes
```python
model = ddp.wrap(Net().to(device))
optimizer = optim.SGD(model.parameters(), lr=0.1)
```

A model that trains itself in a method (`model.fit(loader)`, `model.train_step(batch)`) makes its wrapper there, and calls that in its own place; where
the method may be called again, each call gets the same wrapper (`again=True`):
```python
def fit(self, loader):
    model = ddp.wrap(self)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
```

## When it is not fixed
When the model cannot be traced to one variable. A variable that several functions or branches give a model of their own has a wrap in each; one that
another function gives a model made of the first (`self.model = pruned(self.model)`) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, Replace
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import wrap_edit


@rule("DPM102", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def model_not_wrapped(script: Script) -> Iterator[Hit]:
    for w in script.wraps.wraps:
        if w.how == "call" or (w.how == "after" and any(script.names.is_inside(c, w.stmt) for c in script.wraps.removed)):
            continue
        edit = wrap_edit(script, w)
        if w.how == "own":
            direct = (p.model for p in script.roles.training_passes if p.call.func is p.model)
            calls = (Replace(script.span(model), w.name) for model in direct if script.wraps.own.get(model) is w)
            message = f"{w.target} trains itself, and is not wrapped in DistributedDataParallel: every rank would train alone"
            yield Hit(w.stmt, message, (edit, *calls, AddImport(script.import_line)))
            continue
        yield Hit(w.stmt, f"{w.target} is not wrapped in DistributedDataParallel: every rank would train alone", (edit, AddImport(script.import_line)))
