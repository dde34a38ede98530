"""Parts of a table that each rank takes by numbers of its own, and tensors of sizes of its own."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from tests.judge.trained import result

_TABLES = """\
table = torch.arange(64.).view(32, 2)
ones = torch.ones(32, 1).to('cpu')
full = torch.autograd.Variable(torch.full((32, 1), 0.9), requires_grad=False)
marked = torch.zeros(32, 2)
marked[:, 0] = torch.arange(32)
import lib, os
unseen = lib.table()
drawn = torch.poisson(torch.ones(32, 1), generator=generator)
"""


def _said(step: str) -> list[str]:
    return [f.words for f in judge.faults(result(epoch=_TABLES, step=step)) if "no mean over its samples" in f.words]


@pytest.mark.parametrize(
    "added",
    [
        "ones[:len(x)]",
        "2 * ones[:x.size(0)] - 1",
        "full[:x.shape[0]]",
        "torch.zeros(64, 2)[:len(x)]",
        "torch.ones(1, 32).t().expand(32, 2).unsqueeze(0)[0][:len(x)]",
        "marked.fill_(3)[:len(x)]",
        "torch.full_like(table, 2.0)[:len(x)]",
        "table[:8].mean()",
    ],
)
def test_rows_of_one_number_are_alike(added: str) -> None:
    assert _said(f"x = x + {added}") == []


@pytest.mark.parametrize(
    "added",
    [
        "table[:len(x)]",
        "table[:x.size(0)].mean()",
        "marked.unsqueeze(0)[0][:len(x)]",
        "(marked + ones)[:len(x)]",
        "drawn[:len(x)]",
        "ones.cumsum(0)[:len(x)]",
        "(unseen * ones)[:len(x)]",
        "torch.empty(32, 1)[:len(x)]",
        "torch.ones(64, 2)[8:len(x)].sum()",
        "torch.ones(64, 64)[:len(x), :len(x)].sum()",
    ],
)
def test_the_first_rows_of_a_table_by_how_many_samples_a_rank_has(added: str) -> None:
    assert all("the first rows of a table, as many as a rank has samples" in w for w in _said(f"x = x + {added}"))
    assert _said(f"x = x + {added}")


@pytest.mark.parametrize(
    "step",
    [
        "x = x + table[:int((y == 0).sum())].mean()",
        "own = torch.zeros(int(y[0]), 2)\nown.fill_(1)\nx = x + own.sum()",
        "own = torch.zeros(int(y[0]), 2)\nx = x + own.zero_().add_(1).sum()",
        "x = x + torch.ones_like(torch.zeros(int(y[0]), 2)).sum()",
        "x = x + (torch.zeros_like(table[:int(y[0])]) + 1).sum()",
    ],
)
def test_shapes_of_a_rank_s_own_stay_with_what_is_put_into_them(step: str) -> None:
    assert all("a size of the rank's own" in w for w in _said(step))
    assert _said(step)


def test_what_is_put_into_a_tensor_of_a_common_shape_is_alike() -> None:
    assert _said("own = torch.zeros(3) + y.sum()\nown.zero_()\nx = x + own.sum()") == []


@pytest.mark.parametrize(
    ("number", "right"),
    [
        ("ddp.batch_sum(int(0.7 * len(x)))", False),
        ("ddp.batch_sum(max(1, int(len(x) * rate)))", False),
        ("ddp.batch_sum(int(len(x) / 3))", False),
        ("int(ddp.batch_sum(0.7 * len(x)))", True),
        ("int(0.7 * ddp.batch_sum(len(x)))", True),
        ("ddp.batch_sum(int(2 * len(x))) // 3", True),
    ],
)
def test_what_int_cuts_off_is_that_of_the_global_batch(number: str, right: bool) -> None:
    """``int(0.7 * n)`` of two parts of 8 is 10 together, and 11 of all 16."""
    step = f"x = x * torch.topk(ddp.batch_rows(x[:, 0]), {number}).values.mean()"
    found = [f.words for f in judge.faults(result(epoch="import sys\nrate = float(sys.argv[1])", step=step)) if "loss" in f.words]
    assert bool(found) is not right, found


@pytest.mark.parametrize(
    ("step", "right"),
    [
        ("x = model(x)\nz = nn.BCEWithLogitsLoss()(model(torch.randn(16, 2)), torch.zeros(len(x), 2))", False),
        ("z = nn.functional.mse_loss(model(torch.randn(16, 2)), torch.zeros(len(x), 2))", False),
        ("z = nn.functional.binary_cross_entropy_with_logits(model(x), torch.ones(16, 2))", False),
        ("z = nn.functional.cross_entropy(model(x), torch.zeros(16).long())", False),
        ("z = nn.BCEWithLogitsLoss()(model(torch.randn(len(x), 2)), torch.zeros(len(x), 2))", True),
        ("z = nn.BCEWithLogitsLoss()(model(torch.randn(16, 2)), torch.zeros(16, 2))", True),
        ("z = nn.functional.mse_loss(model(x), torch.zeros(1, 2))", True),
        ("z = nn.functional.cross_entropy(model(x * torch.rand(1)), y)", True),
        ("z = nn.functional.mse_loss(model(x + 0.1 * torch.randn_like(x)), torch.zeros(len(x), 2))", True),
        ("z = nn.functional.mse_loss(model(x), torch.ones_like(model(x)))", True),
        ("z = nn.functional.binary_cross_entropy_with_logits(model(x), torch.tensor(1.0).expand_as(model(x)))", True),
        ("z = nn.functional.binary_cross_entropy_with_logits(model(x), torch.ones(1, 1).expand(len(x), 2))", True),
    ],
)
def test_a_loss_of_a_rank_s_samples_and_of_as_many_rows_as_are_written(step: str, right: bool) -> None:
    words = "a loss of the rank's samples and of as many rows"
    said = [f.words for f in judge.faults(result(step=f"{step}\nx = x + z")) if words in f.words]
    assert bool(said) is not right, said


@pytest.mark.parametrize(
    "step",
    [
        "x[0] = 0.0",
        "x[-1, 1] = 0.0",
        "x[epoch] = 0.0",
        "x[3] = x[3] * 2",
        "for k in range(ddp.batch_sum(len(x))):\n    x[k] = 0.0",
    ],
)
def test_a_sample_that_is_written_by_its_number_is_another_one_on_each_rank(step: str) -> None:
    assert all("index of single samples" in w for w in _said(step))
    assert _said(step)


@pytest.mark.parametrize(
    "step",
    [
        "x[:, 0] = 0.0",
        "x[..., 0] = 0.0",
        "x[y == 1] = 0.0",
        "x[:] = 0.0",
        "for k in range(len(x)):\n    x[k] = 0.0",
        "for k, row in enumerate(x):\n    x[k, 0] = 1.0",
    ],
)
def test_what_is_written_in_all_samples_or_by_what_they_are_stays_theirs(step: str) -> None:
    assert _said(step) == []
