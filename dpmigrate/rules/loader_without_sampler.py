"""A training DataLoader gives every rank the same data.

## What it finds
The DataLoaders that the training loop goes through, decided by use: not by name and not by `shuffle`.

## Why it matters
Without a distributed sampler every rank goes through the whole data set. With equal seeds all ranks do the same work; with
different ones an epoch becomes W epochs. `shuffle` and `drop_last` go to the sampler (a loader with a sampler must not shuffle). Where the step leaves a
smaller batch out (`if len(x) != batch_size: continue`), the sampler gets `drop_last=True`.

## Example
```python
loader = DataLoader(train_set, batch_size=64, shuffle=True)
```
becomes
```python
loader = DataLoader(train_set, batch_size=ddp.local_batch(64), sampler=ddp.DistributedSampler(train_set, seed=args.seed))
```
The sampler's seed is that of the loader's generator, or the script's own where it can be read (`torch.manual_seed(args.seed)`). Otherwise it is left
to the sampler, `ddp.DistributedSampler(train_set)`: what torch is seeded with when the first pass begins, also by a number in another file or after the
loader was made. A program that seeds itself by functions outside of the program then has the same order in each run, and one that does not seed itself
another one, as before; all ranks have the same.

Where training goes through several shuffled loaders, each has a seed of its own, a thousand apart (a sampler adds the epoch to its seed):
```python
photos = DataLoader(photo_set, batch_size=8, sampler=ddp.DistributedSampler(photo_set, seed=args.seed))
paintings = DataLoader(painting_set, batch_size=8, sampler=ddp.DistributedSampler(painting_set, seed=args.seed + 1000))
```
With one seed sample i of the first would meet sample i of the second in every epoch. Samplers without a seed have different ones, too.

A loader whose arguments cannot be read (`**kwargs` built at run time, a factory that serves training and evaluation) is handed
to `ddp.distribute(loader)`, which builds the same from the finished loader; where a factory gives it in a tuple (`data, loader = get("train")`), in a line of
its own after that. A sampler of the script's own is kept: every rank makes the same draw and takes its share, `ddp.shard_sampler(sampler)`. Of each batch of a
`batch_sampler` a rank takes its part, so that an epoch keeps its number of steps.

## When it is not fixed
An IterableDataset (DPM906), and a DataLoader that is built inside a comprehension and serves training and evaluation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, After, DropArg, Edit, Hoist, SetArg, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.facts.seeds import is_given
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import LOADER_PARAMETERS


@rule("DPM201", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def loader_without_sampler(script: Script) -> Iterator[Hit]:
    new = AddImport(script.import_line)
    for call in script.train_loader_calls:
        message = "this loader feeds the training loop: every rank would go through the whole data set"
        keep = ", keep_batch_size=True" if script.settings.batch == "per-rank" else ""
        for loader, stmt in script.distributed_after(call):
            yield Hit(call, message, (After(script.span(stmt), f"{loader} = {script.ddp}.distribute({loader}{keep})"), new))
        for place in script.distributed_at(call):
            yield Hit(call, message, (Wrap(script.span(place), f"{script.ddp}.distribute({{}}{keep})"), new))
        if script.reads_statically(call):
            sampler = script.argument(call, "sampler", 3)
            if is_given(sampler):
                yield Hit(
                    call,
                    "this loader has a sampler of its own: every rank would draw for itself",
                    (Wrap(script.span(sampler), f"{script.ddp}.shard_sampler({{}}{_dropping(script, call)})"), new),
                )
            else:
                yield Hit(call, message, tuple(_sampler(script, call)))


def _sampler(script: Script, call: ast.Call) -> Iterator[Edit]:
    span = script.span(call)
    dataset = script.argument(call, "dataset", 0)
    assert dataset is not None
    name = script.text(dataset)
    if not _plain(dataset):
        inline = [c for c in script.train_loader_calls if (d := script.argument(c, "dataset", 0)) is not None and not _plain(d)]
        name = script.fresh("train_set" if call is inline[0] else f"train_set_{inline.index(call) + 1}")
        yield Hoist(script.span(dataset), name)
    shuffle = script.argument(call, "shuffle", 2)
    options = ""
    if shuffle is None or isinstance(shuffle, ast.Constant):
        options += "" if isinstance(shuffle, ast.Constant) and shuffle.value else ", shuffle=False"
    else:
        options += f", shuffle={script.text(shuffle)}"
    options += _dropping(script, call)
    if is_given(shuffle) and (seed := _seed(script, call)) is not None:
        options += f", seed={seed}"
    if shuffle is not None:
        positional = 2 if len(call.args) > 2 else None
        yield DropArg(span, "shuffle", positional, LOADER_PARAMETERS[3 : len(call.args)] if positional else ())
    yield SetArg(span, "sampler", f"{script.ddp}.DistributedSampler({name}{options})")
    yield AddImport(script.import_line)


def _dropping(script: Script, loader: ast.Call) -> str:
    """Where the loader drops the last batch, or the step leaves it out, the samples that do not fill a row of all ranks go too: filled up, they could
    complete that batch.
    """
    drop_last = script.argument(loader, "drop_last", 8)
    given = script.text(drop_last) if is_given(drop_last) else ""
    if given in ("", "False") and script.sizes.smaller_left_out:
        given = "True"
    return f", drop_last={given}" if given else ""


def _seed(script: Script, loader: ast.Call) -> str | None:
    """Another seed is another order, as before: that of the loader's generator; the script's own, where it is seen; None for what torch is seeded with when
    the first pass begins.
    """
    generator = script.argument(loader, "generator")
    if generator is not None and _plain(generator):
        return f"{script.ddp}.common_seed({script.text(generator)})"
    if isinstance(generator, ast.Call) and isinstance(generator.func, ast.Attribute) and generator.func.attr == "manual_seed" and generator.args:
        return script.text(generator.args[0])
    return script.seeds.of(loader)


def _plain(node: ast.expr) -> bool:
    """An expression that may be evaluated twice: a name, an attribute, an item by a literal."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Attribute):
        return _plain(node.value)
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant | ast.Name) and _plain(node.value)
