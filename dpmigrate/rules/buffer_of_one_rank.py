"""A buffer collects samples, but only rank 0's copy lasts, or every rank's its own.

## What it finds
A registered buffer that a method of the model, or of a loss module beside it, gives something of the batch: a queue of keys
(`self.queue[:, i:j] = keys.t()`), running statistics of its own (`self.mean = 0.9 * self.mean + 0.1 * x.mean(0)`), a centre, a count of samples
(`self.seen += len(x)`); a bank that an autograd function of the program brings up to date (`memory.index_copy_(0, y, x)` in its `backward`). And one
that the execution of the result shows to be written under another name (`part = self.proto[0]`, then `part += z.mean(0)`) or by
the training itself (`model.proto += x.mean(0)`): of these `apply` speaks, not `check`.

## Why it matters
DistributedDataParallel copies rank 0's buffers to all ranks at every forward in training. What the other ranks have written is lost: the queue holds
rank 0's samples alone, the count is the world size times too small, and nothing reports it. The buffers of a loss module are copied by nobody: each rank
has its own, and trains by it. Counting steps is the same on every rank and right.

## Example
```python
self.center = self.center * 0.9 + teacher.mean(0) * 0.1
```
has to become
```python
self.center = self.center * 0.9 + ddp.mean_all(teacher.mean(0)) * 0.1
```
a count `ddp.sum_all(x.size(0))`, and a queue gets the keys of all ranks (`ddp.gather_all(keys)`).

## When it is not fixed
Always. For a program of one device it is a refusal. Under DataParallel a buffer of the model saw the first GPU's part alone, as it will see rank 0's: a note.
So is a buffer that only evaluation reads (`else` of `if self.training`), as the running statistics of a BatchNorm are; that of a loss module which training
reads nowhere is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.buffers import updates
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM118", severity=Severity.BLOCKER)
def buffer_of_one_rank(script: Script) -> Iterator[Hit]:
    advice = "let the update see the samples of all ranks: ddp.gather_all for rows, ddp.mean_all or ddp.sum_all for what is taken over the batch"
    for u in updates(script.modules, script.shown_buffers):
        as_before = script.from_data_parallel and not u.beside and not u.outside
        shown = Severity.WARNING if u.beside else Severity.NOTE
        severity = Severity.NOTE if as_before else shown if u.idle else Severity.BLOCKER
        before = ", as it was the first GPU's under DataParallel" if as_before else ""
        before = ", as the running statistics of a BatchNorm do" if u.idle and not u.beside else before
        whose = "its own part of each batch on every rank" if u.beside else "rank 0's part of each batch"
        yield Hit(u.node, f"the buffer {u.name} would hold {whose}{before}", advice=advice, severity=severity)
