"""A training DataLoader gives every rank the same data.

## What it finds
The DataLoaders that the training loop goes through, decided by use: not by name and not by `shuffle`.

## Why it matters
Without a distributed sampler every rank goes through the whole data set. With equal seeds all ranks do the same work; with
different ones an epoch becomes W epochs. `shuffle` and `drop_last` go to the sampler (a loader with a sampler must not shuffle).

## Example
```python
loader = DataLoader(train_set, batch_size=64, shuffle=True)
```
becomes
```python
loader = DataLoader(train_set, batch_size=ddp.local_batch(64), sampler=DistributedSampler(train_set, seed=args.seed))
```
The sampler's seed is that of the loader's generator, or the script's own where it can be read (`torch.manual_seed(args.seed)`). Otherwise it is
`ddp.common_seed()`: what torch is seeded with when the program comes there, also by a number in another file. A program that seeds itself by
functions outside of the program then has the same order in each run, and one that does not seed itself another one, as before; all ranks have the same.

A loader whose arguments cannot be read (`**kwargs` built at run time, a factory that serves training and evaluation) is handed
to `ddp.distribute(loader)`, which builds the same from the finished loader. A sampler of the script's own is kept: every rank makes the
same draw and takes its share, `ddp.shard_sampler(sampler)`. Of each batch of a `batch_sampler` a rank takes its part, so that an epoch keeps its number of
steps.

## When it is not fixed
An IterableDataset (DPM906), and a DataLoader that is built inside a comprehension and serves training and evaluation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, After, DropArg, Edit, Hoist, SetArg, Wrap
from dpmigrate.facts.names import FunctionNode, position
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity, is_main_guard
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import LOADER_PARAMETERS

_IMPORT = AddImport("from torch.utils.data.distributed import DistributedSampler")


@rule("DPM201", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def loader_without_sampler(script: Script) -> Iterator[Hit]:
    new = AddImport(script.import_line)
    for call in script.train_loader_calls:
        message = "this loader feeds the training loop: every rank would go through the whole data set"
        keep = ", keep_batch_size=True" if script.settings.batch == "per-rank" else ""
        for loader, stmt in script.distributed_after(call).items():
            yield Hit(call, message, (After(script.span(stmt), f"{loader} = {script.ddp}.distribute({loader}{keep})"), new))
        for place in script.distributed_at(call):
            yield Hit(call, message, (Wrap(script.span(place), f"{script.ddp}.distribute({{}}{keep})"), new))
        if script.reads_statically(call):
            sampler = script.argument(call, "sampler", 3)
            if sampler is not None and not (isinstance(sampler, ast.Constant) and sampler.value is None):
                yield Hit(
                    call,
                    "this loader has a sampler of its own: every rank would draw for itself",
                    (Wrap(script.span(sampler), f"{script.ddp}.shard_sampler({{}})"), new),
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
    shuffle, drop_last = script.argument(call, "shuffle", 2), script.argument(call, "drop_last", 8)
    options = ""
    if shuffle is None or isinstance(shuffle, ast.Constant):
        options += "" if isinstance(shuffle, ast.Constant) and shuffle.value else ", shuffle=False"
    else:
        options += f", shuffle={script.text(shuffle)}"
    if drop_last is not None and not (isinstance(drop_last, ast.Constant) and not drop_last.value):
        options += f", drop_last={script.text(drop_last)}"
    if shuffle is not None and not (isinstance(shuffle, ast.Constant) and not shuffle.value):
        options += f", seed={_seed(script, call)}"
        yield AddImport(script.import_line)
    if shuffle is not None:
        positional = 2 if len(call.args) > 2 else None
        yield DropArg(span, "shuffle", positional, LOADER_PARAMETERS[3 : len(call.args)] if positional else ())
    yield SetArg(span, "sampler", f"DistributedSampler({name}{options})")
    yield _IMPORT


def _seed(script: Script, loader: ast.Call) -> str:
    """Another seed is another order, as before: that of the loader's generator; the script's own, where it is set without condition and
    seen where the loader is built; else what torch is seeded with when the program comes here.
    """
    generator = script.argument(loader, "generator")
    if generator is not None and _plain(generator):
        return f"{script.ddp}.common_seed({script.text(generator)})"
    if isinstance(generator, ast.Call) and isinstance(generator.func, ast.Attribute) and generator.func.attr == "manual_seed" and generator.args:
        return script.text(generator.args[0])
    for call in script.calls("torch.manual_seed"):
        place, value = _brought(script, call, call.args[0] if call.args else None)
        here = script.names.function(place)
        if here is not script.names.function(loader) and not isinstance(here, ast.Module):
            continue
        if isinstance(value, ast.Constant) and isinstance(value.value, int) and not _conditional(script, place):
            return script.text(value) if not _seeded_elsewhere(script, place, loader) else f"{script.ddp}.common_seed()"
        base = value.value if isinstance(value, ast.Attribute) else value
        if isinstance(value, ast.Name | ast.Attribute) and isinstance(base, ast.Name) and not _conditional(script, place):
            owner, seen = (script.names.owner(script.names.scope_of[n], base.id) for n in (base, loader))
            late = here is script.names.function(loader) and position(place) > position(loader)
            known = owner is not None and not any(
                late and b.how != "param" and position(b.target) > position(loader) for b in script.names.bindings(script.names.scope_of[base], base.id)
            )
            if owner is seen and known:
                return script.text(value)
    return f"{script.ddp}.common_seed()"


def _seeded_elsewhere(script: Script, place: ast.Call, loader: ast.Call) -> bool:
    """Whether another file has set the seed before the loader is built: its number is not repeated here, where another script may want another one."""
    apart = script.program.part(script.span(place)) is not script.program.part(script.span(loader))
    return apart and script.values.order.when(loader, script.names.statement(place)) == "after"


def _brought(script: Script, call: ast.Call, value: ast.expr | None) -> tuple[ast.Call, ast.expr | None]:
    """The call that brings the seed, and the seed there, where a function of the file only hands its parameter on: ``set_seed(args.seed)``."""
    function = script.names.function(call)
    callers = script.values.callers.get(function, []) if isinstance(function, FunctionNode) else []
    if len(callers) != 1 or not isinstance(value, ast.Name) or not isinstance(function, FunctionNode) or _conditional(script, call):
        return call, value
    bound = list(script.names.bindings(script.names.scope_of[value], value.id))
    given = script.roles.passed(callers[0], function, value.id)
    return (callers[0], given) if [b.how for b in bound] == ["param"] and given is not None else (call, value)


def _conditional(script: Script, node: ast.AST) -> bool:
    return any(isinstance(a, ast.If | ast.Try | ast.For | ast.While) and not is_main_guard(a) for a in script.names.ancestors(node))


def _plain(node: ast.expr) -> bool:
    """An expression that may be evaluated twice: a name, an attribute, an item by a literal."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Attribute):
        return _plain(node.value)
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant | ast.Name) and _plain(node.value)
