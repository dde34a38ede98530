"""A seed is taken from the clock, so every rank has another one.

## What it finds
`torch.manual_seed`, `random.seed` and `numpy.random.seed` with a value from the time, the process id or the system's random numbers, or with
none at all; and generators without a seed (`numpy.random.default_rng()`, `random.Random()`) in the program itself and in its samplers.

## Why it matters
Until data are split and the model is built, all ranks must draw the same numbers: with different seeds 85 of 200 validation samples were trained on
by some rank.

## Example
```python
torch.manual_seed(int(time.time()))
```
becomes
```python
torch.manual_seed(ddp.from_main(int(time.time())))
```

## When it is not fixed
Seeds that come out of functions outside of the program. Functions that worker processes call (`worker_init_fn`) run in no step with other ranks: DPM211.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Delete, Replace, Wrap
from dpmigrate.facts.names import last
from dpmigrate.facts.ranks import parted, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.facts.workers import worker_starts
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_SEEDS = (
    "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "numpy.random.seed", "random.seed",
    "numpy.random.default_rng", "numpy.random.RandomState", "torch.seed", "torch.random.seed",
)  # fmt: skip
_GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random")
_SOURCES = ("time.", "datetime.", "os.urandom", "os.getpid", "uuid.", "secrets.", "torch.seed", "torch.initial_seed", "random.SystemRandom")


@rule("DPM209", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def seed_differs_per_rank(script: Script) -> Iterator[Hit]:
    done: set[ast.expr] = set()
    workers = [s.function for s in worker_starts(script) if s.function is not None]
    for call in script.calls(*_SEEDS, "random.Random"):
        stmt = script.is_statement(call)
        if not (run_by_all(script.roles, call) or _in_sampler(script, call)) or any(script.names.is_inside(call, w) for w in workers):
            continue  # worker processes: what torch gives them is made from the common seed
        if stmt is not None and not call.args and not call.keywords:
            yield Hit(call, "every rank would have another seed; setup gives all ranks that of rank 0", (Delete(script.span(stmt)),))
        elif not call.args and not call.keywords and _shared_stream(script, call):
            seed = f"{script.ddp}.common_seed()" + (" % 2**32" if script.names.dotted(call.func) == "numpy.random.RandomState" else "")
            edits = (Replace(script.span(call), f"{script.text(call.func)}({seed})"), AddImport(script.import_line))
            yield Hit(call, "every rank would have another stream, and draw other data from it", edits)
        for arg in [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("seed", "a"))]:
            for node in _origins(script, arg):
                if node not in done:
                    done.add(node)
                    shared = (Wrap(script.span(node), f"{script.ddp}.from_main({{}})"), AddImport(script.import_line))
                    apart = not run_by_all(script.roles, node) or parted(script.roles, node)  # where a library calls, ranks exchange nothing
                    advice = "draw the seed where every rank comes by: ddp.from_main(...)" if apart else ""
                    yield Hit(node, "every rank would have another seed", () if apart else shared, advice=advice)


def _in_sampler(script: Script, call: ast.Call) -> bool:
    """Whether a sampler of the program comes here: all ranks draw one order from it."""
    classes = (script.names.cls(place) for place in script.leading_to(call))
    return any(_is_sampler(script, cls) for cls in classes if cls is not None)


def _is_sampler(script: Script, cls: ast.ClassDef) -> bool:
    return any(last(b).endswith("Sampler") for c in script.values.defs.bases(cls) for b in c.bases)


def _shared_stream(script: Script, call: ast.Call) -> bool:
    """Whether a generator is one from which all ranks must draw the same: a data set's own may differ, that is augmentation."""
    if script.names.dotted(call.func) not in _GENERATORS or script.roles.region(call) != "outside":
        return False
    cls = script.names.cls(call)
    return cls is None or _is_sampler(script, cls)


def _origins(script: Script, node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that take a seed from outside: the argument itself, or what its name is given."""
    if any(isinstance(n, ast.Call) and script.names.dotted(n.func).startswith(_SOURCES) for n in ast.walk(node)):
        yield node
    elif isinstance(node, ast.Name):
        for b in script.names.bindings(script.names.scope_of[node], node.id):
            if b.how == "assign" and isinstance(b.value, ast.expr) and not b.path and not script.names.is_inside(node, b.value):
                yield from _origins(script, b.value)
