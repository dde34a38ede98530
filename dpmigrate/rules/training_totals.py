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

Entries of a dict that are added up (`stats["loss"] += loss.item()`) are counters too, and so are attributes that are given 0 in the loop's function
before it (`self.total = 0.0`), tables by sample and arrays of sums; a moving average of losses is averaged; a ratio that
the loop computes from its counters in every turn is computed again.

## When it is not fixed
A meter outside of the program is told: its numbers are rank 0's. So are objects and functions of the program that keep what they are given
(`tracker.log_loss(loss.item())`), tables whose elements the batch chooses at once (`hits[labels] += 1`), attributes and lists of an object of which it is not
seen that they begin anew, and values that go on from batch to batch (`worst = max(worst, loss.item())`).
A rank's part of a loss that the ranks' parts add up to (`F.mse_loss(out, y, reduction="sum")`, a sum over the mask of the global batch) is multiplied by
the number of ranks where it is added times the size of the batch: `total += loss.item() * ddp.world_size() * x.size(0)`. In a loop that evaluates as well,
on all samples, this is told.
Numbers shown while the loop runs are those of rank 0, and so are lists of anything but counts and losses, and sums that go on from one epoch to the
next: of these only what one loop has added may be summed. Where the kind of one total cannot be told, those that something is computed of together
with it stay as well, because half a ratio is worse than none; the report names them all. A list of the losses of batches
(`losses.append(loss.item())`) is averaged element by element: it then holds the losses of the global batches, as the original's did. A list from
outside the function is filled anew in its place (`history[:] = ddp.mean_all(history)`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from dpmigrate.edit import After, Wrap
from dpmigrate.facts.control import uniform
from dpmigrate.facts.loops import BatchLoop
from dpmigrate.facts.names import position
from dpmigrate.facts.nodes import walk
from dpmigrate.facts.script import Script
from dpmigrate.facts.totals import Doubt, Totals, Unclear, totals
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import reduced

_SHARE = "{} is read after the loop and covers rank 0's share"
_SAID = {
    Unclear.COUNTER: "{} {be} read after the loop and {cover} rank 0's share: whether {} {add} up sums or means is not known",
    Unclear.METER: f"the meter {_SHARE}",
    Unclear.FOREIGN_METER: _SHARE,
    Unclear.GROWS: _SHARE,
    Unclear.LIST: "the list {} is read after the loop and holds rank 0's share",
}
_KINDS = "with ddp.sum_all (counts, sums) or ddp.mean_all (means of batches)"
_REDUCE = f"reduce what one loop adds to it after the loop {_KINDS}, not what earlier epochs have left in it: all ranks have that already"
_AVERAGE = "reduce what is read of it: ddp.mean_all({}.avg) for means of batches"
#: of a rank's part of a loss that is added times the size of its batch
_PARTS = (
    "{0} is a rank's part of a sum over the batch, and added times the size of that part: where it trains, add {0} * ddp.world_size() in its place; "
    "then sum what one loop adds up, with ddp.sum_all"
)
#: of a total that goes on, a sum over the ranks would count its beginning once for each rank
_GOES_ON = "write before = {0} above the loop and {0} = before + ddp.sum_all({0} - before) below it (counts, sums; ddp.mean_all for means of batches)"
_ADVICE = {
    Unclear.COUNTER: _REDUCE,
    Unclear.METER: "reset it before the loop, and reduce what it adds up after it " + _KINDS,
    Unclear.FOREIGN_METER: "reduce what it counts up before it is read: ddp.sum_all(…) of counts, sums and tables, ddp.mean_all(…) of means of batches",
    Unclear.GROWS: _REDUCE,
    Unclear.LIST: "gather it (ddp.gather_all) if the numbers made from it must cover the epoch",
}


@rule("DPM602", severity=Severity.WARNING, fix=Fix.SAFE, core=True)
def training_totals(script: Script) -> Iterator[Hit]:
    for loop in script.roles.train_loops:
        found = totals(script, loop)
        begun = {name: _begun(script, loop, name) for name in (*found.sums, *found.means)}
        lines = _lines(script, loop, found, begun)
        if lines:
            names = ", ".join(name for name, test in begun.items() if test is not None)
            added = {part: None for name, test in begun.items() if test is not None for part in found.shares.get(name, ())}
            whole = (Wrap(script.span(part), f"{{}} * {script.ddp}.world_size()") for part in added)
            yield Hit(loop.node, f"{names} would cover one rank's share of the epoch", (After(script.span(loop.node), "\n".join(lines)), *whole))
        for name in (name for name, test in begun.items() if test is None):
            yield Hit(loop.node, f"{name} covers one rank's share of the epoch, where it has a value", advice=_REDUCE.format(name))
        for doubt in (d for d in found.told if not _goes_in_whole(script, d)):
            yield _told(script, doubt)


def _lines(script: Script, loop: BatchLoop, found: Totals, begun: Mapping[str, str | None]) -> list[str]:
    over = f", over={script.text(loop.source)}" if loop.branches else ""  # an evaluation in this loop sees the full set on every rank
    lines = []
    for test in dict.fromkeys(t for t in begun.values() if t is not None):
        own = [[name for name in names if begun[name] == test] for names in (found.sums, found.means)]
        made = [*reduced(script, loop.node, "sum_all", own[0], over), *reduced(script, loop.node, "mean_all", own[1], over)]
        lines += [f"if {test}:", *(f"    {line}" for line in made)] if test else made
    return [*lines, *found.again] if lines else []


def _begun(script: Script, loop: BatchLoop, name: str) -> str | None:
    """The test under which a total has a value when the loop has ended; '' where it always has one, None where that is not known."""
    scope = script.names.scope_of[loop.node]
    begun = [b.target for b in scope.bindings.get(name, ()) if b.how != "aug" and not script.names.is_inside(b.target, loop.node)]
    before = [b for b in begun if position(b) < position(loop.node)]
    if not name.isidentifier() or len(before) < len(begun) or not before:
        return ""
    blocks = [s for a in (loop.node, *script.names.ancestors(loop.node)) if isinstance(a, ast.stmt) for s in script.names.block(a)]
    statements = [script.names.statement(b) for b in before]
    if any(s in blocks or not isinstance(script.names.parent[s], ast.If) for s in statements):
        return ""
    branch = script.names.parent[statements[0]]
    assert isinstance(branch, ast.If)
    known = len(statements) == 1 and statements[0] in branch.body and branch in blocks and _is_setting(script, branch.test)
    return ast.unparse(branch.test) if known else None


def _is_setting(script: Script, test: ast.expr) -> bool:
    """Whether a test is a variable that is given one value in the whole program, the same on all ranks."""
    if not isinstance(test, ast.Name | ast.Attribute) or not uniform(script.names, test):
        return False
    return all(len(script.roles.writes(key)) < 2 for key in script.values.keys(test))


def _goes_in_whole(script: Script, doubt: Doubt) -> bool:
    """Whether all that an object keeps of a turn is that of all ranks where it is made: of a loss that is (DPM302), or since training goes by it (DPM332)."""
    call, made = doubt.where, {p.node for p in script.moving.parts}
    given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
    if given and script.made_whole and all(script.executed.the_same(part, script.made_whole) for part in given):
        return True
    if doubt.why is not Unclear.FOREIGN_METER or not isinstance(call, ast.Call) or not made.intersection(walk(call)):
        return False
    return all(map(script.moving.alike, (*call.args, *(k.value for k in call.keywords))))


def _told(script: Script, doubt: Doubt) -> Hit:
    names = [", ".join(part) for part in (doubt.names, doubt.of)]
    stmt = script.names.parent.get(doubt.where)
    adds = isinstance(stmt, ast.AugAssign) and isinstance(stmt.op, ast.Add) and script.text(doubt.where) == doubt.names[0]  # no table
    advice = _GOES_ON if doubt.why is Unclear.GROWS and adds else _ADVICE[doubt.why]
    if adds and isinstance(doubt.where, ast.Name) and any(isinstance(v, ast.List) for v in script.roles.given(doubt.where)):
        advice = _ADVICE[Unclear.LIST]
    if doubt.why is Unclear.FOREIGN_METER and any(script.text(n.value) == doubt.names[0] for n in script.names.attributes("avg")):
        advice = _AVERAGE
    if doubt.shares:
        advice = _PARTS.format(script.text(doubt.shares[0]))
    numbered = {"be": "is", "cover": "covers"} if len(doubt.names) == 1 else {"be": "are", "cover": "cover"}
    message = _SAID[doubt.why].format(*names, **numbered, add="adds" if len(doubt.of) == 1 else "add")
    return Hit(doubt.where, message, advice=advice.format(*names))
