"""Every example of every row is run, whole and sharded, and what the engine says of it is held against that."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Value, data
from dpmigrate.library.registry import TABLES
from dpmigrate.library.sites import Row
from tests.library.sharded import Broken, claimed, dealt, given, gradients, hold, pairs, placed, run

EXAMPLES = [
    pytest.param(e, id=f"{m.__name__.rsplit('.', 1)[-1]}: {e}")
    for m in TABLES
    for e in dict.fromkeys(e for r in (*m.ROWS, *getattr(m, "ATTRIBUTES", ())) for e in r.examples)
]
DEALINGS = [(2, True), (2, False), (3, True), (3, False)]


def shares(numbers: dict[str, Any], own: torch.Tensor) -> dict[str, Any]:
    return {n: v if n == "w" else v[own] for n, v in numbers.items()}


#: where the number of axes is not known, operands are taken to have as many, and -1, or the last axes that
#: are named together, not to be the samples
ASSUMED = ("(x[:, :1] - x[:, 0]).abs()", "torch.add(x.sum(1), y.sum(1, keepdim=True))",
           "F.mse_loss(x[:, 0], y[:, :1])", "torch.fft.fft2(x).abs()")  # fmt: skip


@pytest.mark.parametrize("expression", EXAMPLES)
def test_what_the_engine_says_of_an_example_holds(expression: str) -> None:
    """With the number of axes known and not; what is run is run once."""
    numbers = given()
    whole = run(expression, numbers)
    dealings = [dealt(world, strided) for world, strided in DEALINGS]
    runs = [(d, [run(expression, shares(numbers, own)) for own in d]) for d in dealings]
    for axes in (True, False):
        if not axes and expression in ASSUMED:
            continue
        claim = claimed(expression, axes=axes)
        for dealing, parts in runs:
            for v, (total, *ours) in pairs(claim, [whole, *parts]):
                p, atom = placed(v)
                if atom is not None and isinstance(total, torch.Tensor):
                    if atom.axes is not None and atom.axes != total.dim():
                        raise Broken(f"{atom.axes} axes are said, {total.dim()} are there")
                    if atom.gradient == "none" and total.requires_grad:
                        raise Broken("a gradient flows that is not said")
                if not claim.drawn:
                    hold(p, total, ours, dealing)
        if axes:
            _gradient_holds(expression, numbers, whole, claim.value)


@pytest.mark.parametrize("expression", EXAMPLES)
def test_what_is_made_of_the_batch_of_a_turn_is_that_turn_s(expression: str) -> None:
    """Also where the batch says no more than how many rows there are."""
    said = claimed(expression, axes=True, turn=True).value
    lying = (Kind.ROWS, Kind.SIZE, Kind.TERM, Kind.PARTIAL)
    assert all(d.turn for d in data(said, deep=True) if d.placement.kind in lying)


def _gradient_holds(
    expression: str, numbers: dict[str, Any], whole: object, said: Value
) -> None:
    """Averaged over the ranks the gradient of a part is that of a mean, added up that of a sum."""
    p, atom = placed(said)
    if atom is None or atom.gradient != "whole" or not getattr(whole, "requires_grad", False):
        return
    if p.kind is not Kind.PARTIAL or p.how not in ("mean", "sum"):
        return
    total = gradients(expression, numbers, lambda r: r)
    for world, strided in DEALINGS:
        ours = [
            gradients(expression, shares(numbers, own), lambda r: r)
            for own in dealt(world, strided)
        ]
        made = torch.stack(ours).sum(0) / (world if p.how == "mean" else 1)
        torch.testing.assert_close(made, total)


def rows() -> list[Row]:
    return [r for m in TABLES for r in (*m.ROWS, *getattr(m, "ATTRIBUTES", ()))]


#: effects that make or read objects and have no numbers of their own to compare, or need a group
_PLAIN = (
    "uniform", "none", "same", "averaged", "shuffled", "statistics_updated", "dealt_out",
    "with_gradient", "context", "no_grad", "computed", "device", "chosen", "current", "world_size",
)  # fmt: skip


def test_rows_without_an_example_become_fewer() -> None:
    """A row that says where samples lie shows it; this number may only shrink."""
    bare = [
        r.names.split()[0] for r in rows() if not r.examples and r.effect.__name__ not in _PLAIN
    ]
    numbers = [n for n in bare if n.startswith((".", "torch.", "numpy."))]
    numbers.remove(".__setitem__")  # a statement: tests/execution and the fixtures hold it
    numbers.remove(".strftime")  # of a time, which no tensor holds
    numbers.remove("torch.ao.quantization.prepare_qat")  # warns that it is deprecated: test_batch_state has it
    assert len(numbers) <= 40, sorted(numbers)


def test_most_examples_are_established() -> None:
    """The engine is useful: of few examples it says nothing."""
    kinds = Counter(
        placed(v)[0].kind for e in EXAMPLES for v in [claimed(str(e.values[0]), axes=True).value]
    )
    assert kinds[Kind.UNKNOWN] <= 0.02 * sum(kinds.values()), kinds
