"""The training loop does not go through a DataLoader.

## What it finds
A `backward()` that no `for … in loader` over a DataLoader of this program reaches, and what feeds it instead: batches cut from tensors, all samples at
once, samples that the program makes, a stream of another library or of a class of the file (but for one that
holds a DataLoader and hands its batches on one by one, to training alone), a state that goes on from batch to batch, a loader that
code outside of the program makes or that nothing gives a value.

A step of the optimizer in a loop over parts of a batch (`for part in batch:`).

## Why it matters
Data parallelism means that the ranks train on different samples. Where the samples come from a DataLoader, a sampler divides them; where
they are cut by hand, each rank can take its rows of every batch (DPM224), if it is seen where the batches end and that nothing else in the step goes with
the whole of one.
A state that goes on from batch to batch belongs to the samples of one rank only.

## Example
```python
for i in range(0, len(x), batch_size):
    noise = torch.randn(batch_size, 3)
    loss = criterion(model(x[i : i + batch_size], noise), y[i : i + batch_size])
```
can be migrated after it is written as
```python
loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
for xb, yb in loader:
    noise = torch.randn(len(xb), 3)
    loss = criterion(model(xb, noise), yb)
```

## When it is not fixed
Always: it is a refusal. The report says what was found instead, and gives the lines of the loader where the batches are cut from tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.facts.cuts import in_the_way
from dpmigrate.facts.definitions import through
from dpmigrate.facts.feeds import Cut, Feed, behind, counts, feed, short
from dpmigrate.facts.loops import rounds
from dpmigrate.facts.names import FunctionNode, Loop
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM901", severity=Severity.BLOCKER)
def no_training_loop(script: Script) -> Iterator[Hit]:
    if script.entry is None:
        return  # what trains here is put together elsewhere: DPM909 says so
    roles = script.roles
    reached = {id(b) for loop in roles.train_loops for b in script.loop_backwards(loop)}
    lost = [b for b in roles.backwards if id(b) not in reached]
    if lost:
        yield _hit(script, lost)
        return
    for loop in roles.train_loops:
        if any(isinstance(a, ast.While | ast.For) and any(o.node is a for o in roles.batch_loops) for a in script.names.ancestors(loop.node)):
            yield Hit(loop.node, "this training loop stands inside another loop over a DataLoader", advice="train in one loop over one loader")
        for inner in (n for n in walk(loop.node) if isinstance(n, ast.For) and n is not loop.node):
            if _steps_inside(script, inner) and _goes_over_batch(inner, loop.node):
                yield Hit(
                    inner, f"the optimizer steps on parts of a batch, {short(inner.iter)}: of a rank's smaller batch these would be other parts, or fewer",
                    advice="let the DataLoader make the batches that are stepped on",
                )  # fmt: skip


def _steps_inside(script: Script, loop: ast.For) -> bool:
    """Whether every turn of the loop has a backward and clears the gradients: it steps; chunks of one step do not clear them."""
    calls = [n.func.attr for n in walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return "zero_grad" in calls and any(script.names.is_inside(b, loop) for b in script.roles.backwards)


def _goes_over_batch(inner: ast.For, loop: Loop) -> bool:
    """Whether the inner loop goes over what the outer one takes from the loader."""
    if isinstance(loop, ast.While):
        return False
    target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call) else loop.target
    batch = {n.id for n in walk(target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in batch for n in walk(inner.iter))


_OF_A_WHOLE = (
    "what is trained on one whole cannot be dealt out to ranks; train on samples of it, as torch_geometric.loader.NeighborLoader and dgl.dataloading give "
    "them, in a loop over such a loader that is written for DistributedDataParallel by hand, or leave the program on one GPU"
)
#: for each kind of feed what is wrong with it and what its author can do
_SAID = {
    "state": (
        "{what} is carried from one batch to the next, so the batches cannot be dealt out to ranks",
        "begin every batch with a fresh state and make the sequences samples of a Dataset; if the state has to go on, each rank needs streams of its own, "
        "and the loop is written for DistributedDataParallel by hand",
    ),
    "library": ("the loop goes over {what}, batches of {by}, which no DistributedSampler divides", ""),
    "own": (
        "the loop goes over {what}, an object of {by}, and not over a DataLoader itself{beside}",
        "loop over the DataLoader, and do in the loop what {by} does with each batch",
    ),
    "misnamed": (
        "the loop goes over {what}, and torch has no {by}: the program ends where that is imported or read",
        "from torch.utils.data import DataLoader",
    ),
    "chained": (
        "the loop goes over several loaders end to end, {what}",
        "write two loops, one over the loaders and one over the batches of each, or one DataLoader over a ConcatDataset",
    ),
    "chosen": (
        "the loop goes over {what}, which leaves out batches of a loader or turns them round, and may do so differently on every rank",
        "loop over the loader itself; its first n batches are itertools.islice(loader, n)",
    ),
    "made": ("the program makes its samples itself, by {made}{beside}", "make one sample in the __getitem__ of a Dataset, and loop over a DataLoader of it"),
    "drawn": (
        "each batch comes from {what}, which code outside of this program draws by itself",
        "give what it does for one sample to the __getitem__ of a Dataset, and loop over a DataLoader of it",
    ),
    "unassigned": (
        "the loop goes over {what}, which nothing in this program gives a value",
        "make the training loader in this program; a program that only evaluates needs no migration",
    ),
    "unseen": (
        "each batch is the next one of {what}, and it is not seen that this is a DataLoader",
        "if it is one, give it a variable of its own; several loaders are seen in [DataLoader(…) for … in …], or in a list that is filled by append",
    ),
    "uncalled": (
        "nothing in this program calls {what}",
        "call it in this program, with a DataLoader that the program makes; what this program does not use, take out",
    ),
    "ungiven": (
        "the loop goes over {what}, a parameter of {by} that this call of it does not give",
        "give it the DataLoader of the training data: as it stands, Python stops there",
    ),
    "gathered": (
        "each step goes over {what} in a loop of its own, and trains on all the batches that it takes there at once",
        "make them one batch of a DataLoader, or accumulate gradients: backward() for each of these batches, in that loop",
    ),
    "elsewhere": (
        "the loop goes over {what}, and nothing says that what {by} makes is a DataLoader",
        "if it is one, call it train_loader, or make it in this program",
    ),
    "cut": ("the batches are cut from {tensors} by hand, {what}{beside}", "write {loader} before the loop, and {loop} in place of what cuts"),
    "whole": (
        "every step trains on all of {tensors} at once",
        "write {loader} before the loop, and {loop} round the step: one global batch, of which each rank takes a part",
    ),
    "parts": (
        "every step runs the model on all of {what} at once, and the loss takes {by} of what it makes: parts of one whole, as the nodes of a graph",
        _OF_A_WHOLE,
    ),
    "graph": ("every step runs the model on all of {what} at once, with {by}: parts of one whole, as the nodes of a graph", _OF_A_WHOLE),
    "unknown": (
        "{instead}",
        "put the data into a Dataset and loop over a DataLoader of it: for batch in DataLoader(TensorDataset(x, y), batch_size=…, shuffle=True)",
    ),
}
#: what the libraries' own users do about it
_LIBRARIES = {
    "torchtext": "put the examples into a list, and loop over a DataLoader of it with a collate_fn that makes the batch",
    "webdataset": "shards are dealt out by wds.split_by_node: write the loop for DistributedDataParallel by hand, with a fixed number of steps for each rank",
    "DALI": "give the pipeline's reader shard_id and num_shards, and write the loop for DistributedDataParallel by hand",
    "tf.data": "dataset.shard(num_shards, index) deals out the samples: write the loop for DistributedDataParallel by hand, or make a torch Dataset of them",
    "FFCV": "give its Loader distributed=True, and write the loop for DistributedDataParallel by hand",
}


def _hit(script: Script, lost: list[ast.Call]) -> Hit:
    used = [b for b in lost if _is_used(script, b)] or lost
    backward = next((b for b in used if _is_stepped(script, b)), used[0])
    found = feed(script.roles, backward)
    words, advice = _SAID[found.kind]
    if found.kind == "library":
        advice = _LIBRARIES.get(found.by, f"make a torch Dataset of what {found.by} reads, and loop over a DataLoader of it")
    given = {
        "what": found.what,
        "by": found.by,
        "made": f"{found.by}()" if found.by else found.what,
        "instead": _instead(script, backward),
        "beside": _beside(script, backward),
        **(_lines(found.cut) if found.cut is not None else {}),
    }
    return Hit(backward, f"no DataLoader is seen to feed this step: {words.format(**given)}{_place(script, found, backward)}", advice=advice.format(**given))


def _is_used(script: Script, backward: ast.Call) -> bool:
    """Whether the function of a backward, if there is one, is named anywhere: where there are several, one that nothing uses is not the one to speak of."""
    function = script.names.function(backward)
    if not isinstance(function, FunctionNode):
        return True
    method = script.names.cls(function) is not None
    named = script.names.attributes(function.name) if method else script.names.reads(function.name)
    return bool(script.values.callers.get(function) or named) or function.name in ("forward", "__call__")


def _made_of(script: Script, node: ast.expr) -> str:
    """What the variable is made of that a loop goes over, where that stands elsewhere."""
    while (inner := through(script.names, node)) is not None:
        node = inner
    found = behind(script.roles, node)
    return f"; {short(node)} is {short(found)} ({script.where(found)})" if found is not node else ""


def _is_stepped(script: Script, backward: ast.Call) -> bool:
    """Whether an optimizer steps beside it: an attack or a penalty only asks for gradients."""
    function = script.names.function(backward)
    return any(script.names.function(c) is function for c in script.names.calls("step"))


def _lines(cut: Cut) -> dict[str, str]:
    """The two lines that take the place of batches that are cut by hand."""
    tensors = " and ".join(t.removeprefix("torch.as_tensor(").removesuffix(")") if t.startswith("torch.as_tensor(") else t for t in cut.tensors)
    order = ", shuffle=True" if cut.shuffled else ""
    loader = f"loader = DataLoader(TensorDataset({', '.join(cut.tensors)}), batch_size={cut.batch_size or '…'}{order})"
    variables = ", ".join(cut.variables) if len(cut.variables) > 1 else f"({cut.variables[0]},)"
    return {"tensors": tensors, "loader": f"`{loader}`", "loop": f"`for {variables} in loader:`"}


def _beside(script: Script, backward: ast.Call) -> str:
    """What keeps the batches from being divided where they are cut."""
    around = list(rounds(script.roles, backward))
    found = next((n for loop in around if (n := in_the_way(script.roles, loop, around)) is not None), None)
    if found is None:
        return ""
    node, anew = found
    why = "takes its samples of data that are made anew while training runs, of which each rank may have others" if anew else "may go with the whole batch"
    return f", and {short(node)} ({script.where(node)}) {why}"


def _place(script: Script, found: Feed, backward: ast.Call) -> str:
    place = script.where(found.node)
    return f" ({place})" if place != script.where(backward) else ""


def _instead(script: Script, backward: ast.Call) -> str:
    loop = next(rounds(script.roles, backward), None)
    if isinstance(loop, ast.For | ast.AsyncFor):
        if counts(script.roles, loop.iter):
            return f"the loop over {short(loop.iter)} counts steps, and it is not seen where each of them has its samples from"
        corner = script.values.lookups.behind(loop.iter)
        by_name = f", which is found by {corner} when the program runs," if corner else ""
        return f"it is not seen that {short(loop.iter)}{by_name} gives the batches of a DataLoader{_made_of(script, loop.iter)}"
    return "it is not seen where the while loop has its batches from" if loop is not None else "it stands in no loop"
