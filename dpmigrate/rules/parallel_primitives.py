"""DataParallel's own parts are used by hand.

## What it finds
`replicate`, `scatter`, `parallel_apply` and `gather` of `torch.nn.parallel`, its functional `data_parallel` outside a model, classes derived from
DataParallel, DataParallel classes that are not torch's.

## Why it matters
Such code drives several GPUs from one process. One process has one device under DDP; what the parts did together can only be
rewritten by somebody who knows what was meant.

## Example
```python
output = nn.parallel.data_parallel(net, input, range(ngpu))
```
has to become
```python
output = net(input)
```
before the migration.

## When it is not fixed
Always: it is a refusal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.facts.values import DATA_PARALLEL
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import DATA_PARALLEL_FUNCTION, driven_directly

#: https://pytorch-geometric.readthedocs.io/en/latest/modules/nn.html#torch_geometric.nn.data_parallel.DataParallel
_OF_GRAPHS = ("torch_geometric.nn.DataParallel", "torch_geometric.nn.data_parallel.DataParallel")
_PARTS = tuple(
    f"torch.nn.parallel.{p}{name}"
    for name, p in [(n, q) for n in ("replicate", "scatter", "parallel_apply", "gather") for q in ("", f"{n}.", "scatter_gather.")]
)


@rule("DPM903", severity=Severity.BLOCKER)
def parallel_primitives(script: Script) -> Iterator[Hit]:
    for call in script.calls(*_PARTS, *DATA_PARALLEL_FUNCTION):
        if driven_directly(script, call) is None:
            yield Hit(
                call, f"{script.text(call.func)} drives several GPUs from one process", advice="call the module directly; DDP gives each process one device"
            )
    for cls in (n for n in script.names.opened if isinstance(n, ast.ClassDef)):
        for base in cls.bases:
            if script.names.dotted(base) in DATA_PARALLEL and _constructed(script, cls):
                yield Hit(base, "a class derived from DataParallel", advice="wrap the plain model; put the extra methods on the model itself")
    for call in script.roles.calls:
        dotted = script.names.dotted(call.func)
        if dotted in _OF_GRAPHS:
            yield Hit(
                call, f"{script.text(call.func)} takes a list of graphs and makes a batch of them for each GPU",
                advice="give the plain model the batches of torch_geometric.loader.DataLoader, which can be divided over the ranks",
            )  # fmt: skip
        elif _looks_like_one(dotted) and not script.values.is_wrap(call):
            yield Hit(
                call,
                f"{script.text(call.func)} is not seen to be torch's DataParallel",
                advice="import it in this program (from torch import nn), or give the plain model",
            )


def _constructed(script: Script, cls: ast.ClassDef) -> bool:
    """Whether something makes an object of the class, or of one derived from it, that is more than a wrap."""
    family = script.values.defs.family(cls)
    made = (c for c in script.roles.calls if any(v.kind == "class" and v.cls in family for v in script.values.eval(c.func)))
    return any(not script.values.is_wrap(c) for c in made)


def _looks_like_one(dotted: str) -> bool:
    last = dotted.rsplit(".", 1)[-1]
    return "DataParallel" in last and not last.startswith(("Distributed", "Fully")) and dotted not in DATA_PARALLEL
