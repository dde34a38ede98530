"""What changes a model's parameters after it is wrapped."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.parameters import changes
from tests.pipeline import script

_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        return self.fc(x)
    def freeze(self):
        self.fc.weight.requires_grad = False
    def nothing(self):
        pass
other = Net()
model = Net()
{before}
model = nn.DataParallel(model)
{after}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    loss = model(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _found(before: str, after: str) -> list[tuple[str, str]]:
    return [(ast.unparse(c.node), c.kind) for c in changes(script(_PROGRAM.format(before=before, after=after)))]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("model.fc = nn.Linear(3, 2)", "", id="a layer, before the wrap"),
        pytest.param("for p in model.parameters(): p.requires_grad = False", "", id="frozen before the wrap"),
        pytest.param("", "other.fc = nn.Linear(3, 2)", id="a layer of another model"),
        pytest.param("", "for p in other.parameters(): p.requires_grad_(False)", id="another model is frozen"),
        pytest.param("", "model.module.name = 'net'", id="no layer"),
        pytest.param("", "model.module.nothing()", id="a method that freezes nothing"),
        pytest.param("", "x.requires_grad = True", id="a tensor"),
        pytest.param("", "model.requires_grad_(False)\nmodel.requires_grad_(True)", id="frozen and thawed as a whole"),
    ],
)
def test_as_ddp_has_seen_them(before: str, after: str) -> None:
    assert _found(before, after) == []


@pytest.mark.parametrize(
    ("after", "node", "kind"),
    [
        ("for p in model.module.fc.parameters(): p.requires_grad = False", "p.requires_grad", "frozen"),
        ("model.module.fc.requires_grad_(False)", "model.module.fc.requires_grad_(False)", "frozen"),
        ("model.module.freeze()", "model.module.freeze()", "method"),
        ("model.module.fc = nn.Linear(3, 2)", "model.module.fc", "layer"),
        ("model.module.add_module('head', nn.Linear(3, 2))", "model.module.add_module('head', nn.Linear(3, 2))", "added"),
        ("nn.utils.weight_norm(model.module.fc)", "nn.utils.weight_norm(model.module.fc)", "added"),
        ("model.module.half()", "model.module.half()", "type"),
    ],
)
def test_otherwise_than_ddp_has_seen_them(after: str, node: str, kind: str) -> None:
    assert _found("", after) == [(node, kind)]
