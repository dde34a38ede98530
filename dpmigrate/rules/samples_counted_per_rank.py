"""A count of samples that decides something is one rank's.

## What it finds
Variables, entries and objects to which a training loop adds the size of each batch (`seen += x.size(0)`, `stats["seen"] += len(x)`, `bar.update(len(x))`
of a bar whose `n` is read), and by which a schedule, a rate, a phase, a test or a tracker goes; and progress bars that have a total
(`tqdm(total=len(train_set))`).

## Why it matters
A rank's batch is a part of the global batch. A warm-up by samples lasts W times as long, a growing network comes to its next phase W times later, and the
axis of a tracker is W times too short, without an error. A progress bar ends at 1/W of its total.

## Example
```python
seen += x.size(0)
scheduler.step(seen)
```
becomes
```python
seen += x.size(0) * ddp.world_size()
scheduler.step(seen)
```

Samplers give all ranks batches of equal sizes; where the data set cannot be divided equally they pad, and the count is that of the padded set. Tokens and
the like (`tokens += (y != pad).sum()`), of which ranks have unequal numbers, are summed in each step: `tokens += ddp.sum_all((y != pad).sum())`.

## When it is not fixed
Where the same variable divides a sum of this rank (`correct / seen`), which has to be of the same samples: this is told. A number that is a divisor, or is
shown, and nothing else is a total (DPM602). The setting (`seen += args.batch_size`) is that of the global batch, and right.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.edit import AddImport, Wrap
from dpmigrate.facts.script import Script
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM616", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def samples_counted_per_rank(script: Script) -> Iterator[Hit]:
    for one in script.sampled:
        name = script.text(one.target)
        if one.divisor is not None:
            message = f"{name} counts this rank's samples: right as the divisor in {script.where(one.divisor)}, too few in {script.where(one.read)}"
            advice = f"count those of all ranks in another variable: seen += {script.text(one.size)} * {script.ddp}.world_size()"
            yield Hit(one.target, message, severity=Severity.WARNING, advice=advice)
            continue
        all_of_it = f"{{}} * {script.ddp}.world_size()" if one.equal else f"{script.ddp}.sum_all({{}})"
        edits = (Wrap(script.span(one.size), all_of_it), AddImport(script.import_line))
        yield Hit(one.size, f"{name} would count one rank's samples, and {script.where(one.read)} goes by it", edits)
