"""In which region of the program a node runs."""

from __future__ import annotations

import pytest

from tests.facts.probe import all_probed

_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader, val_loader = DataLoader(data, batch_size=8), DataLoader(val, batch_size=8)
def shared(x):
    probe("both")
    return model(x)
def step(x):
    probe("train")
def measure(x):
    probe("eval")
def alone():
    probe("outside")
probe("outside")
for epoch in range(3):
    probe("outside")
    for x, y in loader:
        probe("train")
        step(x)
        with torch.no_grad():
            probe("eval")
        loss = shared(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in val_loader:
            probe("eval")
            measure(x)
            shared(x)
alone()
"""


@pytest.mark.parametrize("index", range(9))
def test_regions(index: int) -> None:
    found, nodes = all_probed(_PROGRAM)
    assert len(nodes) == 9
    assert found.roles.region(nodes[index]) == nodes[index].value, nodes[index].lineno  # type: ignore[attr-defined]
