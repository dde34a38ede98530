"""Training keeps something of its batches that every rank would keep of its own part.

## What it finds
What a training step writes into something that lives longer than the step, from its batch: a table by sample (`history[idx] = losses.detach()`, also of an
object, a loss module or a data set; also by `update`, `add` and `setdefault(…).append`, in dicts, sets, counters and lists by sample), centres of classes
(`centers[c] = 0.9 * centers[c] + 0.1 * z[y == c].mean(0)`), a queue of past features, a value that moves on with each batch
(`ema = 0.9 * ema + 0.1 * loss.item()`).

And numbers of a batch by which training goes after its step, or beside its loss, whatever keeps them: an object, a dict, a closure, a history, an attribute
of a class. They weigh the next losses, move the strength of an augmentation, set a learning rate, bound gradients, or decide whether a step trains.

## Why it matters
Each rank sees its part of the samples alone. Where a later step reads the table again, in its loss or for the choice of samples, every rank trains by
another one, with old or empty entries for the samples of the others. The numbers are wrong, and nothing reports it.

## Example
```python
history[idx] = losses.detach()
```
has to become
```python
history[ddp.gather_all(idx)] = ddp.gather_all(losses.detach())
```
and is refused as it is. A number that is a mean over the batch becomes that of the global batch where it is made:
```python
augment.update(torch.sign(d_real).mean().item())
```
becomes
```python
augment.update(ddp.mean_all(torch.sign(d_real).mean().item()))
```
and one that is a sum `ddp.sum_all(…)`.

## When it is not fixed
Tables and queues are not, nor what moves by numbers that are no mean and no sum over the samples (a maximum, a norm, a deviation).
It is a refusal where training reads the table again; a warning where it is a queue, which then holds a rank's samples only, or where the table is
only shown or saved after the loop. Tables that an evaluation fills need nothing: it sees the whole set on every rank. What a step makes anew is not meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport
from dpmigrate.facts.kept import Kept, Kind, kept
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import whole

_GATHER = "give it the rows of all ranks: ddp.gather_all(…) round what chooses the elements and round what is written"
_ADVICE = {
    Kind.TABLE: _GATHER,
    Kind.ROWS: _GATHER,
    Kind.MOVING: "let it move by the whole batch: ddp.mean_all(…) round what the batch gives",
}


@rule("DPM332", severity=Severity.ERROR, fix=Fix.SAFE)
def kept_per_rank(script: Script) -> Iterator[Hit]:
    for part in script.moving.parts:
        edits = whole(script, [part]) or []
        words = f"training goes by {script.text(part.node)} beside the loss of its step: every rank would have that of its part of the batch"
        yield Hit(part.node, words, (*edits, AddImport(script.import_line)), severity=Severity.ERROR)
    for k in kept(script):
        if k.used and k.kind is not Kind.TABLE and k.by and all(map(script.moving.alike, k.by)):
            continue  # it moves alike on all ranks then
        yield Hit(k.node, _said(k), advice=_ADVICE[k.kind], severity=Severity.BLOCKER if k.used and k.kind is not Kind.ROWS else Severity.WARNING)


def _said(k: Kept) -> str:
    if not k.used:
        return f"{k.name} is filled from the samples and read later: it would hold rank 0's part of them"
    return f"{k.name} is taken to carry values of one batch into later training steps: every rank would have its own, of its part of each batch"
