"""Binary cross entropy on probabilities fails under autocast.

## What it finds
`nn.BCELoss` and `F.binary_cross_entropy` in a program that runs, or is asked to run, under autocast.

## Why it matters
On a GPU this is a RuntimeError ("unsafe to autocast"); a test on the CPU does not show it.

## Example
```python
loss = nn.BCELoss()(torch.sigmoid(logits), y)
```
has to become
```python
loss = nn.BCEWithLogitsLoss()(logits, y)
```

## When it is not fixed
Always: the sigmoid may stand anywhere in the model. It is a refusal with `--amp`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule


@rule("DPM318", severity=Severity.BLOCKER)
def autocast_unsafe_loss(script: Script) -> Iterator[Hit]:
    if not script.settings.amp:
        return
    for call in script.calls("torch.nn.BCELoss", "torch.nn.functional.binary_cross_entropy"):
        yield Hit(
            call,
            f"{script.text(call.func)} is unsafe under autocast",
            advice="use BCEWithLogitsLoss / binary_cross_entropy_with_logits and take the sigmoid out of the model",
        )
