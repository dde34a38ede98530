"""The epoch loop does not tell the sampler which epoch it is.

## What it finds
The loop that repeats the training loop, whatever its variable is called, over functions and methods.

## Why it matters
A DistributedSampler shuffles with seed + epoch. torch's has the order of the first epoch in all of
them without `set_epoch`. `ddp.DistributedSampler` goes on to the next order by itself; told the
epoch, it has the order of that epoch also in a training that is resumed there.

## Example
```python
for epoch in range(epochs):
    train(model, loader)
```
becomes
```python
for epoch in range(epochs):
    loader.sampler.set_epoch(epoch)
    train(model, loader)
```

Where batches are taken with `next()`, no loop counts the epochs; each new pass gets its order where it begins:
```python
try:
    batch = next(it)
except StopIteration:
    it = iter(ddp.next_epoch(loader))
    batch = next(it)
```
So it does where the loop over epochs has no counter, or does not see the loader; also where a bar round the loader is made before each pass
(`with tqdm(ddp.next_epoch(loader)) as bar:`).

Where the loop goes over an object of the program that holds the loader, and hands its batches on one by one (moved to the device), the passes are counted in
the class: `for batch in ddp.next_epoch(self.loader):`. Where objects of that class serve evaluations, too, the sampler is told in the loop over epochs:
`data.loader.sampler.set_epoch(epoch)`.

Where two training loops go through one loader in an epoch, or one does for several models, each pass is counted by
`ddp.next_epoch(loader)`. So it is where a loop over stages goes round that over epochs, whose counter begins anew, and in a file that
scripts import which stay as they are: their loaders have no such sampler.

## When it is not fixed
When nothing in the program is seen to come to the training loop. Where one loop goes through a shuffled loader twice at once (`zip(loader, loader)`):
both passes would have one order, and every sample would meet itself. That is refused.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import replace

from dpmigrate.edit import AddImport, Before, Edit, First, Wrap
from dpmigrate.facts.division import is_generator
from dpmigrate.facts.loops import BatchLoop, endless, last, restarts
from dpmigrate.facts.names import Loop, position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import EpochPlace, Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM205", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def missing_set_epoch(script: Script) -> Iterator[Hit]:
    for b in script.roles.train_feeds:
        if b.picked:
            continue  # the program draws each batch by itself
        if _twice_at_once(script, b):
            yield Hit(
                b.over, "two passes over one loader at once would have the same order: every sample would meet itself", severity=Severity.BLOCKER,
                advice="build a second DataLoader over the same data set for one of them",
            )  # fmt: skip
        if b.drawn is not None or endless(script.roles, b):
            yield from _drawn(script, b)
            if b.drawn is None and _or_plain(script, b):
                yield _counted_by_itself(script, b)
            continue
        if b.inside is not None:
            if (seen := list(_of_its_object(script, b))):
                yield from seen
                continue
            edit = Wrap(script.span(b.inside), f"{script.ddp}.next_epoch({{}})")
            yield Hit(b.inside, "the sampler is not told that each pass here is a new one", (edit, AddImport(script.import_line)))
            continue
        places = script.epoch_places(b)
        if not places and not script.starts(b.node):
            yield Hit(
                b.node, "set_epoch is needed in the loop that repeats this one, but nothing in this program is seen to come here", severity=Severity.BLOCKER,
                advice="call the function that holds this loop by its name, from the loop over epochs",
            )  # fmt: skip
        if any(epoch_counter(script, p.loop) is None or p.loader is None or _begins_anew(script, p) for p in places) or _again(script, b):
            yield _counted_by_itself(script, b)
            continue
        for place in places:
            yield _told(script, place)


def _of_its_object(script: Script, loop: BatchLoop) -> Iterator[Hit]:
    """Of a loader that the loop over epochs finds in the object of the training, ``data.loader``, whose class makes those of evaluations, too."""
    places = [replace(p, loader=f"{p.loader}.{loop.inside.attr}") for p in script.epoch_places(loop) if p.loader is not None and loop.inside is not None]
    counted = all(epoch_counter(script, p.loop) is not None and not _begins_anew(script, p) and not script.shared(p.loop) for p in places)
    if loop.apart and counted and len(places) == len(script.epoch_places(loop)) and not _again(script, loop):
        yield from (_told(script, p) for p in places)


def _told(script: Script, place: EpochPlace) -> Hit:
    """The sampler is told in the loop over epochs; where other scripts run that loop too, with loaders that have no such sampler, by ``next_epoch``."""
    shared = script.shared(place.loop)
    code = f"{script.ddp}.next_epoch({place.loader})" if shared else f"{place.loader}.sampler.set_epoch({epoch_counter(script, place.loop)})"
    edits: list[Edit] = [Before(script.span(place.inner), code) if place.made_inside else First(script.span(place.loop), code)]
    edits += [AddImport(script.import_line)] * shared
    return Hit(place.loop, f"the sampler is not told which epoch it is: {code} is missing", tuple(edits))


def _twice_at_once(script: Script, loop: BatchLoop) -> bool:
    """Whether the loop takes batches from this loader in another place as well, and they are shuffled."""
    if not any(v.node in script.seeds.drawing for v in loop.loaders):
        return False
    held = {k for k, _ in script.roles.roots(loop.source)}  # one call may make several loaders
    earlier = script.roles.train_feeds[: script.roles.train_feeds.index(loop)]
    return any(o.node is loop.node and o.loaders & loop.loaders and held & {k for k, _ in script.roles.roots(o.source)} for o in earlier)


def _again(script: Script, loop: BatchLoop) -> bool:
    """Whether another training loop, or this one once more, goes through the loader in the same epoch: a counter of epochs would give both passes one order."""
    apart = script.values.order.other_branch
    if any(not apart(a, script.names.statement(b)) for place in script.epoch_places(loop) for a, b in itertools.combinations(place.passes, 2)):
        return True
    repeats = {place.loop for place in script.epoch_places(loop)}
    for other in script.roles.train_feeds:
        if other.node is not loop.node and other.drawn is None and other.loaders & loop.loaders:
            same = {place.loop for place in script.epoch_places(other)}
            if not apart(loop.node, other.node) and (repeats & same or repeats == same) and script.names.is_inside(loop.source, loop.node):
                return True
    return False


def _begins_anew(script: Script, place: EpochPlace) -> bool:
    """Whether a loop round that over epochs, as over stages of a training, comes to the same loader with a counter that begins anew."""
    counter = epoch_counter(script, place.loop)
    if isinstance(place.loop, ast.While):
        given = [n for a in place.again for n in walk(a) if isinstance(n, ast.Assign) and not script.names.is_inside(n, place.loop)]
        return any(ast.unparse(t) == counter for n in given for t in n.targets)
    calls = [n for n in walk(place.loop.iter) if isinstance(n, ast.Call) and last(n.func) in _COUNTING]
    return bool(place.again) and all(len(c.args) < 2 or isinstance(c.args[0], ast.Constant) for c in calls)


def _or_plain(script: Script, loop: BatchLoop) -> bool:
    """Whether a loop over a generator without end may go over the loader itself as well: ``if steps is None: loader = endless(loader)``."""
    if not isinstance(loop.source, ast.Name | ast.Attribute):
        return False
    given = [e for e in script.roles.given(loop.source) if script.roles.loaders_of(e) & loop.loaders]
    generators = [e for e in given if isinstance(e, ast.Call) and is_generator(script.values, e)]
    return bool(generators) and len(given) > len(generators)


def _counted_by_itself(script: Script, loop: BatchLoop) -> Hit:
    """Where the loop over epochs has no counter or does not see the loader: the passes are counted where they begin."""
    if not script.names.is_inside(loop.source, loop.node) and not _before_each_pass(script, loop):
        return Hit(
            loop.node, "set_epoch is needed for each pass, but the loop over epochs has no counter or does not see the loader", severity=Severity.BLOCKER,
            advice="count the epochs in a variable of the loop, and keep the training loader in a variable that it sees",
        )  # fmt: skip
    edit = Wrap(script.span(loop.source), f"{script.ddp}.next_epoch({{}})")
    return Hit(loop.node, "the sampler is not told that each loop here is a new pass", (edit, AddImport(script.import_line)))


def _before_each_pass(script: Script, loop: BatchLoop) -> bool:
    """Whether what the loop goes over is made for this pass: ``with tqdm(loader) as bar: for batch in bar``."""
    names = script.names
    if names.function(loop.source) is not names.function(loop.node) or position(loop.source) > position(loop.node):
        return False
    return all(names.is_inside(loop.source, a) for a in names.ancestors(loop.node) if isinstance(a, ast.For | ast.AsyncFor | ast.While))


def _drawn(script: Script, loop: BatchLoop) -> Iterator[Hit]:
    """Batches taken with ``next()``, or from a generator without end: every new pass gets its order where it begins."""
    for place in restarts(script.roles, loop):
        message = "the sampler is not told that a new pass begins here"
        edit: Edit = Wrap(script.span(place.loader), f"{script.ddp}.next_epoch({{}})")
        yield Hit(place.stmt, message, (edit, AddImport(script.import_line)))


def epoch_counter(script: Script, loop: Loop) -> str | None:
    """The name that counts the turns: the target of ``for`` over a range, the index of ``enumerate``, what a ``while`` adds one to."""
    if isinstance(loop, ast.While):
        for n in walk(loop):
            if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add) and isinstance(n.value, ast.Constant) and n.value.value == 1:
                used = {ast.unparse(x) for x in walk(loop.test) if isinstance(x, ast.Name | ast.Attribute)}
                if ast.unparse(n.target) in used:
                    return ast.unparse(n.target)
        return None
    target = loop.target
    if isinstance(target, ast.Tuple) and isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "enumerate":
        target = target.elts[0]
        return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute) else None
    return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute) and _numbers(script, loop.iter) else None


def _numbers(script: Script, node: ast.expr) -> bool:
    """Whether a loop over the expression counts: over a range, in a progress bar and through a name as well, and not over loaders, names or rates."""
    if isinstance(node, ast.Name):
        bound = list(script.names.bindings(script.names.scope_of[node], node.id))
        return len(bound) == 1 and bound[0].how in ("assign", "with") and isinstance(bound[0].value, ast.Call) and _numbers(script, bound[0].value)
    if not isinstance(node, ast.Call):
        return False
    called = script.names.dotted(node.func).rsplit(".", 1)[-1] or last(node.func)
    return called in _COUNTING or (bool(node.args) and called not in ("enumerate", "zip") and _numbers(script, node.args[0]))


_COUNTING = frozenset({"range", "trange", "tnrange", "count", "arange", "prange", "mrange"})
