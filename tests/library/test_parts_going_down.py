"""Functions that go down through the parts of a library's model settle, though nobody sees how deep it is."""

from __future__ import annotations

import pytest

from dpmigrate.judge import before
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_HEAD = """
import torch
import torch.nn as nn
from torchvision import models

class Adapter(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.down = nn.Parameter(torch.randn(8, layer.in_features))

    def forward(self, x):
        return self.layer(x) + x @ self.down.T

"""
_ADAPT = """
def adapt(model):
    for name, module in model.named_children():
        if isinstance(module, nn.Linear):
            setattr(model, name, Adapter(module))
        elif len(list(module.children())) > 0:
            adapt(module)

model = models.resnet18()
model.fc = nn.Linear(model.fc.in_features, 10)
adapt(model)
"""
_DOWN = """
def count(model):
    return 1 + sum(count(part) for part in model.children())

print(count(models.resnet18()))
"""
_ALONG = """
part = models.resnet18()
while hasattr(part, "layer"):
    part = part.layer
"""


@pytest.mark.parametrize("text", [_ADAPT, _DOWN, _ALONG], ids=["layers are replaced", "parts are counted", "one part after the other"])
def test_a_way_down_settles(text: str) -> None:
    source = parse(f"{_HEAD}{text}".encode(), "train.py")
    assert isinstance(source, Source)
    result = before(Program.of(source))
    assert result.trace.ended is None
    assert result.cost < 5_000
