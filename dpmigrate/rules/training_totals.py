"""Totals of the training loop cover one rank's share.

## What it finds
Numbers that a training loop adds up and that are read after it: the epoch's loss, the training accuracy.

## Why it matters
Each rank has seen 1/W of the samples. A count must be summed over the ranks, a mean of batch losses averaged; otherwise a loss divided by
`len(dataset)` is W times too small.

## Example
```python
print(total_loss / len(loader), correct / len(loader.dataset))
```
needs, after the loop,
```python
correct = ddp.sum_all(correct)
total_loss = ddp.mean_all(total_loss)
```

A meter (`losses.update(loss.item(), x.size(0))`, a class of the file that only adds up) is reduced like the counters that it holds, and what it computes from
them is computed again.

Entries of a dict that are added up (`stats["loss"] += loss.item()`) are counters too; a moving average of losses is averaged; a ratio that
the loop computes from its counters in every turn is computed again.

## When it is not fixed
A meter of another file is told: its numbers are rank 0's.
Numbers shown while the loop runs are those of rank 0, and so are lists of anything but counts and losses, and sums that go on from one epoch to the
next. Where the kind of one total cannot be told none is reduced, because half a ratio is worse than none; the report names them all. A list of the losses of
batches (`losses.append(loss.item())`) is averaged element by element: it then holds the losses of the global batches, as the original's did.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import After
from dpmigrate.facts.counters import Holds, collected, holds
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.script import Script
from dpmigrate.facts.totals import derived, entries, moving, strange_meters, untold
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._shared import from_zero, gathered_rows, reduced

_ADVICE = "reduce it after the loop with ddp.sum_all (counts, sums) or ddp.mean_all (means of batches)"
_METER = "reset it before the loop, and reduce what it adds up after it with ddp.sum_all (counts, sums) or ddp.mean_all (means of batches)"


@rule("DPM602", severity=Severity.WARNING, fix=Fix.SAFE, core=True)
def training_totals(script: Script) -> Iterator[Hit]:
    for loop in script.roles.train_loops:
        backwards = script.loop_backwards(loop)
        losses = _losses(script, backwards)
        by_kind: dict[Holds, list[str]] = {}
        plain = script.counting(loop).counters
        ratios = derived(script.names, loop, plain)
        wanted = {name for r in ratios for name in r.of}
        for c in (*plain, *moving(script.losses.numbers, loop), *entries(script.names, loop, script.text)):
            if c.read_after or c.name in wanted:
                kind = holds(script.roles, loop, c, losses)
                known_start = kind is not Holds.SUM or c not in plain or from_zero(script, loop, c.name)
                by_kind.setdefault(kind if known_start else Holds.UNKNOWN, []).append(c.name)
        unknown = by_kind.pop(Holds.UNKNOWN, [])
        if unknown:  # a ratio of a reduced and an unreduced number would be wrong by a factor: all or none
            lost = [n for k in (Holds.UNKNOWN, Holds.SUM, Holds.MEAN) for n in (unknown if k is Holds.UNKNOWN else by_kind.get(k, []))]
            yield Hit(
                loop.node,
                f"{', '.join(lost)}, read after the loop, cover rank 0's share: what {', '.join(unknown)} adds up is not known",
                advice=_ADVICE,
            )
            by_kind.clear()
        strange = []
        again = [r.code for r in ratios if by_kind]
        for m in script.counting(loop).meters:
            kinds = [(c, holds(script.roles, loop, c, losses)) for c in m.sums if c.read_after]
            if any(k is Holds.UNKNOWN or (k is Holds.SUM and not m.meter.from_zero) for _, k in kinds):
                yield Hit(loop.node, f"the meter {m.meter.name}, read after the loop, covers rank 0's share", advice=_METER)
                continue
            for c, k in kinds:
                if k is not Holds.STEP:
                    by_kind.setdefault(k, []).append(c.name)
                    again += [d for d in m.meter.derived if d not in again]
        rows = gathered_rows(script, loop)
        for c in [] if loop.branches else collected(script.names, loop):
            if c.name in rows:
                continue
            kind = holds(script.roles, loop, c, losses)
            if kind is Holds.MEAN or (kind is Holds.SUM and from_zero(script, loop, c.name)):
                by_kind.setdefault(kind, []).append(c.name)
            elif kind is not Holds.STEP:
                strange.append(c.name)
        lines: list[str] = []
        for kind, call in ((Holds.SUM, "sum_all"), (Holds.MEAN, "mean_all")):
            if kind in by_kind:
                over = f", over={script.text(loop.source)}" if loop.branches else ""  # an evaluation in this loop sees the full set on every rank
                lines += reduced(script, call, by_kind[kind], over)
        reduces = [n for k in (Holds.SUM, Holds.MEAN) for n in by_kind.get(k, [])]
        if lines:
            edit = After(script.span(loop.node), "\n".join([*lines, *again]))
            yield Hit(loop.node, f"{', '.join(reduces)} would cover one rank's share of the epoch", (edit,))
        known = {c.name for c in plain} | {name for names in by_kind.values() for name in names} | set(unknown)
        for place, name in untold(script.names, loop, known):
            yield Hit(place, f"{name}, read after the loop, covers rank 0's share", advice=_ADVICE)
        for update, name in strange_meters(script.roles, loop):
            yield Hit(
                update,
                f"{name}, read after the loop, covers rank 0's share",
                advice=f"reduce what is read of it: ddp.mean_all({name}.avg) for means of batches",
            )
        for name in strange:
            yield Hit(
                loop.node,
                f"the list {name}, read after the loop, holds rank 0's share",
                advice="gather it if the numbers made from it must cover the epoch",
            )


def _losses(script: Script, backwards: list[ast.Call]) -> dict[str, bool]:
    """The names of the losses, each with whether it is a sum; without those that are a sum here and a mean there."""
    found: dict[str, set[bool]] = {}
    for b in backwards:
        for name in script.losses.names_of(b):
            found.setdefault(name, set()).add(script.losses.of_backward(b).norm is Norm.SUM)
    return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1}
