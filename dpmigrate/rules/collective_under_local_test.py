"""Ranks may not all reach a place where they wait for each other.

## What it finds
A training loop, or an evaluation that is split over the ranks, under an `if` (or after a `return`, or in a conditional
expression) whose test may differ between ranks: `if val_loss < best: test(…)`.

The same for steps of a scheduler, for `group["lr"] = …` and for gradients that are clipped or set by hand; and rates that are drawn, or made of a loss.

## Why it matters
A rank that finds the test false does not take part, and the others wait for it until the timeout. Values that were computed in full on every rank may differ
in the last digit.

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
(`ddp.mean_all(loss.item()) > last`), and of flags, clocks and numbers that are not finite one rank's yes is enough (`ddp.any_rank(…)`).

A handler that trains again (`except OutOfMemoryError:`) begins with `if ddp.world_size() > 1: raise`: one rank cannot repeat what the others have done.

## When it is not fixed
`val_loss < best and test(…)` is refused, and in the batch loop tests on what is no mean over the batch (`output.max() > 9`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.edit import AddImport
from dpmigrate.facts.control import uniform
from dpmigrate.facts.decisions import drawn, in_training
from dpmigrate.facts.meetings import answers, plateau_metrics, waits_for_files
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.origins import of_clock, of_data, of_weights
from dpmigrate.facts.ranks import ends_before, local_tests
from dpmigrate.facts.sampled import made_global
from dpmigrate.facts.script import Script
from dpmigrate.facts.steering import Change, Kind, changes
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import alike, raise_on_ranks, together

_WHOLE = "make it of what is the same on every rank: counters, settings, or what the batches of all ranks give (ddp.mean_all, ddp.gather_all)"

#: what is drawn for weights comes from one stream (DPM129), what is drawn for a step's samples from the rank's own
_SETTINGS = (Kind.RATE, Kind.OPTIMIZER)


@rule("DPM511", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def collective_under_local_test(script: Script) -> Iterator[Hit]:
    tests: dict[ast.expr, None] = {}
    places = [*script.meetings, *plateau_metrics(script), *(call for call, _ in waits_for_files(script)), *answers(script)]
    turned = changes(script)
    for place in places:
        for test in (*local_tests(script.roles, place), *ends_before(script.roles, place)):
            tests[test] = None
    apart = {test: None for change in turned for test in _parting(script, change) if test not in tests}
    for node in _alone(script, places):
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
    for test in apart:
        yield alike(script, test, [together(script, test)], "all ranks must go the same way here: they would train on in other ways")
    for change in turned:
        differing = [v for v in change.values if _differs(script, v) or (change.kind in _SETTINGS and drawn(script.roles, v))]
        shared = {v: together(script, v, number=True) for v in differing}
        for value in [v for v in differing if shared[v] is None][:1] or differing:
            yield alike(script, value, [shared[value]], f"every rank would have another number for {change.kind.value}", _WHOLE)


def _parting(script: Script, change: Change) -> Iterator[ast.expr]:
    """The tests round a change of the course by which ranks would part."""
    within = [n.test for n in ast.walk(script.names.statement(change.node)) if isinstance(n, ast.IfExp)]
    for test in (*local_tests(script.roles, change.node), *within):
        if change.kind is Kind.RATE:
            parts = script.roles.about_numbers(test) if test not in within else not uniform(script.names, test)
        elif change.kind is Kind.WAY:  # what is drawn for the samples of a rank is its own
            parts = not _is_option(script, test) and _differs(script, test, form=False)
        else:
            parts = _differs(script, test) or drawn(script.roles, test)
        if parts:
            yield test


def _is_option(script: Script, test: ast.expr) -> bool:
    """``if mask:``, ``if not mask:`` of a parameter, which says whether it is given, or what is wanted."""
    node = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(node, ast.Name) and any(b.how == "param" for b in script.names.bindings(script.names.scope_of[node], node.id))


def _differs(script: Script, value: ast.expr, *, form: bool = True) -> bool:
    """Whether the value is made of a rank's part of the batch, or of its clock."""
    if uniform(script.names, value):
        return False
    of_batch = in_training(script, value) and of_data(script.roles, value, (s.size for s in made_global(script)), form=form)
    return (of_batch and not of_weights(script.roles, value)) or of_clock(script.roles, value)


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
