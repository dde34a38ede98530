"""A seed is taken from the clock, so every rank has another one.

## What it finds
`torch.manual_seed`, `random.seed` and `numpy.random.seed` with a value from the time, the process id or the system's random numbers, or with
none at all; generators without a seed (`numpy.random.default_rng()`, `random.Random()`, `np.random.Generator(np.random.PCG64())`, `generator.seed()`) or of
the system (`random.SystemRandom()`) in the program itself and in its samplers; and what `secrets` and `os.urandom` give, where it goes into the data.

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

A generator without a seed gets one that all ranks have, `ddp.common_seed()`, and so does `random.SystemRandom()` as a `random.Random(…)`. Single draws
are rank 0's: `ddp.from_main(secrets.choice(files))`.

## When it is not fixed
Lists that are sorted in place by numbers of the system (`rows.sort(key=lambda row: secrets.token_hex())`), and a seed that `generator.seed()` gives, are
refused. Seeds that come out of functions outside of the program are left. Functions that worker processes call (`worker_init_fn`) run in no step with other
ranks: DPM211.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Delete, Replace, Wrap
from dpmigrate.facts.names import position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.ranks import parted, run_by_all
from dpmigrate.facts.script import Script
from dpmigrate.facts.streams import MAKERS, SHORT, SYSTEM, in_sampler, reseeded, seeded_later, system_draws, unseeded
from dpmigrate.facts.workers import worker_starts
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

_SEEDS = (
    "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "numpy.random.seed", "random.seed",
    "torch.seed", "torch.random.seed",
)  # fmt: skip
_SOURCES = ("time.", "datetime.", "os.urandom", "os.getpid", "uuid.", "secrets.", "torch.seed", "torch.initial_seed", "random.SystemRandom")
_MESSAGE = "every rank would have another stream, and draw other data from it"


@rule("DPM209", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def seed_differs_per_rank(script: Script) -> Iterator[Hit]:
    done: set[ast.expr] = set()
    workers = [s.function for s in worker_starts(script) if s.function is not None]
    seeding = [c for c in script.calls(*_SEEDS, *MAKERS) if run_by_all(script.roles, c) or in_sampler(script, c)]
    for call in dict.fromkeys((*seeding, *seeded_later(script))):
        if any(script.names.is_inside(call, w) for w in workers):
            continue  # worker processes: what torch gives them is made from the common seed
        stmt = script.is_statement(call)
        if stmt is not None and not call.args and not call.keywords and script.names.dotted(call.func):
            yield Hit(call, "every rank would have another seed; setup gives all ranks that of rank 0", (Delete(script.span(stmt)),))
        for arg in [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("seed", "a", "entropy"))]:
            for node in _origins(script, arg):
                if node not in done:
                    done.add(node)
                    yield _from_main(script, node, "every rank would have another seed")
    for call in unseeded(script):
        if not any(script.names.is_inside(call, n) for n in done):
            done.add(call)
            yield _one_stream(script, call)
    for call, func, made in reseeded(script):
        yield _seeded_alike(script, call, func, made)
    stored = {place for asked in script.executed.configured.values() for place in asked}
    for call, whole in system_draws(script):
        if position(call) in stored and not _from_main(script, whole or call, "").edits:
            continue  # what is stored in a configuration is made rank 0's there (DPM506)
        if not any(script.names.is_inside(call, n) for n in done):
            done.add(whole or call)
            if whole is None:
                advice = "draw from a stream that all ranks share: random, numpy, torch"
                yield Hit(call, "every rank would draw other data from the system", severity=Severity.BLOCKER, advice=advice)
            else:
                yield _from_main(script, whole, "every rank would draw other data from the system")


def _from_main(script: Script, node: ast.expr, message: str) -> Hit:
    shared = (Wrap(script.span(node), f"{script.ddp}.from_main({{}})"), AddImport(script.import_line))
    apart = not run_by_all(script.roles, node) or parted(script.roles, node)  # where a library calls, ranks exchange nothing
    return Hit(node, message, () if apart else shared, advice="draw the seed where every rank comes by: ddp.from_main(...)" if apart else "")


def _one_stream(script: Script, call: ast.Call) -> Hit:
    """The stream with a seed that all ranks have; one of the system becomes one that can have it."""
    maker = script.text(call.func)
    new = AddImport(script.import_line)
    if script.names.dotted(call.func) == SYSTEM:
        words = script.names.imports.get((id(script.names.module_of(call)), "random"))
        if not isinstance(call.func, ast.Attribute) and words not in (None, "random"):
            return Hit(call, _MESSAGE, severity=Severity.BLOCKER, advice=f"draw from random.Random({script.ddp}.common_seed())")
        maker = f"{script.text(call.func.value)}.Random" if isinstance(call.func, ast.Attribute) else "random.Random"
        edits = (Replace(script.span(call), f"{maker}({_seed(script, '')})"), new)
        return Hit(call, _MESSAGE, edits if isinstance(call.func, ast.Attribute) or words else (*edits, AddImport("import random")))
    return Hit(call, _MESSAGE, (Replace(script.span(call), f"{maker}({_seed(script, script.names.dotted(call.func))})"), new))


def _seeded_alike(script: Script, call: ast.Call, func: ast.Attribute, made: str) -> Hit:
    """``g.manual_seed(ddp.common_seed())`` for ``g.seed()`` of torch, which gives the seed where others give nothing."""
    if made == "torch.Generator" and script.is_statement(call) is None:
        return Hit(call, _MESSAGE, severity=Severity.BLOCKER, advice=f"seed it by a number that all ranks have: manual_seed({script.ddp}.common_seed())")
    method = "manual_seed" if made == "torch.Generator" else "seed"
    return Hit(call, _MESSAGE, (Replace(script.span(call), f"{script.text(func.value)}.{method}({_seed(script, made)})"), AddImport(script.import_line)))


def _seed(script: Script, maker: str) -> str:
    return f"{script.ddp}.common_seed()" + (" % 2**32" if maker in SHORT else "")


def _origins(script: Script, node: ast.expr, seen: frozenset[ast.expr] = frozenset()) -> Iterator[ast.expr]:
    """The expressions that take a seed from outside: the argument itself, or what its name is given, also by those who call the function."""
    if any(isinstance(n, ast.Call) and script.names.dotted(n.func).startswith(_SOURCES) for n in walk(node)):
        yield node
    elif isinstance(node, ast.Name | ast.Attribute) and node not in seen:
        for given in script.roles.given(node):
            if not script.names.is_inside(node, given):
                yield from _origins(script, given, seen | {node})
