"""The numbers of a batch by which training goes in later steps, and which of them can be made those of the global batch."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from tests.pipeline import script

_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def score(v):
    return v.mean().item()


def main():
    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64)), batch_size=16, shuffle=True)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weight, other, low = 1.0, 1.0, 1.0
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y) * weight * other
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
{moved}


main()
"""


@pytest.mark.parametrize(
    ("moved", "parts"),
    [
        pytest.param("weight = 0.9 * weight + 0.1 * y.mean().item()", ["y.mean().item()"], id="a mean of the batch"),
        pytest.param("low = y.mean().item()\nweight = low + 1\nother = 0.5 * y.abs().mean().item()", ["y.mean().item()", "y.abs().mean().item()"], id="two"),
        pytest.param("weight = score(y)", ["v.mean().item()"], id="in a function"),
        pytest.param("weight = score(y)\nother = score(torch.sort(y)[0][:1])", [], id="in a function that is given a rank's own as well"),
        pytest.param("low = torch.sort(y)[0][0].item()\nweight = score(y * low)", [], id="made of a number that cannot be put together"),
        pytest.param("weight = score(y * weight)", ["v.mean().item()"], id="made of what it has moved"),
    ],
)
def test_what_is_put_together(moved: str, parts: list[str]) -> None:
    found = script(_PROGRAM.format(moved=indent(moved, " " * 12)))
    found.shown_steering = True
    assert [ast.unparse(p.node) for p in found.moving.parts] == parts
