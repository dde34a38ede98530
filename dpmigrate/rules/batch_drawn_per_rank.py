"""The program makes the batches that it trains on by itself, without a DataLoader: every rank would train on whole ones.

## What it finds
Training batches that are made without a DataLoader, of indices that are drawn for each step: `ix = torch.randint(len(data), (batch_size,))`,
`numpy.random.choice`, `random.sample`, the beginning of a `torch.randperm`. Either in the training loop, or in a function of the program that returns the
batch (`x, y = get_batch("train")`).

Training batches that are cut one after the other of what the program has: `x[i : i + n]` in a loop that counts by n, also of an order that is drawn before
(`x[order[i : i + n]]`), `order.split(n)`, lists of such batches, generators and classes of the program that hand them out, also such as count by themselves
(`self.at += n` in `__next__`), with `next(batches)`.

Statements of the training loop, and of the loops round it, that draw such batches to evaluate on: `losses = estimate_loss()`.

## Why it matters
With equal random streams all ranks would train on the same batch: as slow as one, with the same result. With streams of their own each would draw a
whole batch, so that the global batch grows with the number of ranks, and so would the number of samples that the learning rate stands for. And each rank
would evaluate on batches of its own, and might decide by them.

## Example
```python
for step in range(steps):
    if step % 100 == 0:
        losses = estimate_loss()
    x, y = get_batch("train")
    loss = model(x, y)
```
becomes
```python
for step in range(steps):
    if step % 100 == 0:
        with ddp.same_stream():
            losses = estimate_loss()
    with ddp.same_stream():
        x, y = ddp.local_rows(get_batch("train"))
    loss = model(x, y)
```

All ranks draw the batch that one process draws, and each trains on its rows of it. So the number of ranks has to divide the batch size of the program,
which stays the global one everywhere. Where the indices are drawn in the loop itself, a rank takes its part of them, before the samples are read.

A generator of the program (`generator=g`) is the same on all ranks where its seed is, and needs no `same_stream()`.

Batches that are cut are divided where they are cut, or where the loop has them, and the order of the samples or batches is drawn alike:
```python
order = torch.randperm(len(x))
for i in range(0, len(x), batch_size):
    part = order[i : i + batch_size]
    loss = model(x[part], y[part])
```
becomes
```python
with ddp.same_stream():
    order = torch.randperm(len(x))
for i in range(0, len(x), batch_size):
    part = ddp.local_rows(order[i : i + batch_size], pad=True)
    loss = model(x[part], y[part])
```
and `for x, y in batches:` gets `x, y = ddp.local_rows((x, y), pad=True)` as its first line. A batch that the ranks do not divide, as the last one, is filled
up from its beginning, as `DistributedSampler` fills up an epoch.

## When it is not fixed
Where slices overlap, or something else in the step goes with the whole batch (`torch.randn(batch_size, 3)`, `y[i]` beside `x[i : i + n]`, slices that
are written to): DPM901, as where a step goes by the number of a batch's samples (`if len(x) < batch_size: continue`, `correct / batch_size`), or
chooses of data that are made anew while training runs. A function that makes batches is known if all that it returns is made of the drawn indices row
by row: `torch.stack([data[i : i + n] for i in ix])`, `data[ix]`, moved or converted. Of other functions, of draws along several axes (`size=(8, 4)`)
and of indices that go on from step to step it is not known which rows are a sample's: DPM901. Where the samples that are drawn from are changed while
training runs (a replay memory), it is refused: what each rank puts there may be its own. Where the training draws more than its samples and noise for
each element (`torch.randn_like`), as flips, a domain for the batch or pairs of columns, it is refused, and so are draws from a generator of the
program that not all ranks come to. With `--batch per-rank` it is refused, since a rank's own batches would be drawn otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Enclose, First, Hoist, Wrap
from dpmigrate.facts.drawn_beside import drawn_beside
from dpmigrate.facts.drawn_rows import own_generator
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.orders import drawn_for
from dpmigrate.facts.picked import Pick, makes_batches
from dpmigrate.facts.randomness import draws, own_stream
from dpmigrate.facts.redrawn import Redrawn
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM224", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def batch_drawn_per_rank(script: Script) -> Iterator[Hit]:
    loops = [b for b in script.roles.train_loops if b.picked]
    for pick in {p.rows: p for b in loops for p in b.picked}.values():
        if not pick.done:
            yield _cut(script, pick) if pick.cut else _shared(script, pick)
    orders = {found.node: found for b in loops for found in drawn_for(script, b)}
    yield from (_order(script, found) for found in orders.values())
    beside = dict.fromkeys(d for b in loops if not all(p.done for p in b.picked) for d in drawn_beside(script, b) if _matters(script, b, d))
    for call in beside:
        words = "the program draws the samples of its batches by itself, and this besides: whether all ranks have to draw the same here is not known"
        advice = "draw it in the __getitem__ of a Dataset, and loop over a DataLoader of it"
        yield Hit(call, words, severity=Severity.BLOCKER, advice=advice)
    evaluating = dict.fromkeys(s for b in loops for s in _evaluating(script, b) if s not in orders)
    for stmt in evaluating:
        words = "this draws the samples that it evaluates on: every rank would evaluate on others"
        yield Hit(stmt, words, (_alike(script, stmt), AddImport(script.import_line)))


def _matters(script: Script, loop: BatchLoop, draw: ast.Call) -> bool:
    """Whether a draw besides the samples is to be the same on all ranks for certain: beside batches that are cut, as beside those of a loader, from a
    generator of the program alone, which may draw their order too.
    """
    return not all(p.cut for p in loop.picked) or own_stream(script.roles, draw)


def _shared(script: Script, pick: Pick) -> Hit:
    """The batch, or the indices, drawn alike, and the rank's rows of it."""
    message = "the samples of each batch are drawn here: every rank would train on a whole batch"
    if pick.grown is not None:
        words = f"the samples of each batch are drawn from what is changed while training runs ({script.where(pick.grown)}): each rank may have others"
        advice = "collect the samples before the training; in reinforcement learning the loop has to be written for DistributedDataParallel by hand"
        return Hit(pick.rows, words, severity=Severity.BLOCKER, advice=advice)
    if script.settings.batch != "global":
        advice = "leave --batch out: all ranks draw the batch of one process, and each trains on its rows of it"
        return Hit(pick.rows, f"{message}, and with --batch per-rank it is not divided", severity=Severity.BLOCKER, advice=advice)
    span = script.span(pick.rows)
    edits: list[Edit] = [Wrap(span, f"{script.ddp}.local_rows({{}})"), AddImport(script.import_line)]
    if draws(script.roles, pick.rows) and not own_generator(script.roles, pick.rows):
        alone = pick.called or (isinstance(pick.stmt, ast.Assign) and pick.stmt.value is pick.rows)
        header = f"with {script.ddp}.same_stream():"
        edits.append(_alike(script, pick.stmt) if alone else Hoist(span, script.fresh("drawn"), header=header))
    return Hit(pick.rows, message, tuple(edits))


