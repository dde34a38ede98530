"""What the last batch of a training loop leaves is a rank's part of it.

## What it finds
Variables that every turn of a training loop makes anew of its batch, and that are read after the loop: `score(pred, y)`, `save_image(fake)`. The losses are
not meant: where one is told, the report says that it is that of a part.

## Why it matters
A rank has its part of the last batch. A number that is made of it is one over 1/W of the samples, a grid of pictures has 1/W of them.

## Example
```python
for x, y in loader:
    pred = model(x)
    ...
print(score(pred, y))
```
needs, after the loop,
```python
pred, y = ddp.gather_all(pred, y)
```

## When it is not fixed
Always: it holds tensors, texts, numbers or anything else, and of many a part is enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.last_turn import left
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM617", severity=Severity.WARNING)
def last_batch_per_rank(script: Script) -> Iterator[Hit]:
    for loop in script.roles.train_loops:
        found = left(script, loop)
        if found:
            names, be = ", ".join(found), "is" if len(found) == 1 else "are"
            yield Hit(
                next(iter(found.values())), f"{names} {be} read after the loop, which leaves rank 0's part of the last batch there",
                advice=f"put the parts together after the loop, {names} = {script.ddp}.gather_all({names}), where the whole batch is meant",
            )  # fmt: skip
