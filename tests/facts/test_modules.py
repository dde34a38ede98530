"""Which module classes training runs, and what runs in a training step."""

from __future__ import annotations

import pytest

from tests.facts.probe import all_probed
from tests.pipeline import script

_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))
class Net(Base):
    def forward(self, x):
        probe("step")
        if self.training:
            probe("step, training")
        else:
            probe("step, evaluating")
        return self.helper(x)
    def helper(self, x):
        probe("step")
        if self.training:
            return x
        probe("step, evaluating")
        return x
    def report(self):
        probe("")
class Loss(nn.Module):
    def forward(self, z):
        probe("step")
        return z.sum()
class Unused(nn.Module):
    def forward(self, z):
        return z
net, criterion = Net(), Loss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
probe("")
for x, y in DataLoader(data, batch_size=8):
    probe("step")
    loss = criterion(net(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    for x, y in DataLoader(val, batch_size=8):
        probe("")
        net(x)
net.report()
"""


@pytest.mark.parametrize("index", range(10))
def test_where_a_node_runs(index: int) -> None:
    found, nodes = all_probed(_PROGRAM)
    node, modules = nodes[index], found.modules
    said = [w for w, holds in (("step", modules.in_step(node)), ("training", modules.training_alone(node)), ("evaluating", modules.evaluating(node))) if holds]
    assert ", ".join(said) == node.value  # type: ignore[attr-defined]


def test_the_classes_and_what_they_register() -> None:
    modules = script(_PROGRAM).modules
    assert [c.name for c in modules.of_models] == ["Net"]
    assert [c.name for c in modules.classes] == ["Net", "Loss"]
    net = modules.of_models[0]
    assert (modules.registered(net, "register_buffer"), modules.registered(net, "register_parameter")) == ({"seen"}, set())
    assert {f.name for f in modules.entered} == {"forward", "helper"}


def test_nothing_trains() -> None:
    found = script("from torch import nn\nnet = nn.Linear(3, 2)\n")
    assert found.modules.classes == [] and found.modules.entered == set() and not found.modules.in_step(found.names.tree.body[1])
