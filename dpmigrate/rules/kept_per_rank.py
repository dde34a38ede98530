"""Training keeps something of its batches that every rank would keep of its own part.

## What it finds
What a training step writes into something that lives longer than the step, from its batch: a table by sample (`history[idx] = losses.detach()`, also of an
object, a loss module or a data set; also by `update`, `add` and `setdefault(…).append`, in dicts, sets, counters and lists by sample), centres of classes
(`centers[c] = 0.9 * centers[c] + 0.1 * z[y == c].mean(0)`), a queue of past features, a value that moves on with each batch
(`ema = 0.9 * ema + 0.1 * loss.item()`).

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
and what is a mean over the batch `ddp.mean_all(…)`, where it is stored or added.

## When it is not fixed
Always. It is a refusal where training reads the table again; a warning where it is a queue, which then holds a rank's samples only, or where the table is
only shown or saved after the loop. Tables that an evaluation fills need nothing: it sees the whole set on every rank. What a step makes anew is not meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.kept import Kept, Kind, kept
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule

_GATHER = "give it the rows of all ranks: ddp.gather_all(…) round what chooses the elements and round what is written"
_ADVICE = {
    Kind.TABLE: _GATHER,
    Kind.ROWS: _GATHER,
    Kind.MOVING: "let it move by the whole batch: ddp.mean_all(…) round what the batch gives",
}


@rule("DPM332", severity=Severity.BLOCKER)
def kept_per_rank(script: Script) -> Iterator[Hit]:
    for k in kept(script):
        yield Hit(k.node, _said(k), advice=_ADVICE[k.kind], severity=Severity.BLOCKER if k.used and k.kind is not Kind.ROWS else Severity.WARNING)


def _said(k: Kept) -> str:
    if not k.used:
        return f"{k.name} is filled from the samples and read later: it would hold rank 0's part of them"
    return f"{k.name} is taken to carry values of one batch into later training steps: every rank would have its own, of its part of each batch"
