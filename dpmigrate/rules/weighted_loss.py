"""The loss is averaged over something else than the samples, or is a function of their mean.

## What it finds
Cross entropy with class weights or `ignore_index`, sums divided by a mask or a count of valid targets, and means over what is chosen of the batch by what
is in it: by a comparison, a mask that the loader or a function gives, a list of places or of losses that a test has filled. Losses that models of
transformers make of the labels of tokens (`model(input_ids, labels=labels).loss`). Roots, logarithms,
exponentials and powers of a mean over the samples, as in the root of a mean squared error. Where executing the result shows it, whatever else is a
function of sums or means over the batch: the quotients of a Dice, Tversky or Jaccard loss, a product of means, a count that is kept from 0, the weight of
the positive samples of a batch, a norm over all samples (`torch.norm(difference) / len(x)`).

## Why it matters
The mean of the ranks' means is not the global mean when the ranks have different weights to divide by: gradients off by 1 % with class weights and up to
85 % with few valid targets.

## Example
```python
loss = criterion(out, y)  # nn.CrossEntropyLoss(ignore_index=255)
loss = (errors * mask).sum() / mask.sum()
loss = torch.sqrt(F.mse_loss(out, y))
loss = model(input_ids=ids, labels=labels).loss  # of AutoModelForCausalLM
loss = 1 - (2 * (p * y).sum() + 1) / ((p + y).sum() + 1)
```
becomes
```python
loss = ddp.weighted_mean(criterion(out, y), ddp.weight_of(y, criterion.weight, criterion.ignore_index))
loss = (errors * mask).sum() / ddp.mean_count(mask.sum())
loss = torch.sqrt(ddp.weighted_mean(F.mse_loss(out, y), y.numel()))
loss = ddp.weighted_mean(model(input_ids=ids, labels=labels).loss, ddp.weight_of(labels[..., 1:]))
loss = 1 - (ddp.batch_sum(2 * (p * y).sum()) + 1) / (ddp.batch_sum((p + y).sum()) + 1)
```
whose gradients, averaged over the ranks, are those of the mean over the global batch. Each costs an exchange of one or two numbers a step; without gradients,
as in an evaluation under `no_grad`, nothing is exchanged.

Where one variable may hold this loss or another one, and where the targets are an expression that should not be computed twice, the loss is given the
weights of all ranks where it is built: `criterion = ddp.weighted_loss(nn.CrossEntropyLoss(weight=w)) if balanced else FocalLoss()`.

`ddp.batch_sum` (and `ddp.batch_mean`) has the value of all ranks, S = s_1 + ... + s_W, and W times the gradient of the rank's own part, so that what DDP
averages is f'(S) (ds_1 + ... + ds_W) for any function f. Samples that are compared with each other are those of all ranks by `ddp.batch_rows` (DPM303), and so
are those that a loss of a library is given of which it is not known how it takes them together (`smp.losses.DiceLoss`).

Where a test asks for the count as well (`if mask.sum() == 0: return out.sum() * 0`), sum and count are those of all ranks where they are made, and all ranks
answer alike: `n = ddp.batch_sum(mask.sum())`, `loss = ddp.batch_sum((errors * mask).sum()) / n`. So is what else is divided by it.

## When it is not fixed
Where a loss of the program's own is given such targets, or what is called is not seen: then it is refused. An evaluation that computes such a loss as well
goes under `torch.no_grad()`, unless something in it takes a gradient, or one loop trains and evaluates: then it is refused. A loss that the model computes
itself is converted there.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from dpmigrate.edit import Edit, Enclose, Replace, Wrap
from dpmigrate.facts.losses import Norm
from dpmigrate.facts.loud import loud
from dpmigrate.facts.script import Script
from dpmigrate.facts.weights import Weighted
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import read_as, torch_at


@rule("DPM302", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def weighted_loss(script: Script) -> Iterator[Hit]:
    done: dict[ast.AST, None] = {}
    made = _built(script)

    def open_to(loss: ast.expr) -> bool:
        """Whether it is not that of all ranks already, by its criterion or by what it is made of."""
        return not made.keys() & set(script.losses.crossing(loss)) and not script.whole(loss) and not script.of_all_samples(loss)

    for call in script.roles.backwards:
        loss = script.losses.of_backward(call)
        if loss.norm is Norm.WEIGHTED:
            yield Hit(
                loss.node, f"{read_as(script, loss)}: the mean of the ranks' losses is not the loss of the global batch", severity=Severity.BLOCKER,
                advice="compute it as criterion(output, target) with target in a variable, or as a sum over a count of the data, and evaluate under no_grad()",
                of_means=True,
            )  # fmt: skip
            continue
        for part in script.losses.weighted_in(call):
            if part.value not in done and not part.built and open_to(part.value):
                done[part.value] = None
                if part.parts:
                    yield from _parts(script, part, done)
                else:
                    yield Hit(part.value, _FUNCTION if part.inner else _MESSAGE, tuple(_edits(script, part)))
    for shown in script.shown_over_weights:
        known = script.losses.over_weights(shown)
        if known is not None and shown not in done and open_to(shown):
            done[shown] = None
            yield Hit(shown, _MESSAGE, tuple(_edits(script, known)))
    for criterion in made:
        yield Hit(criterion, _MESSAGE, (Wrap(script.span(criterion), f"{script.ddp}.weighted_loss({{}})"),))
    if made:
        done |= {n: None for n in script.names.nodes if isinstance(n, ast.Call) and made.keys() & set(script.losses.crossing(n))}
    for operand, template in script.shown_bent.items():
        words = _OF_PART.get(template.partition("(")[0])
        if operand not in done and words is not None:
            done[operand] = None
            yield Hit(operand, words, (Wrap(script.span(operand), f"{script.ddp}.{template}"),))
    if script.quieted:
        yield from _quieted(script, [*done, *(term for call in script.roles.backwards for term in script.losses.sums_in(call))])


def _parts(script: Script, part: Weighted, done: dict[ast.AST, None]) -> Iterator[Hit]:
    """A sum and a count that are those of all ranks where they are made."""
    for made in part.parts:
        if made not in done:
            done[made] = None
            yield Hit(made, _OF_PART["batch_sum"], (Wrap(script.span(made), f"{script.ddp}.batch_sum({{}})"),))


def _built(script: Script) -> dict[ast.Call, None]:
    """The criteria that put their own losses together over the ranks: those of calls that may mean another loss as well, of which no weights can be
    read, or whose targets cannot be written a second time. Whatever else calls one of these has it so, too.
    """
    made = {w.value: None for call in script.roles.backwards for w in script.losses.weighted_in(call) if w.built and isinstance(w.value, ast.Call)}
    shown = [c for c in script.shown_over_weights if not script.whole(c) and not script.of_all_samples(c)]
    return made | {n: None for c in shown if script.losses.over_weights(c) is None for n in script.losses.crossing(c)}


def _quieted(script: Script, losses: Collection[ast.AST]) -> Iterator[Hit]:
    for statement in loud(script.roles, losses):
        edits = (Enclose(script.span(statement), script.span(statement), "with torch.no_grad():"), *torch_at(script, statement))
        yield Hit(statement, "the loss is put together over the ranks where gradients are recorded, which this evaluation has no use for", edits)


_FUNCTION = "a function of this mean, such as a root, is taken: the mean of what the ranks have is not that of the global batch"
_OF_PART = {
    "batch_rows": "the loss compares the samples of a batch with each other: each rank would compare those of its own part",
    "batch_sum": "the loss is a function of this sum over the batch: each rank would take that of its own part",
    "mean_count": "a sum over the batch is divided by this count: each rank would take that of its own part",
    "batch_mean": "the loss is a function of this mean over the batch: each rank would take that of its own part",
    "sum_term": "this term of the loss is a sum over the batch, and others are not: its gradient would be W times too small",
}
_MESSAGE = "a mean over weights or valid targets: the mean of the ranks' means is not that of the global batch"


def _edited(script: Script, node: ast.expr) -> str:
    """An expression that is written a second time, with what is put round its operands."""
    wrapped = {n: t for n, t in script.shown_bent.items() if t.partition("(")[0] in _OF_PART}

    def written(one: object) -> object:
        if isinstance(one, list):
            return [written(part) for part in one]
        if not isinstance(one, ast.AST):
            return one
        made = type(one)(**{name: written(part) for name, part in ast.iter_fields(one)})
        template = wrapped.get(one) if isinstance(one, ast.expr) else None
        return made if template is None else ast.parse(f"{script.ddp}.{template.format(ast.unparse(made))}", mode="eval").body

    found = written(node)
    assert isinstance(found, ast.expr)
    return ast.unparse(found)


def _edits(script: Script, part: Weighted) -> Iterator[Edit]:
    if part.labels:
        yield Wrap(script.span(part.value), f"{script.ddp}.weighted_mean({{}}, {script.ddp}.weight_of({part.labels}))")
    if part.count is not None:
        yield Wrap(script.span(part.count), f"{script.ddp}.mean_count({{}})")
        yield from (Replace(script.span(g), f"{script.text(g)} / {script.ddp}.world_size()") for g in part.guards)
    if part.targets is not None and part.elements:
        text = script.text(part.targets)
        counted = text if isinstance(part.targets, ast.Name | ast.Attribute | ast.Subscript | ast.Call) else f"({text})"
        yield Wrap(script.span(part.value), f"{script.ddp}.weighted_mean({{}}, {counted}.numel())")
    elif part.targets is not None and part.marked:
        text = script.text(part.targets)
        counted = text if isinstance(part.targets, ast.Name | ast.Call) else f"({text})"
        yield Wrap(script.span(part.value), f"{script.ddp}.weighted_mean({{}}, {counted}.sum())")
    elif part.targets is not None:
        classes = _edited(script, part.spelt) if part.spelt is not None else part.classes
        given = [f"weight={classes}"] if classes else []
        given += [f"ignore_index={part.ignored}"] if part.ignored else []
        weight = f"{script.ddp}.weight_of({', '.join([script.text(part.targets), *given])})"
        yield Wrap(script.span(part.value), f"{script.ddp}.weighted_mean({{}}, {weight})")
