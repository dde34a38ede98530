"""The loss is a mean over padding.

## What it finds
A mean over all elements (`nn.L1Loss()`, `F.cross_entropy` without `ignore_index`, `.mean()`) of a part of the batch that the loader's `collate_fn` pads to
the longest sample, where that function stands in this program.

## Why it matters
Under DDP each rank pads its part of the batch to the longest sample of that part. The original divides by the elements of the whole padded batch, a
rank by those of its own, and what the model makes of the padding counts in another measure: the gradient is not that of the original, the more so the more
the samples differ in length. DataParallel cuts a batch that is padded already.

## Example
```python
loader = DataLoader(train_set, batch_size=32, collate_fn=pad)
for x, y in loader:
    loss = F.l1_loss(model(x), y)
```
depends on the longest sample of the batch; on the samples alone depends
```python
loss = (F.l1_loss(model(x), y, reduction="none") * mask).sum() / mask.sum()
```
which is migrated exactly (DPM302).

## When it is not fixed
Always: the program is migrated, and the author has to decide what padding should count. Padding to a fixed length, or outside of the program, is not told.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.padding import padded
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM331", severity=Severity.WARNING)
def mean_over_padding(script: Script) -> Iterator[Hit]:
    done: set[int] = set()
    for backward in script.roles.backwards:
        for mean in script.losses.means_in(backward):
            if id(mean) not in done and padded(script.roles, mean):
                done.add(id(mean))
                yield Hit(
                    mean, "a mean over a batch that is padded to its longest sample: each rank pads its part to a length of its own, and divides by that",
                    advice="leave the padding out: ignore_index for targets, (loss * mask).sum() / mask.sum() for others, or pad to a fixed length",
                )  # fmt: skip
