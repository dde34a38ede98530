"""A checkpoint is loaded onto the GPU it was saved from.

## What it finds
`torch.load` without `map_location`, with `None`, or with a dict of GPUs.

## Why it matters
The file remembers cuda:0. Every rank would put its copy there: W contexts on one GPU, out of memory.

## Example
```python
checkpoint = torch.load(path)
```
becomes
```python
checkpoint = torch.load(path, map_location=ddp.device())
```
where something of it goes into `load_state_dict`. What else is loaded may be data, which belong on the CPU: there
`map_location={"cuda:0": str(ddp.device())}` moves only what was saved on a GPU. So it is where a state of random numbers is loaded, which torch takes from
the CPU alone (`torch.set_rng_state(checkpoint["rng"])`).

## When it is not fixed
When the arguments are hidden behind `**`. What a data set loads, sample by sample, is left where its workers have it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, SetArg
from dpmigrate.facts.origins import origins
from dpmigrate.facts.ranks import for_samples
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM405", severity=Severity.ERROR, fix=Fix.SAFE)
def load_without_map_location(script: Script) -> Iterator[Hit]:
    states = {n for load, _ in script.methods("load_state_dict") for a in load.args for n, _ in origins(script.roles, a, returned=True)}
    draws = {n for c in _restoring(script) for a in c.args for n, _ in origins(script.roles, a, returned=True)}
    for call in script.calls("torch.load"):
        given = script.argument(call, "map_location", 1)
        nowhere = isinstance(given, ast.Dict) or (isinstance(given, ast.Constant) and given.value is None)
        told = nowhere or (given is None and not any(k.arg is None for k in call.keywords))
        if told and not for_samples(script.roles, call):
            device = f"{script.ddp}.device()"
            place = device if call in states - draws else f'{{"cuda:0": str({device})}}'
            edits = (SetArg(script.span(call), "map_location", place, 1), AddImport(script.import_line))
            yield Hit(call, "every rank would load onto the GPU that the file was saved from", edits)


def _restoring(script: Script) -> Iterator[ast.Call]:
    """The calls that take a state of random numbers."""
    yield from script.calls("torch.set_rng_state", "torch.random.set_rng_state", "torch.cuda.set_rng_state", "torch.cuda.set_rng_state_all")
    yield from (call for call, _ in script.methods("set_state"))
