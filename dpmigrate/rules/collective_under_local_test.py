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
from dpmigrate.facts.decisions import drawn
from dpmigrate.facts.meetings import answers, plateau_metrics, waits_for_files
from dpmigrate.facts.names import FunctionNode
from dpmigrate.facts.origins import of_data
from dpmigrate.facts.ranks import ends_before, local_tests
from dpmigrate.facts.sampled import made_global
from dpmigrate.facts.script import Script
from dpmigrate.facts.steps import clips
from dpmigrate.model import Fix, Severity
from dpmigrate.rules._base import Hit, rule
from dpmigrate.rules._edits import alike, raise_on_ranks, together

#: what an optimizer is told of its groups
_SETTINGS = frozenset({"lr", "momentum", "weight_decay", "betas", "eps", "initial_lr"})


@rule("DPM511", severity=Severity.ERROR, fix=Fix.SAFE, core=True)
def collective_under_local_test(script: Script) -> Iterator[Hit]:
    tests: dict[ast.expr, None] = {}
    places = [*script.meetings, *plateau_metrics(script), *(call for call, _ in waits_for_files(script)), *answers(script)]
    rates = list(_rates(script))
    for place in places:
        for test in (*local_tests(script.roles, place), *ends_before(script.roles, place)):
            tests[test] = None
    for rate in rates:
        tests |= {test: None for test in local_tests(script.roles, rate) if script.roles.about_numbers(test)}
        for n in ast.walk(script.names.statement(rate)):
            if isinstance(n, ast.IfExp) and not uniform(script.names, n.test):
                tests[n.test] = None
    for change in _gradients(script):
        tests |= {t: None for t in local_tests(script.roles, change) if drawn(script.roles, t) or _of_batch(script, t)}
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
    for value in _values(script, rates):
        yield alike(script, value, [together(script, value)], "every rank would have another learning rate")


def _values(script: Script, rates: list[ast.expr]) -> Iterator[ast.expr]:
    """What rates are given that is drawn, or is made of a batch: other numbers on every rank."""
    for rate in rates:
        stmt = script.names.statement(rate)
        value = stmt.value if isinstance(rate, ast.Subscript) and isinstance(stmt, ast.Assign | ast.AugAssign) else None
        if value is not None and not isinstance(value, ast.IfExp) and (drawn(script.roles, value) or _of_batch(script, value)):
            yield value


def _of_batch(script: Script, value: ast.expr) -> bool:
    return script.roles.region(value) == "train" and of_data(script.roles, value, (s.size for s in made_global(script)))


def _rates(script: Script) -> Iterator[ast.expr]:
    """Where the learning rate and its like change: scheduler steps and ``group["lr"] = …``; ranks with other rates drift apart."""
    for call, func in script.methods("step"):
        if any(v.qual.startswith("torch.optim.lr_scheduler.") for v in script.values.eval(func.value)):
            yield call
    for node in script.names.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant) and node.slice.value in _SETTINGS:
            yield node


def _gradients(script: Script) -> Iterator[ast.AST]:
    """Where gradients are clipped, set or changed in place."""
    for n in script.names.nodes:
        by_hand = isinstance(n, ast.Attribute) and n.attr == "grad" and (isinstance(n.ctx, ast.Store) or _in_place(script, n))
        if by_hand or (isinstance(n, ast.Expr) and clips(script.roles, n)):
            yield n


def _in_place(script: Script, grad: ast.Attribute) -> bool:
    above = script.names.parent[grad]
    above = script.names.parent[above] if isinstance(above, ast.Attribute) and above.attr == "data" else above
    return isinstance(above, ast.Attribute) and above.attr.endswith("_") and isinstance(script.names.parent[above], ast.Call)


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
