"""What is said of random models and training steps, against autograd and two shards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from dpmigrate.judge import unused
from tests.judge.random_models import judged, program

#: programs of one test; ``python -m tests.judge.random_models`` runs as many as one likes
EACH = 20


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors are small: threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("first", range(0, 120, EACH))
def test_random_models(first: int) -> None:
    for seed in range(first, first + EACH):
        text = program(seed)
        assert judged(text).wrong == [], f"{seed}\n{text}"


def test_something_is_said() -> None:
    """Most programs run, and there are few of which needless things are said."""
    found = [judged(program(seed)) for seed in range(40)]
    ran = [f for f in found if not f.skipped]
    assert len(ran) > 30
    assert sum(f.told and not f.missing for f in ran) < 3
    assert sum(f.held for f in ran) > 10 * len(ran)


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself: where nothing is told, what gets no gradient is wrong."""
    monkeypatch.setattr(unused, "faults", lambda _: [])
    found = [judged(program(seed)) for seed in range(20)]
    assert any(f.wrong for f in found)
    assert all(f.wrong for f in found if f.missing)
