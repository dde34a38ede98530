"""Rows of a table that each rank draws for itself: as many of them as it has samples are the samples' own."""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, placed

_HEAD = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp
ddp.setup()
{alike}table = torch.arange(100.0)
data = TensorDataset(torch.randn(32, 3))
train = DataLoader(data, batch_size=8, sampler=ddp.DistributedSampler(data))
for (x,) in train:
    n = x.size(0)
    t = torch.randint(0, 100, (n // 2 + 1,))
"""


def lies(lines: str, *, own: bool = True) -> str:
    text = _HEAD.format(alike="ddp.seed_ranks()\n" if own else "")
    ex = executed(text + "".join(f"    {line}\n" for line in lines.split("\n")))
    return placed(ex, "out")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("out = torch.cat([t, 100 - t - 1], dim=0)[:n]", id="pairs of draws"),
        pytest.param("out = torch.rand(n // 2 + 1)[:n] * 2", id="numbers"),
        pytest.param("out = torch.randn(n // 2 + 1, 4)[0:len(x)]", id="vectors"),
        pytest.param("out = table[torch.cat([t, 100 - t - 1])[:n]]", id="by which a table is looked up"),
    ],
)
def test_the_first_rows_of_draws_are_the_samples_own(lines: str) -> None:
    assert lies(lines) == "rows(axis 0)"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("out = t.float().mean()", id="all of them"),
        pytest.param("out = torch.cat([t, 100 - t])", id="not cut"),
        pytest.param("out = torch.sort(torch.cat([t, 100 - t]))[0][:n]", id="in an order"),
        pytest.param("out = torch.cumsum(torch.cat([t, 100 - t]), 0)[:n]", id="each made of those before it"),
        pytest.param("out = torch.cat([t, torch.arange(8)])[:n]", id="beside what was not drawn"),
        pytest.param("s = t.float()\nout = (s[:, None] @ s[None, :])[:n]", id="a product of all with all"),
        pytest.param("out = torch.randperm(2 * n + 1)[:n]", id="an order, each place once"),
        pytest.param("out = torch.cat([t, 100 - t])[1:n]", id="not from the first on"),
    ],
)
def test_what_is_made_of_several_draws_is_not(lines: str) -> None:
    assert lies(lines) == "per rank"


def test_what_all_ranks_draw_alike_is_not() -> None:
    assert lies("out = torch.cat([t, 100 - t - 1])[:n]", own=False) == "per rank"
