"""Ranks may not all reach a place where they wait for each other.

## What it finds
A training loop, or an evaluation that is split over the ranks, under an `if` (or after a `return`, or in a conditional
expression) whose test may differ between ranks: `if val_loss < best: test(…)`. So may one that ends the program where a file is there
(`if path.exists(): raise ValueError("refusing to overwrite")`): rank 0 goes on, and may have made it before another rank asks. And a test for a file that
rank 0 writes next, where ranks that find it wait for each other: `if path.exists(): past = read(path)`.

The same for whatever changes the course of the training beside its gradients: steps of a scheduler and `group["lr"] = …`, gradients that are clipped or set
by hand, weights that are changed or restored, optimizers and losses that are replaced, flags and factors that later steps go by. And for the numbers that these
are given: a rate that is drawn, made of a loss or of the clock, weights that are scaled by a number of the batch. And for draws by which a step calls the
model in one way or another or takes one loss or another, as in CutMix with a probability, in teacher forcing and in `task = random.choice(tasks)`, and for
single numbers that the step draws from Python's or NumPy's stream and gives to the model: the draw is one for the whole batch. So is a draw that says what
becomes of the batch (`if random.random() < 0.5: x = x.roll(1, 1)`) where the loss is not shown to be right else, and there a test whether the numbers of
the batch are finite (`if torch.isnan(out).any(): return fallback`): they are not where one rank's are not, `ddp.any_rank(…)`. Draws in a model's
`forward` are a rank's own.

## Why it matters
A rank that finds the test false does not take part, and the others wait for it until the timeout. Values that were computed in full on every rank may differ
in the last digit. A rank that changes its weights, or trains on with another rate, optimizer or loss, has another model from then on, and nothing puts the
models together again.

## Example
```python
if val_loss < best:
    test_acc = test(model, test_loader)
```
becomes
```python
if ddp.from_main(val_loss < best):
    test_acc = test(model, test_loader)
```

In the batch loop a draw is rank 0's (`ddp.from_main(random.random() < 0.1)`), a loss that is a mean over the batch is averaged
(`ddp.mean_all(loss.item()) > last`), and of flags, clocks and numbers that are not finite one rank's yes is enough (`ddp.any_rank(…)`). Where the clock gives a
number (`group["lr"] = rate(time.time() - start)`) it is rank 0's: `ddp.from_main(…)`. What such tests decide is then the same on all ranks.

A handler that trains again (`except OutOfMemoryError:`) begins with `if ddp.world_size() > 1: raise`: one rank cannot repeat what the others have done.

## When it is not fixed
`val_loss < best and test(…)` is refused, and in the batch loop tests on what is no mean over the batch (`output.max() > 9`), and weights that are given
something of the batch (`model.fc.bias.data -= 0.01 * output.mean(0)`). What a step sets anew each time is its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from dpmigrate.edit import AddImport
from dpmigrate.facts.control import uniform
from dpmigrate.facts.meetings import answers, plateau_metrics, waits_for_files
from dpmigrate.facts.names import FunctionNode, last
from dpmigrate.facts.raced import raced_tests
from dpmigrate.facts.ranks import ends_before, local_tests, parted, stops_at_file
from dpmigrate.facts.readback import rewritten
from dpmigrate.facts.script import Script
from dpmigrate.facts.steering import Kind
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import alike, raise_on_ranks, together

_WHOLE = "make it of what is the same on every rank: counters, settings, or what the batches of all ranks give (ddp.mean_all, ddp.gather_all)"


@rule("DPM511", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def collective_under_local_test(script: Script) -> Iterator[Hit]:
    tests: dict[ast.expr, None] = {}
    files = (*waits_for_files(script), *rewritten(script))
    places = [*script.meetings, *plateau_metrics(script), *(call for call, _ in files), *answers(script)]
    for place in places:
        found = dict.fromkeys((*local_tests(script.roles, place), *ends_before(script.roles, place)))
        tests |= {t: None for t in found if t not in tests and not script.alike(t)}
    tests |= {t: None for t in raced_tests(script, places) if t not in tests}
    tests |= {t: None for t in stops_at_file(script.roles) if not script.made_once(t) and not parted(script.roles, t)}
    # the ranks wait for files before or behind a statement, not within its tests
    for node in _alone(script, [*(stmt for _, stmt in files), *(p for p in places if p not in {call for call, _ in files})]):
        if isinstance(node, ast.ExceptHandler):
            leave = raise_on_ranks(script, node)
            yield Hit(node, "only a rank that meets an exception comes here, where all ranks would wait", (leave, AddImport(script.import_line)))
        else:
            yield Hit(
                node, "all ranks wait for each other in this part of the test, but it is not reached by every rank", severity=Severity.BLOCKER,
                advice="call it in a statement of its own before the test, on every rank",
            )  # fmt: skip
    for test in tests:
        yield alike(script, test, [together(script, test)], "all ranks must go the same way here: they wait for each other further on")
    for test in script.course.tests:
        if test not in tests and not uniform(script.names, test, script.course.tests) and not script.moving.alike(test):
            yield alike(script, test, [together(script, test)], "all ranks must go the same way here: the ranks would diverge")
    for test in script.shown_draws:
        drawn = together(script, test)
        if test not in tests and test not in script.course.tests and drawn:
            asks = any(isinstance(n, ast.Call) and last(n.func) in ("isnan", "isinf", "isfinite") for n in ast.walk(test))
            what = "whether numbers are finite is asked of" if asks else "the draw is one for"
            yield alike(script, test, [drawn], f"{what} the whole batch: each rank would make another thing of its samples")
    for change, numbers in script.course.numbers:
        numbers = [v for v in numbers if not script.moving.alike(v)]
        shared = {v: together(script, v, number=True) for v in numbers}
        for value in [v for v in numbers if shared[v] is None][:1] or numbers:
            hit = alike(script, value, [shared[value]], f"the ranks may have different values here for {change.kind.value}", _WHOLE)
            yield replace(hit, of_means=change.kind is Kind.WAY)


def _alone(script: Script, places: list[ast.AST]) -> list[ast.AST]:
    """Where a rank may come to the place, or not, in a way that no test decides that could be shared: exception handlers, and parts of a test."""
    found: dict[ast.AST, None] = {}
    for place in places:
        for node in script.leading_to(place):
            inner = node
            for a in script.names.ancestors(node):
                if isinstance(a, FunctionNode):
                    break
                if isinstance(a, ast.BoolOp) and inner is not a.values[0] and not all(uniform(script.names, v) for v in a.values[: a.values.index(inner)]):  # type: ignore[arg-type]
                    found[node] = None
                    break
                if isinstance(a, ast.ExceptHandler):
                    found[a] = None
                    break
                inner = a
    return list(found)
