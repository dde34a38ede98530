"""How the loss depends on the batch size cannot be established.

## What it finds
A loss that comes from a function outside of the program, from the model itself, or mixes means and sums; a loss of torch that is given a sum, a mean or a
count over the batch (`bce(z - z.mean(), y)`, `pos_weight=neg.sum() / pos.sum()`). The gradient of a mean with respect to samples
(`torch.autograd.grad(F.cross_entropy(model(x), y), x)`, `x.grad`), where more than its sign or direction is used.

## Why it matters
A mean over the batch stays right under DDP. A sum becomes W times too small, and a loss that compares the samples of a batch with each other
(contrastive, triplet) sees only the rank's own samples. Gradients of samples are not averaged: of a mean over a W-th of the batch they are W times too large.

## Example
```python
loss = model(images, targets)
loss.backward()
```
is right if the model gives a mean over its batch.

## When it is not fixed
Always: the program is migrated, and the author has to look at this one line. `apply` says nothing of it where executing the result on paper shows that
every loss is a mean over the samples of the batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import shorten

from dpmigrate.facts.inputs import InputGradient
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.script import Script
from dpmigrate.model import Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import read_as


@rule("DPM305", severity=Severity.WARNING)
def unknown_loss_scale(script: Script) -> Iterator[Hit]:
    own = {g.call for g in script.input_gradients if g.alone}
    for gradient in script.input_gradients:
        if hit := _of_samples(script, gradient):
            yield hit
    if script.shown_bent and not script.settings.unproven:
        return  # with sums of all ranks in it the result is only written where every loss is shown to be right
    for call in script.roles.backwards:
        if call in own:
            continue
        loss = script.losses.of_backward(call)
        if loss.norm in (Norm.UNKNOWN, Norm.CONST):
            what = shorten(script.text(loss.node), 60, placeholder=" …")
            corner = script.values.lookups.behind(loss.node.func) if isinstance(loss.node, ast.Call) else ""
            unseen = f" ({ast.unparse(loss.node.func)} is found by {corner} when the program runs)" if corner and isinstance(loss.node, ast.Call) else ""
            why = read_as(script, loss) or f"what {what} is normalised by is not known{unseen}"
            yield Hit(
                call, f"{why}: right only if the loss is a mean over the samples of the batch",
                advice="if it is a sum, write ddp.sum_loss(loss).backward(); if it is a mean over something else (tokens, weights), "
                "ddp.weighted_mean(loss, how many); if it compares samples with each other, gather them first",
                of_means=True,
            )  # fmt: skip


def _of_samples(script: Script, gradient: InputGradient) -> Hit | None:
    """A gradient of samples whose size counts, and is not that of one process."""
    norm, name = gradient.loss.norm, gradient.tensor.id
    if gradient.levelled or (norm is Norm.SUM and gradient.alone) or (norm in (Norm.UNKNOWN, Norm.CONST) and gradient.call not in script.roles.backwards):
        return None
    advice = f"divide it by {script.ddp}.world_size(), or differentiate a sum over the samples, with a step that fits"
    if norm is Norm.SUM:
        why = f"the gradient of {name} comes from the sum that is scaled for the optimizer, and is W times too large"
        return Hit(gradient.call, why, advice=f"take the gradient of {name} in a pass of its own, and clear the others before the optimizer steps")
    if norm in (Norm.UNKNOWN, Norm.CONST):
        return (
            Hit(gradient.call, f"the gradient of {name} is right only if the loss is a sum over the samples of the batch", advice=advice)
            if gradient.alone
            else None
        )
    return Hit(gradient.call, f"the gradient of {name} is taken of a mean over a rank's part of the batch: W times too large", advice=advice)
