"""The workers of all ranks would draw the same random numbers.

## What it finds
Functions that workers run first (`worker_init_fn`), where they seed by numbers that are the same on all ranks: the worker's own, the program's seed,
a constant. And training loaders with a `generator` of their own, from which their workers are seeded. Generators that a training data set keeps and draws
from for each sample (`self.rng = random.Random(0)`) are told: nothing that seeds a rank reaches them.

## Why it matters
Augmentation is drawn in the workers. Worker 0 of rank 1 has other samples than worker 0 of rank 0, but would flip, crop and jitter them alike. One process
with as many workers drew all of it anew.

## Example
```python
def worker_init_fn(worker_id):
    np.random.seed(args.seed + worker_id)

loader = DataLoader(train_set, batch_size=64, worker_init_fn=worker_init_fn, generator=g)
```
becomes
```python
def worker_init_fn(worker_id):
    np.random.seed(args.seed + ddp.worker_number(worker_id))

loader = DataLoader(train_set, batch_size=ddp.local_batch(64), worker_init_fn=worker_init_fn, generator=ddp.rank_generator(g))
```
`ddp.worker_number` counts the workers of all ranks (`rank * num_workers + worker_id`), `ddp.rank_generator` is a generator with a seed of this rank's. In one
process, and for the workers of rank 0, both are what they are given.

Without a `worker_init_fn` nothing is needed: torch seeds itself, `random` and numpy in each worker from the rank's own stream (DPM210). A function that
starts from `torch.initial_seed()` or `get_worker_info().seed` does the same.

## When it is not fixed
A function outside of the program is told, and so is a generator that the data set keeps, since the program may split its data by the same one. Give the data
set one of its own: `random.Random(seed + ddp.rank())`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.loaders import WorkerStart, worker_starts
from dpmigrate.facts.names import last
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule

#: calls by these names set a stream, whatever they belong to: numpy.random.seed, torch.manual_seed, imgaug.seed, a helper of another file
_SEEDING = frozenset(
    {"seed", "manual_seed", "manual_seed_all", "set_seed", "seed_all", "seed_everything", "set_random_seed", "default_rng", "RandomState", "Random"}
)
#: where a seed comes from that each rank's workers have for themselves: torch's stream of the worker, the system
_OWN = ("torch.initial_seed", "torch.seed", "torch.rand", "torch.empty", "numpy.random.", "random.", "os.getpid", "os.urandom", "secrets.", "uuid.")


@rule("DPM211", severity=Severity.ERROR, fix=Fix.SAFE)
def same_worker_stream(script: Script) -> Iterator[Hit]:
    new = AddImport(script.import_line)
    for start in worker_starts(script):
        if start.function is None:
            yield Hit(
                start.given, "if this function seeds by the worker's number alone, all ranks draw the same augmentation", severity=Severity.WARNING,
                advice=f"seed by {script.ddp}.worker_number(worker_id), which counts the workers of all ranks",
            )  # fmt: skip
        for node, template in _seeds(script, start):
            yield Hit(node, "the workers of all ranks would draw the same random numbers", (Wrap(script.span(node), template), new))
    for call in script.train_loader_calls:
        generator = script.argument(call, "generator")
        if generator is not None and script.reads_statically(call) and not isinstance(generator, ast.Constant):
            edit = Wrap(script.span(generator), f"{script.ddp}.rank_generator({{}})")
            yield Hit(generator, "the workers of all ranks would be seeded alike by this generator", (edit, new))
    for call in _kept_streams(script):
        yield Hit(
            call, "all ranks draw the same numbers here, for other samples: this generator has one seed on every rank", severity=Severity.WARNING,
            advice=f"give the data set a generator with a seed of the rank's, seed + {script.ddp}.rank(), and split the data by another one",
        )  # fmt: skip


_GENERATORS = frozenset({"random.Random", "numpy.random.RandomState", "numpy.random.default_rng", "numpy.random.Generator", "torch.Generator"})


def _kept_streams(script: Script) -> Iterator[ast.Call]:
    """What draws for a sample from a generator that is made elsewhere, and kept."""
    data = {v.cls for c in script.train_loader_calls for v in script.values.eval(script.argument(c, "dataset", 0)) if v.kind == "object" and v.cls is not None}
    methods = [m for m in (script.values.defs.method(c, "__getitem__") for c in data) if m is not None]
    running = {f for m in methods for f in (m, *script.roles.all_entered(m))}
    for call in (c for c in script.roles.calls if script.names.function(c) in running):
        drawn = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        vals = [v for e in (*drawn, *(k.value for k in call.keywords if k.arg == "generator")) for v in script.values.eval(e)]
        if any(v.kind == "call" and v.qual in _GENERATORS and script.names.function(v.node) not in running for v in vals):
            yield call


def _seeds(script: Script, start: WorkerStart) -> Iterator[tuple[ast.expr, str]]:
    """The numbers of one process in what a worker's seeds are made of, and what goes round them."""
    if start.function is None:
        return
    parts = [p for seed in _given(script, start.function, frozenset()) for p in _made_of(start.function, seed, frozenset())]
    names = [n for p in parts for n in ast.walk(p)]
    if any(_own(script, n) for n in names):
        return
    numbers = [
        n
        for n in names
        if (isinstance(n, ast.Name) and n.id == start.number) or (isinstance(n, ast.Attribute) and n.attr == "id" and "info" in ast.unparse(n.value))
    ]
    if numbers:
        yield from ((n, f"{script.ddp}.worker_number({{}})") for n in dict.fromkeys(numbers))
    else:
        yield from ((p, f"{{}} + {script.ddp}.rank()") for p in dict.fromkeys(parts) if not any(_variables(start.function, p, frozenset())))


def _given(script: Script, function: ast.AST, seen: frozenset[ast.AST]) -> Iterator[ast.expr]:
    """The seeds that the function sets, and what it hands to others of the file that set one."""
    for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
        called = last(call.func)
        inner = [f for f, _ in script.values.targets(call) if f not in seen]
        if any(True for f in inner for _ in _given(script, f, seen | {f})):
            yield from (*call.args, *(k.value for k in call.keywords))
        elif called in _SEEDING:
            yield from (*call.args[:1], *(k.value for k in call.keywords if k.arg in ("seed", "a", "x")))


def _variables(function: ast.AST, node: ast.expr, seen: frozenset[str]) -> Iterator[tuple[str, ast.expr]]:
    """The variables of the function in an expression, with what they are given."""
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - seen
    for stmt in ast.walk(function):
        if isinstance(stmt, ast.Assign):
            yield from ((t.id, stmt.value) for t in stmt.targets if isinstance(t, ast.Name) and t.id in used)


def _made_of(function: ast.AST, node: ast.expr, seen: frozenset[str]) -> Iterator[ast.expr]:
    """The seed, and what the variables of the function in it are given."""
    yield node
    for name, value in _variables(function, node, seen):
        yield from _made_of(function, value, seen | {name})


def _own(script: Script, node: ast.AST) -> bool:
    """Whether this is another number on each rank: drawn in the worker, or the author's own count of ranks."""
    if isinstance(node, ast.Call) and script.names.dotted(node.func).startswith(_OWN):
        return True
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return (isinstance(node, ast.Attribute) and name == "seed" and "info" in ast.unparse(node.value)) or "rank" in name.lower().split("_")
