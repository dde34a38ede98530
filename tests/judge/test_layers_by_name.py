"""Layers that a model goes through by ``_modules``: each is called as one of its own, and what is stored there is a part of the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings

_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Chain(nn.Sequential):
    def forward(self, *held):
        for layer in self._modules.values():
            held = layer(*held) if {test} else layer(held)
        return held


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.Linear(3, 3)

    def forward(self, x):
        return self.own(x), x


class Add(nn.Module):
    def forward(self, x, y):
        return x + y


class Centre(nn.Module):
    def forward(self, x):
        return x - x.mean(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}


loader = DataLoader(TensorDataset(torch.randn(48, 3), torch.randn(48, 3)), batch_size=12, shuffle=True)
model = Net()
{after}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_ALL = "for name, layer in self._modules.items():\n            x = layer(x)\n        return x"
_TWO = "self.first = nn.Linear(3, 3)\n        self.last = {}"


def applied(folder: Path, init: str, forward: str = "return self.net(x)", after: str = "", test: str = "isinstance(held, tuple)") -> tuple[Outcome, str]:
    path = folder / "train.py"
    path.write_text(_PROGRAM.format(init=init, forward=forward, after=after, test=test))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    return outcome, str(outcome.files[-1].after)


@pytest.mark.parametrize("test", ["isinstance(held, tuple)", "type(held) == tuple", "type(held) is tuple", "type(held) in (tuple, list)", "not type(held) != tuple"])
@pytest.mark.parametrize("layers", ["Both(), Add(), nn.Linear(3, 3)", "*[nn.Linear(3, 3) for _ in range(int(torch.randint(1, 4, ())))]"])
def test_a_chain_that_takes_several(tmp_path: Path, layers: str, test: str) -> None:
    outcome, _ = applied(tmp_path, f"self.net = Chain({layers})", test=test)
    assert outcome.status is Status.CHANGED, outcome


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        pytest.param(_TWO.format("nn.Linear(3, 3)"), _ALL, id="attributes"),
        pytest.param(
            "for i in range(3):\n            self.add_module(f'at{i}', nn.Linear(3, 3))",
            "for i in range(3):\n            x = self._modules[f'at{i}'](x)\n        return x", id="by computed names",
        ),
        pytest.param("self.net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())", "return self.net._modules['1'](self.net._modules['0'](x))", id="of a part"),
        pytest.param(_TWO.format("None"), "for layer in self._modules.values():\n            x = layer(x) if layer is not None else x\n        return x", id="no layer"),
    ],
)  # fmt: skip
def test_layers_of_a_module(tmp_path: Path, init: str, forward: str) -> None:
    outcome, after = applied(tmp_path, init, forward)
    assert outcome.status is Status.CHANGED, outcome
    assert "ddp.wrap(model)" in after or "ddp.wrap(Net())" in after


def test_a_layer_that_is_left_out(tmp_path: Path) -> None:
    outcome, after = applied(tmp_path, _TWO.format("nn.Linear(3, 3)"), _ALL.replace("x = layer(x)", "x = layer(x) if name == 'first' else x"))
    assert outcome.status is Status.CHANGED, outcome
    assert "find_unused=True" in after


@pytest.mark.parametrize(
    ("init", "forward", "after"),
    [
        pytest.param(_TWO.format("Centre()"), _ALL, "", id="an attribute"),
        pytest.param(_TWO.format("Centre()").replace("last", "grad_free"), _ALL, "", id="of any name"),
        pytest.param("self.net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())", "return self.net(x)", "model.net._modules['1'] = Centre()", id="put in later"),
        pytest.param("self.net = Chain(nn.Linear(3, 3), nn.ReLU())", "return self.net(x)", "model.net._modules.update({'1': Centre()})", id="put in with others"),
    ],
)
def test_samples_that_meet_in_a_layer(tmp_path: Path, init: str, forward: str, after: str) -> None:
    """They were taken for samples that do not, where the layer was put into the model by its dictionary."""
    outcome, text = applied(tmp_path, init, forward, after)
    assert outcome.status is Status.REFUSED or "ddp.batch_mean(x.mean(0))" in text, outcome
