"""The program picks the samples of each batch at random by itself: every rank would draw, and train on, batches of its own.

## What it finds
Training batches that are made without a DataLoader, of indices that are drawn for each step: `ix = torch.randint(len(data), (batch_size,))`,
`numpy.random.choice`, `random.sample`, the beginning of a `torch.randperm`. Either in the training loop, or in a function of the program that returns the
batch (`x, y = get_batch("train")`).

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

## When it is not fixed
A function that makes batches is known if all that it returns is made of the drawn indices row by row: `torch.stack([data[i : i + n] for i in ix])`,
`data[ix]`, moved or converted. Of other functions, of draws along several axes (`size=(8, 4)`) and of indices that go on from step to step it is not known
which rows are a sample's: DPM901. Where the samples that are drawn from are changed while training runs (a replay memory), it is refused: what each rank
puts there may be its own. Where the training draws more than its samples and noise for each element (`torch.randn_like`), as flips, a domain for the
batch or pairs of columns, it is refused, and so are draws from a generator of the program that not all ranks come to. With `--batch per-rank` it is
refused, since a rank's own batches would be drawn otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport, Edit, Enclose, Hoist, Wrap
from dpmigrate.facts.drawn_beside import drawn_beside
from dpmigrate.facts.drawn_rows import own_generator
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.picked import Pick, makes_batches
from dpmigrate.facts.randomness import draws
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM224", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def batch_drawn_per_rank(script: Script) -> Iterator[Hit]:
    loops = [b for b in script.roles.train_loops if b.picked]
    for pick in {p.rows: p for b in loops for p in b.picked}.values():
        if not pick.done:
            yield _shared(script, pick)
    beside = dict.fromkeys(d for b in loops if any(not p.done for p in b.picked) for d in drawn_beside(script, b))
    for call in beside:
        words = "the program draws the samples of its batches by itself, and this besides: whether all ranks have to draw the same here is not known"
        advice = "draw it in the __getitem__ of a Dataset, and loop over a DataLoader of it"
        yield Hit(call, words, severity=Severity.BLOCKER, advice=advice)
    evaluating = dict.fromkeys(s for b in loops for s in _evaluating(script, b))
    for stmt in evaluating:
        words = "this draws the samples that it evaluates on: every rank would evaluate on others"
        yield Hit(stmt, words, (_alike(script, stmt), AddImport(script.import_line)))


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
