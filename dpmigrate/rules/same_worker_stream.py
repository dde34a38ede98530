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
from dpmigrate.facts.script import Script
from dpmigrate.facts.workers import alike_seeds, kept_streams, worker_starts
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM211", severity=Severity.ERROR, fix=Fix.SAFE)
def same_worker_stream(script: Script) -> Iterator[Hit]:
    new = AddImport(script.import_line)
    for start in worker_starts(script):
        if start.function is None:
            yield Hit(
                start.given, "if this function seeds by the worker's number alone, all ranks draw the same augmentation", severity=Severity.WARNING,
                advice=f"seed by {script.ddp}.worker_number(worker_id), which counts the workers of all ranks",
            )  # fmt: skip
        for seed in alike_seeds(script, start):
            template = f"{script.ddp}.worker_number({{}})" if seed.number else f"{{}} + {script.ddp}.rank()"
            yield Hit(seed.node, "the workers of all ranks would draw the same random numbers", (Wrap(script.span(seed.node), template), new))
    for call in script.train_loader_calls:
        generator = script.argument(call, "generator")
        if generator is not None and script.reads_statically(call) and not isinstance(generator, ast.Constant):
            edit = Wrap(script.span(generator), f"{script.ddp}.rank_generator({{}})")
            yield Hit(generator, "the workers of all ranks would be seeded alike by this generator", (edit, new))
    for call in kept_streams(script):
        yield Hit(
            call, "all ranks draw the same numbers here, for other samples: this generator has one seed on every rank", severity=Severity.WARNING,
            advice=f"give the data set a generator with a seed of the rank's, seed + {script.ddp}.rank(), and split the data by another one",
        )  # fmt: skip
