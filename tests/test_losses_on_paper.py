"""Losses that are functions of sums and means over the batch: the execution of the result shows of which, whatever the spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

{defined}

def main():
    loader = DataLoader(TensorDataset(torch.randn(60, 4), torch.rand(60, 3)), batch_size=12, shuffle=True)
    held_out = DataLoader(TensorDataset(torch.randn(20, 4), torch.rand(20, 3)), batch_size=12)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, t in loader:
            p = model(x).sigmoid()
            loss = {loss}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {evaluated}


if __name__ == "__main__":
    main()
"""


def applied(folder: Path, loss: str, defined: str = "", evaluated: str = "") -> tuple[Outcome, str]:
    path = folder / "train.py"
    path.write_text(PROGRAM.format(loss=loss, defined=defined, evaluated=evaluated))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    return outcome, str(outcome.files[-1].after)


def codes(outcome: Outcome) -> set[str]:
    return {f.code for file in outcome.files for f in file.findings if not f.edits}


@pytest.mark.parametrize(
    ("defined", "loss", "expected"),
    [
        pytest.param("", "1 - (2 * (p * t).sum() + 1) / ((p + t).sum() + 1)", ["(ddp.batch_sum(2 * (p * t).sum()) + 1) / (ddp.batch_sum((p + t).sum()) + 1)"], id="dice"),
        pytest.param(
            "def overlap(p, t):\n    both = (p * t).sum(0)\n    return (1 - both / (p + t - p * t).sum(0)).mean()",
            "overlap(p, t)",
            ["ddp.batch_sum(both) / ddp.batch_sum((p + t - p * t).sum(0))"],
            id="by class",
        ),
        pytest.param("", "(p - t).pow(2).sum().sqrt()", ["ddp.batch_sum((p - t).pow(2).sum()).sqrt()"], id="the root of a sum, by a method"),
        pytest.param("", "F.mse_loss(p, t) * (p.abs().mean() + 1)", ["ddp.batch_mean(F.mse_loss(p, t)) * ddp.batch_mean(p.abs().mean() + 1)"], id="a product of means"),
        pytest.param("", "10 * torch.log10(F.mse_loss(p, t) / t.max(1)[0].mean())", ["ddp.batch_mean(F.mse_loss(p, t)) / "], id="the logarithm of a quotient"),
        pytest.param(
            "def masked(error, mask, least=1e-6):\n    return (error * mask).sum() / mask.sum().clamp_min(least)",
            "masked((p - t).abs(), (t > 0.5).float())",
            ["ddp.batch_sum((error * mask).sum()) / ddp.batch_sum(mask.sum()).clamp_min(least)"],
            id="a guard that is a parameter",
        ),
        pytest.param(
            "def relative(p, t):\n    loss = (p - t).abs().sum()\n    loss /= t.sum() + 1\n    return loss",
            "relative(p, t)",
            ["loss /= ddp.batch_sum(t.sum()) + 1", "ddp.sum_loss(loss).backward()"],
            id="divided in place",
        ),
        pytest.param(
            "def averaged(p, t):\n    loss = F.mse_loss(p, t)\n    loss /= len(p)\n    return loss",
            "averaged(p, t)",
            ["loss /= ddp.batch_sum(len(p))"],
            id="a mean divided by the size of the batch",
        ),
        pytest.param(
            "def weighed(p, t):\n    many = t.sum()\n    return F.binary_cross_entropy_with_logits(p, t, pos_weight=(t.numel() - many) / many)",
            "weighed(p, t)",
            ["ddp.batch_sum(t.numel() - many) / ddp.batch_sum(many)"],
            id="weights by counts of the batch",
        ),
        pytest.param("", "F.mse_loss(p, t) + (p.sum() - t.sum()) ** 2 / 100", ["F.mse_loss(p, t) + ddp.batch_sum(p.sum() - t.sum()) ** 2"], id="beside a mean"),
    ],
)
def test_functions_of_sums(tmp_path: Path, defined: str, loss: str, expected: list[str]) -> None:
    outcome, after = applied(tmp_path, loss, defined)
    assert outcome.status is Status.CHANGED, outcome
    assert not codes(outcome) & {"DPM302", "DPM303", "DPM305"}
    assert not [part for part in expected if part not in after], after
    # the executions of equal texts are kept, with the nodes of the trees of the first time
    again, after_again = applied(tmp_path, loss, defined)
    assert (again.status, after_again) == (outcome.status, after)


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param("F.mse_loss(p, t)", id="a mean"),
        pytest.param("F.mse_loss(p, t) + 0.1 * sum(w.pow(2).sum().sqrt() for w in model.parameters())", id="functions of parameters"),
        pytest.param("((p - t) / p.norm(dim=1, keepdim=True)).abs().mean()", id="functions of each sample"),
    ],
)
def test_nothing_to_put_together(tmp_path: Path, loss: str) -> None:
    outcome, after = applied(tmp_path, loss)
    assert outcome.status is Status.CHANGED, outcome
    assert "ddp.batch_" not in after


