"""The order of the samples in a batch, and how many different ones a batch has: what meets in two orders is another thing for each rank."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import Data, origins
from tests.execution.paper import executed, held, placed

_HEAD = """
def places(numbers, down=False):
    return numbers.argsort(descending=down)
import numpy as np
import torch
import torch.nn.functional as F
from collections import Counter
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp
ddp.setup()
ddp.seed_ranks()
data = TensorDataset(torch.randn(48, 4), torch.randint(0, 3, (48,)), torch.randint(1, 5, (48,)))
loader = DataLoader(data, batch_size=ddp.local_batch(12), sampler=ddp.DistributedSampler(data, shuffle=False))
model = nn.Linear(4, 3)
for x, y, lengths in loader:
    _, order = torch.sort(lengths, descending=True)
    _, back = order.sort()
"""


def lies(line: str) -> str:
    return placed(executed(f"{_HEAD}    {line}\n"), "out")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("x[order] | y", id="by a sort"),
        pytest.param("x[x[:, 0].sort()[1]] | y", id="by a number of each"),
        pytest.param("x[torch.argsort(lengths)] | y", id="by argsort"),
        pytest.param("x[lengths.numpy().argsort()] | y", id="by numpy"),
        pytest.param("x.index_select(0, order) | y", id="index_select"),
        pytest.param("x | y[order]", id="the targets"),
        pytest.param("x[order][order] | y[order]", id="twice"),
        pytest.param("torch.stack(list(reversed(x))) | y", id="reversed"),
        pytest.param("torch.stack(list(x)[::-1]) | y", id="from behind"),
        pytest.param("x[places(lengths)] | y[places(y)]", id="by one function of two things"),
        pytest.param("x[places(lengths)] | y[places(lengths, True)]", id="by one function in two directions"),
        pytest.param("x[order] | y[torch.argsort(x[:, 0])]", id="by two things"),
    ],
)
def test_samples_and_targets_in_two_orders(given: str) -> None:
    x, y = given.split(" | ")
    ex = executed(f"{_HEAD}    out = F.cross_entropy(model({x}), {y})\n")
    assert placed(ex, "out") == "per rank"
    assert "samples that meet in two orders" in {o.word for d in held(ex, "out") if isinstance(d, Data) for o in origins(d.origin)}


@pytest.mark.parametrize("rows", ["x[order]", "model(x[order])", "torch.stack(list(reversed(x)))"])
def test_samples_of_all_ranks_are_not_in_the_order_that_each_rank_has(rows: str) -> None:
    assert lies(f"out = ddp.batch_rows({rows})") == "unknown"
    assert lies("out = ddp.batch_rows(model(x[order])[back])") == lies("out = ddp.batch_rows(model(x))") == "partial(mean)"


def test_samples_that_are_put_at_other_places() -> None:
    assert lies("kept = torch.zeros_like(x)\n    kept[order] = x\n    out = F.cross_entropy(model(kept), y)") == "per rank"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("out = F.cross_entropy(model(x[order]), y[order])", id="both sorted"),
        pytest.param("out = F.cross_entropy(model(x[order])[back], y)", id="and back"),
        pytest.param("i = places(lengths)\n    out = F.cross_entropy(model(x[i]), y[i])", id="by places that a function gives"),
        pytest.param("kept = torch.zeros_like(x)\n    kept[order] = x[order]\n    out = F.cross_entropy(model(kept), y)", id="put back at its place"),
        pytest.param("out = F.cross_entropy(model(x[order])[torch.argsort(order)], y)", id="and back by argsort"),
        pytest.param("out = F.cross_entropy(model(x.index_select(0, order)), y.index_select(0, order))", id="index_select"),
        pytest.param("out = F.cross_entropy(model(torch.stack(list(reversed(x)))), torch.stack(list(reversed(y))))", id="both reversed"),
        pytest.param("out = F.cross_entropy(model(torch.stack([r for r in x])), y)", id="one by one"),
        pytest.param("out = F.cross_entropy(model(x[torch.arange(len(x))]), y)", id="the order that they have"),
        pytest.param("out = F.cross_entropy(model(x + torch.randn_like(x[order])), y)", id="noise of the size of sorted ones"),
        pytest.param("out = F.cross_entropy(model(0.5 * x + 0.5 * x[torch.randperm(len(x))]), y)", id="mixed with others that are drawn"),
    ],
)
def test_samples_and_targets_in_one_order(line: str) -> None:
    assert lies(line) == "partial(mean)"


@pytest.mark.parametrize(
    "count",
    [
        "len(set(y.tolist()))", "len(frozenset(y.tolist()))", "len({v for v in y.tolist()})", "len({v: 1 for v in y.tolist()})", "len(dict.fromkeys(y.tolist()))",
        "len(Counter(y.tolist()))", "len(list(set(y.tolist())))", "len(sorted(set(y.tolist())))", "sum(1 for c in set(y.tolist()))", "len(y.unique())",
    ],
)  # fmt: skip
def test_how_many_different_ones_a_rank_has(count: str) -> None:
    assert lies(f"out = {count}") == "per rank"


@pytest.mark.parametrize(("count", "lying"), [("len(y.tolist())", "size"), ("len(set(range(len(x))))", "size"), ("len(set(['a', 'b']))", "uniform"), ("len({k: 1 for k in 'ab'})", "uniform")])
def test_how_many_there_are(count: str, lying: str) -> None:
    assert lies(f"out = {count}").startswith(lying)
