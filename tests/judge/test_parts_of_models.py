"""Models that are parts of another one, and that functions outside of classes are given by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import proving
from dpmigrate.model import Status
from dpmigrate.settings import Settings

_PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def slope(x, net):
    return net.slope(x)


def solve(x, net, turns):
    for _ in range(turns):
        x = x + 0.1 * slope(x, net)
    return x


class Field(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.a = nn.Linear(width, width)

    def slope(self, x):
        return torch.tanh(self.a(x))


class Flow(nn.Module):
    def __init__(self, field, head):
        super().__init__()
        self.field = field
        self.head = head

    def forward(self, x):
        return self.head(solve(x, self.field, self.field.width))


class Pull(nn.Module):
    def forward(self, net, x):
        return solve(x, net, 2).pow(2).mean()


field, head = Field(4), nn.Linear(4, 1)
flow = Flow(field, head)
loader = DataLoader(TensorDataset(torch.randn(48, 4), torch.randn(48, 1)), batch_size=8, shuffle=True)
of_field = torch.optim.SGD(field.parameters(), lr=0.1)
of_head = torch.optim.SGD(head.parameters(), lr=0.01)
for epoch in range(2):
    for x, y in loader:
        of_field.zero_grad()
        of_head.zero_grad()
        loss = nn.functional.mse_loss({out}, y){more}
        loss.backward()
        of_field.step()
        of_head.step()
"""


def _planned(folder: Path, out: str = "flow(x)", more: str = "") -> tuple[Status, str, str]:
    script = folder / "train.py"
    script.write_text(_PROGRAM.format(out=out, more=more))
    outcome, files = proving.migration(script, Settings())
    return outcome.status, outcome.reason, files[script].decode() if files else ""


def test_a_part_that_functions_are_lent_is_no_model_of_its_own(tmp_path: Path) -> None:
    status, reason, text = _planned(tmp_path)
    assert (status, reason) == (Status.CHANGED, "")
    assert text.count("ddp.wrap(") == 1
    assert "flow = ddp.wrap(Flow(field, head))\n" in text
    assert "ddp.method" not in text


@pytest.mark.parametrize(
    ("out", "more"),
    [
        pytest.param("flow(x)", " + field.slope(x).pow(2).mean()", id="its own method"),
        pytest.param("solve(x, flow.field, 3)", "", id="past the model"),
    ],
)
def test_a_part_that_trains_beside_its_model(out: str, more: str, tmp_path: Path) -> None:
    status, _, text = _planned(tmp_path, out, more)
    assert status is Status.REFUSED, text


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(" + solve(x, field, 2).pow(2).mean()", id="the function"),
        pytest.param(" + Pull()(field, x)", id="a module that it is no part of"),
    ],
)
def test_a_part_with_a_wrapper_of_its_own(more: str, tmp_path: Path) -> None:
    """Both wrappers put the gradients of its parameters together, to the same mean."""
    status, reason, text = _planned(tmp_path, more=more)
    assert (status, reason) == (Status.CHANGED, "")
    assert "field = ddp.wrap(field)\nflow = ddp.wrap(Flow(field.module, head))\n" in text
    assert 'ddp.method(net, "slope")(x)' in text