_DICE = "def dice(p, t):\n    return 1 - (2 * (p * t).sum() + 1) / ((p + t).sum() + 1)"


def test_an_evaluation_without_gradients_exchanges_nothing(tmp_path: Path) -> None:
    evaluated = "with torch.no_grad():\n            print(sum(dice(model(x).sigmoid(), t).item() for x, t in held_out))"
    outcome, after = applied(tmp_path, "dice(p, t)", _DICE, evaluated)
    assert outcome.status is Status.CHANGED, outcome
    assert "ddp.batch_sum(2 * (p * t).sum())" in after


_TOLD = "for x, t in held_out:\n            print(dice(model(x).sigmoid(), t).item())"
_ADDED = "total = 0.0\n        for x, t in held_out:\n            total += dice(model(x).sigmoid(), t).item()\n        print(total)"


@pytest.mark.parametrize(
    ("defined", "evaluated", "over"),
    [
        pytest.param(_DICE, _TOLD, "held_out", id="a function of sums, on whole batches of every rank"),
        pytest.param(_DICE, _ADDED, "ddp.shard(held_out)", id="a function of sums, in a share of the batches"),
        pytest.param("def dice(p, t):\n    return F.cross_entropy(p, t[:, 0].long(), ignore_index=0)", _ADDED, "ddp.shard(held_out)", id="a mean over valid targets"),
        pytest.param("def dice(p, t):\n    return F.mse_loss(p, t) + 0.1 * p.pow(2).sum()", _TOLD, "held_out", id="a term that is a sum"),
    ],
)
def test_an_evaluation_with_gradients_goes_without(tmp_path: Path, defined: str, evaluated: str, over: str) -> None:
    """A sum would count the samples by the ranks, and what a part of the ranks computes would wait for the others."""
    outcome, after = applied(tmp_path, "dice(p, t)", defined, evaluated)
    assert outcome.status is Status.CHANGED, outcome
    assert f"        with torch.no_grad():\n            for x, t in {over}:\n" in after


@pytest.mark.parametrize(
    "evaluated",
    [
        pytest.param("print(sum(dice(model(x).sigmoid(), t).item() for x, t in held_out))", id="no statement of its own"),
        pytest.param(
            "for x, t in held_out:\n            x.requires_grad_()\n            made = dice(model(x).sigmoid(), t)\n"
            "            print(made.item(), torch.autograd.grad(made, x)[0].norm())",
            id="it takes gradients",
        ),
    ],
)
def test_an_evaluation_that_cannot_go_without(tmp_path: Path, evaluated: str) -> None:
    outcome, after = applied(tmp_path, "dice(p, t)", _DICE, evaluated)
    assert "ddp.batch_sum" not in after
    assert outcome.status is Status.REFUSED or "DPM305" in codes(outcome)


def test_a_sum_that_meets_the_samples_again(tmp_path: Path) -> None:
    outcome, after = applied(tmp_path, "(p - p.mean()).pow(2).mean()")
    assert "ddp.batch_mean" not in after
    assert outcome.status is Status.REFUSED or codes(outcome) & {"DPM303", "DPM305"}


def test_the_reason_is_what_is_left(tmp_path: Path) -> None:
    """Where the losses are right and something else is not, that is said."""
    outcome, _ = applied(tmp_path, "(t * (p - t).abs()).sum() / max(t.sum(), torch.tensor(1.0 * epoch)) if unheard(t) else dice(p, t)", _DICE)
    assert outcome.status is Status.REFUSED, outcome
