"""Losses that divide by weights, of which these cannot be read where they are called: one of several by an option, targets that are computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings

PROGRAM = """
import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--loss", default="hard")
args = parser.parse_args()
rare = torch.tensor([1.0, 4.0, 9.0])


class Hard(nn.Module):
    def forward(self, scores, y):
        each = F.cross_entropy(scores, y, reduction="none")
        return (each * (1 - torch.exp(-each))).mean()


class Root(nn.CrossEntropyLoss):
    def forward(self, scores, y):
        return super().forward(scores, y).sqrt()


def weighed(scores, y):
    weight = rare[y]
    return (F.cross_entropy(scores, y, reduction="none") * weight).sum() / weight.sum().clamp_min(1e-6)


def main():
    loader = DataLoader(TensorDataset(torch.randn(60, 4), torch.randint(0, 3, (60,))), batch_size=12, shuffle=True)
    held_out = DataLoader(TensorDataset(torch.randn(20, 4), torch.randint(0, 3, (20,))), batch_size=12)
    model = nn.Linear(4, 3)
    {made}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            out = model(x)
            loss = {loss}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {evaluated}


if __name__ == "__main__":
    main()
"""
_CHOSEN = "criterion = nn.CrossEntropyLoss(weight=rare) if args.loss == 'rare' else Hard()"
_HOOKED = "ddp.weighted_loss(nn.CrossEntropyLoss(weight=rare))"


def applied(folder: Path, made: str = _CHOSEN, loss: str = "criterion(out, y)", evaluated: str = "") -> tuple[Outcome, str]:
    path = folder / "train.py"
    path.write_text(PROGRAM.format(made=made, loss=loss, evaluated=evaluated))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    return outcome, str(outcome.files[-1].after)


@pytest.mark.parametrize(
    ("made", "loss", "expected"),
    [
        pytest.param(_CHOSEN, "criterion(out, y)", [f"criterion = {_HOOKED} if args.loss"], id="a module of the program"),
        pytest.param(
            "criterion = nn.CrossEntropyLoss(weight=rare) if args.loss == 'rare' else weighed", "criterion(out, y)",
            [f"criterion = {_HOOKED} if args.loss", "/ ddp.mean_count(weight.sum()).clamp_min(1e-6 / ddp.world_size())"], id="a function that divides by weights itself",
        ),
        pytest.param(
            "criterion = {'rare': nn.CrossEntropyLoss(weight=rare), 'plain': nn.CrossEntropyLoss(), 'margin': nn.MultiMarginLoss()}[args.loss]",
            "criterion(out, y) / 2", [f"'rare': {_HOOKED}, 'plain': nn.CrossEntropyLoss(), "], id="in a table",
        ),
        pytest.param(
            "kind = nn.CrossEntropyLoss if args.loss == 'rare' else nn.MultiMarginLoss\n    criterion = kind(weight=rare)", "criterion(out, y)",
            ["criterion = ddp.weighted_loss(kind(weight=rare))"], id="of several classes",
        ),
        pytest.param(
            "criterion = nn.CrossEntropyLoss(ignore_index=2).to('cpu')", "criterion(out, torch.remainder(y + 1, 3))",
            ["criterion = ddp.weighted_loss(nn.CrossEntropyLoss(ignore_index=2)).to('cpu')"], id="targets that are computed",
        ),
        pytest.param(_CHOSEN, "torch.sqrt(criterion(out, y))", [f"criterion = {_HOOKED} if", "ddp.weighted_mean((each * (1 - "], id="a root of it, and of a mean"),
        pytest.param(
            f"{_CHOSEN}\n    other = nn.CrossEntropyLoss(weight=rare)", "criterion(out, y) + other(out, y)",
            [f"criterion = {_HOOKED} if", "+ ddp.weighted_mean(other(out, y), ddp.weight_of(y, weight=other.weight, "], id="beside one that can be read",
        ),
        pytest.param(
            "other = nn.CrossEntropyLoss(weight=rare)\n    criterion = other if args.loss == 'rare' else Hard()", "criterion(out, y) + other(out, y)",
            [f"other = {_HOOKED}", "loss = criterion(out, y) + other(out, y)"], id="one that is also called by itself",
        ),
    ],
)  # fmt: skip
def test_weights_of_all_ranks(tmp_path: Path, made: str, loss: str, expected: list[str]) -> None:
    outcome, after = applied(tmp_path, made, loss)
    assert outcome.status is Status.CHANGED, outcome
    assert not [part for part in expected if part not in after], after


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        pytest.param(_CHOSEN, "criterion.forward(out, y)", id="past its hooks"),
        pytest.param(_CHOSEN, "criterion(out, y) + (criterion(out, y) if y[0] == 1 else 0)", id="where a rank may not come"),
        pytest.param(_CHOSEN, "sum(criterion(out[i : i + 1], y[i : i + 1]) for i in range(len(out))) / len(out)", id="of each sample"),
        pytest.param(_CHOSEN, "1 / criterion(out, y)", id="a function of it, and of a mean"),
        pytest.param("criterion = Root(weight=rare)", "criterion(out, y)", id="a class of the program"),
        pytest.param("criterion = nn.CrossEntropyLoss(weight=y.float().mean() * rare)", "criterion(out, y)", id="weights of nothing that is known"),
    ],
)
def test_what_stays_refused(tmp_path: Path, made: str, loss: str) -> None:
    outcome, _ = applied(tmp_path, made, loss)
    assert outcome.status is Status.REFUSED, outcome


_EVALUATED = "found = 0.0\n        for x, y in held_out:\n            found += criterion(model(x), y).item()\n        print(found)"


def test_an_evaluation_that_records_gradients(tmp_path: Path) -> None:
    """Its share of batches is each rank's own: the exchange would not find the other ranks."""
    outcome, after = applied(tmp_path, evaluated=_EVALUATED)
    assert outcome.status is Status.CHANGED, outcome
    assert "with torch.no_grad():\n            for x, y in ddp.shard(held_out):" in after


def test_an_evaluation_that_takes_gradients(tmp_path: Path) -> None:
    taken = _EVALUATED.replace("print(found)", "print(found)\n        print(torch.autograd.grad(criterion(model(x), y), model.weight))")
    outcome, _ = applied(tmp_path, evaluated=taken)
    assert outcome.status is Status.REFUSED, outcome