def _cut(script: Script, pick: Pick) -> Hit:
    """The batch that is cut, or that a loop has, and the rank's rows of it."""
    message = "the program cuts its batches by itself: every rank would train on whole ones (one that the ranks do not divide is filled up from its beginning)"
    if script.settings.batch != "global":
        advice = "leave --batch out: all ranks have the batch of one process, and each trains on its rows of it"
        return Hit(pick.rows, f"{message}, and with --batch per-rank it is not divided", severity=Severity.BLOCKER, advice=advice)
    if pick.each is None:
        return Hit(pick.rows, message, (Wrap(script.span(pick.rows), f"{script.ddp}.local_rows({{}}, pad=True)"), AddImport(script.import_line)))
    target = script.text(pick.each)
    named = target.strip("()") if isinstance(pick.each, ast.Tuple) else target
    given = f"({named})" if isinstance(pick.each, ast.Tuple) else named
    code = f"{named} = {script.ddp}.local_rows({given}, pad=True)"
    return Hit(pick.rows, message, (First(script.span(pick.stmt), code), AddImport(script.import_line)))


def _order(script: Script, found: Redrawn) -> Hit:
    """What draws the order of the samples, or of the batches."""
    message = "the order of the samples is drawn here: every rank would have its own"
    if found.why:
        advice = f"draw it in a statement of its own that every rank comes to, under with {script.ddp}.same_stream():"
        return Hit(found.node, f"{message}, and {found.why}", severity=Severity.BLOCKER, advice=advice)
    header = f"with {script.ddp}.same_stream():"
    edit = _alike(script, found.node) if isinstance(found.node, ast.stmt) else Hoist(script.span(found.node), script.fresh("drawn"), header=header)
    return Hit(found.node, message, (edit, AddImport(script.import_line)))


def _alike(script: Script, stmt: ast.stmt) -> Edit:
    return Enclose(script.span(stmt), script.span(stmt), f"with {script.ddp}.same_stream():")


def _evaluating(script: Script, loop: BatchLoop) -> Iterator[ast.stmt]:
    """The statements of a training loop and of those round it that draw batches, without training on them."""
    roles = script.roles
    around = [loop.node, *script.repeating_loops]
    trained = {p.stmt for p in loop.picked}
    for stmt in (s for a in around for s in _statements(script, a.body)):
        if stmt in trained or roles.reaches_backward(stmt) or _is_alike(script, stmt):
            continue
        if draws(roles, stmt) and makes_batches(roles, stmt):
            yield stmt


def _statements(script: Script, block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The simple statements of a block and of the tests in it; loops that train nothing, as a whole."""
    for stmt in block:
        if isinstance(stmt, ast.If):
            yield from _statements(script, stmt.body)
            yield from _statements(script, stmt.orelse)
        elif isinstance(stmt, ast.With) and not _is_alike(script, stmt):
            yield from _statements(script, stmt.body)
        elif isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.For | ast.While):
            yield stmt


def _is_alike(script: Script, stmt: ast.stmt) -> bool:
    """Whether all ranks draw the same in a statement already."""
    around = (stmt, *script.names.ancestors(stmt, below=script.names.function(stmt)))
    items = (i.context_expr for a in around if isinstance(a, ast.With) for i in a.items)
    return any(isinstance(e, ast.Call) and script.text(e.func) == f"{script.ddp}.same_stream" for e in items)
