"""The names of classes that programs derive from are those that the classes have."""

from __future__ import annotations

import importlib
from typing import Generic

import pytest

from dpmigrate.execution.values import const
from dpmigrate.library.public_attributes import BASES_BY_NAME
from tests.execution.paper import executed, held, placed

_PROGRAM = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
for x, y in DataLoader(TensorDataset(torch.ones(8, 3), torch.ones(8)), 4):
    pass

class Net(nn.Module):
    def __init__(self, more):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        if more:
            self.scale = nn.Linear(3, 2)
    def forward(self, x):
        {forward}
"""


@pytest.mark.parametrize("name", BASES_BY_NAME)
def test_an_object_has_no_attribute_beside(name: str) -> None:
    module, _, word = name.rpartition(".")
    made = getattr(importlib.import_module(module), word)()
    own = {n for n in dir(made) if not n.startswith("__")} - set(dir(Generic))
    assert own <= BASES_BY_NAME[name]


@pytest.mark.parametrize(
    "forward",
    [
        "return self.layer(x) + (self.scale(x) if hasattr(self, 'scale') else 0.0)",
        "scale = getattr(self, 'scale', None)\n        return self.layer(x) if scale is None else scale(x)",
    ],
)
def test_an_attribute_of_a_module_is_there_or_not(forward: str) -> None:
    text = _PROGRAM.format(forward=forward)
    ex = executed(f"{text}a, b, c = Net(False)(x), Net(True)(x), Net(len(sys.argv) > 2)(x)\n")
    assert [placed(ex, n) for n in "abc"] == ["rows(axis 0)"] * 3


@pytest.mark.parametrize(
    "more",
    [
        "    def __getattr__(self, name):\n        return load(name)\n",
        "    def set(self):\n        setattr(self, load('name'), load('layer'))\n",
    ],
)
def test_it_may_be_there_where_a_class_says_what_it_has(more: str) -> None:
    text = _PROGRAM.format(forward="return getattr(self, 'scale', 0.0)") + more
    ex = executed(f"from elsewhere import load\n{text}n = Net(False)\n{'n.set()' if 'set' in more else ''}\na = n(x)\n")
    assert held(ex, "a") != const(0.0)
