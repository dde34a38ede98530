"""Of each sample that a mask has chosen one place is taken: its own label's."""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, placed

_HEAD = """
import torch
from torch.utils.data import DataLoader, TensorDataset
for x, y in DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, dtype=torch.long)), batch_size=4):
    pass
m = y > 0
z, t = x[m], y[m]
"""


@pytest.mark.parametrize(
    "places",
    ["torch.arange(len(t))", "torch.arange(t.size(0), device=t.device)", "torch.arange(t.shape[0])", "torch.arange(len(z), dtype=torch.long)"],
)
def test_the_place_of_each_chosen_sample(places: str) -> None:
    assert placed(executed(_HEAD + f"found = z[{places}, t]\n"), "found") == "rows(axis 0, ragged)"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("found = z[torch.arange(len(t)), y[y > 1]]", id="by another mask"),
        pytest.param("found = x[torch.arange(len(t)), t]", id="of all samples"),
        pytest.param("found = z[torch.arange(1, len(t)), t[1:]]", id="from the second on"),
        pytest.param("found = z[torch.arange(len(t) - 1), t[:-1]]", id="all but the last"),
        pytest.param("found = z[torch.arange(len(t)) - 1, t]", id="the place before"),
        pytest.param("a = torch.arange(len(t))\na = a.flip(0)\nfound = z[a, t]", id="in a variable that is changed"),
        pytest.param("found = z[torch.arange(len(t)).flip(0), t]", id="in another order"),
    ],
)
def test_places_that_are_not_those_of_each(line: str) -> None:
    assert placed(executed(_HEAD + line + "\n"), "found") in ("unknown", "per rank")
