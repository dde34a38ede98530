"""What random programs tell of their training and evaluation, against the originals: a sample of ``python -m tests.judge.random_totals``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch

from tests.judge import random_totals
from tests.judge.random_tellers import program
from tests.judge.random_totals import judged, migrated

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked, with torch imported")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """A fork has no threads but its own."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("seed", "ranks"),
    [
        pytest.param(2, 2, id="lists of an object beside a total"),
        pytest.param(233, 3, id="a defaultdict"),
        pytest.param(203, 2, id="steps counted in an evaluation"),
        pytest.param(229, 2, id="a table in an object"),
    ],
)
def test_numbers_are_those_of_the_original(seed: int, ranks: int) -> None:
    text, maker = program(seed)
    found = judged(text, maker, (ranks,))
    assert not found.wrong and not found.refused and not found.skipped, f"{found}\n{text}"
    assert found.equal or found.told


def test_most_are_written_and_not_only_told() -> None:
    """Of plain programs none is refused, and in most there is nothing left to the user."""
    results = [migrated(program(seed)[0]) for seed in range(500, 506)]
    assert all(after is not None for after, _, _ in results)
    assert sum(not any(m.startswith("DPM602") for _, m in said) for _, said, _ in results) > 2


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself: where no message counts, a number of rank 0's own is wrong."""
    monkeypatch.setattr(random_totals, "covered", lambda *_: "")
    text, maker = program(229)
    assert judged(text, maker, (2,)).wrong
