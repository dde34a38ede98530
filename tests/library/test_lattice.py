"""The lattice, checked by numbers: what is said of ``a op b`` holds for parts drawn at random."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind, Placement
from tests.library.sharded import SAMPLES, dealt, hold

#: placements whose numbers are made below: the whole, and the part of each rank
_KNOWN = (
    placements.ZERO, placements.UNIFORM, placements.SUM, placements.MEAN, placements.MAX,
    placements.MIN, placements.size(1), placements.size(2), placements.size(0), placements.rows(),
)  # fmt: skip
_OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Placement]]] = {
    "add": (operator.add, placements.add),
    "subtract": (operator.sub, placements.subtract),
    "multiply": (operator.mul, placements.multiply),
    "divide": (operator.truediv, placements.divide),
    "hypot": (np.hypot, lambda a, b: placements.elementwise([a, b])),
}


def numbers(p: Placement, world: int, draw: Callable[[], float]) -> tuple[Any, list[Any]]:
    """Numbers that lie as a placement says: the whole, and the part of each rank."""
    dealing = dealt(world, strided=True)
    values = [draw() for _ in range(world)]
    match p.kind:
        case Kind.ZERO:
            return 0.0, [0.0] * world
        case Kind.UNIFORM:
            return values[0], [values[0]] * world
        case Kind.SIZE:
            k = p.times or 3
            return k * SAMPLES, [k * len(d) for d in dealing]
        case Kind.ROWS:
            whole = np.array([draw() for _ in range(SAMPLES)])
            return whole, [whole[d.numpy()] for d in dealing]
    stacked = np.array(values)
    made = {
        "sum": stacked.sum(),
        "mean": stacked.mean(),
        "max": stacked.max(),
        "min": stacked.min(),
    }
    return float(made[p.how]), values


@pytest.mark.parametrize("word", _OPERATIONS)
@pytest.mark.parametrize("world", [2, 3])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_arithmetic_says_holds(word: str, world: int, data: st.DataObject) -> None:
    operate, placed = _OPERATIONS[word]
    a, b = data.draw(st.sampled_from(_KNOWN)), data.draw(st.sampled_from(_KNOWN))
    draw = lambda: data.draw(st.floats(-4, 4).filter(lambda x: abs(x) > 0.25))  # noqa: E731
    (whole_a, parts_a), (whole_b, parts_b) = numbers(a, world, draw), numbers(b, world, draw)
    if word == "divide" and b is placements.ZERO:
        return
    whole = operate(whole_a, whole_b)
    parts = [operate(p, q) for p, q in zip(parts_a, parts_b, strict=True)]
    hold(placed(a, b), np.asarray(whole), [np.asarray(p) for p in parts], dealt(world, True))


@pytest.mark.parametrize("p", _KNOWN, ids=str)
@pytest.mark.parametrize("q", _KNOWN, ids=str)
def test_what_holds_of_one_holds_of_one_of_two(p: Placement, q: Placement) -> None:
    """A join lies above both: what either gives is as the join says."""
    both = placements.join(p, q)
    assert both == placements.join(q, p)
    for one in (p, q):
        if one is placements.ZERO and both.kind is Kind.ROWS:
            continue  # 0 is rows of zeros
        values = iter([1.5, -2.0, 0.5, *map(float, range(1, 60))])
        whole, parts = numbers(one, 3, values.__next__)
        hold(both, np.asarray(whole), [np.asarray(x) for x in parts], dealt(3, True))


@pytest.mark.parametrize(
    "p", [*_KNOWN, placements.RATIO, placements.PER_RANK, placements.UNKNOWN], ids=str
)
def test_a_join_with_itself_changes_nothing_and_the_unknown_stays(p: Placement) -> None:
    assert placements.join(p, p) == p
    assert placements.join(p, placements.UNKNOWN) == placements.UNKNOWN or p is placements.ZERO


@pytest.mark.parametrize("p", [*_KNOWN, placements.RATIO, placements.PER_RANK], ids=str)
def test_the_negative_of_the_negative_is_the_same(p: Placement) -> None:
    assert placements.negate(placements.negate(p)) == p


def test_a_wrong_claim_is_found() -> None:
    """The checker itself: a sum of means is no mean."""
    whole, parts = numbers(placements.SUM, 2, iter([1.0, 2.0]).__next__)
    with pytest.raises(AssertionError, match="no part of a mean"):
        hold(placements.MEAN, np.asarray(whole), [np.asarray(x) for x in parts], dealt(2, True))
