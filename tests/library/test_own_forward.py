"""Modules whose objects are given the method that runs when they are called."""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, placed

BEFORE = """\
import copy, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
for a, b in DataLoader(TensorDataset(torch.ones(4, 3), torch.ones(4, 3)), 2):
    pass
class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        if kind == 'each':
            self.forward = self.each
        elif kind == 'together':
            self.forward = self.together
    def each(self, x):
        return self.layer(x)
    def together(self, x):
        return x - self.layer(x).mean(0)
class Other(Net):
    def forward(self, x):
        return x.std(0)
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = Net('each')(a)", "rows(axis 0)"),
        ("x = Net('together')(a)", "per rank"),
        ("x = Net(sys.argv[1])(a)", "per rank"),
        ("x = Other('each')(a)", "rows(axis 0)"),
        ("x = Other(sys.argv[1])(a)", "per rank"),
        ("n = Net('each')\nn.forward = lambda x: x\nx = n(a)", "unknown"),
        ("x = copy.deepcopy(Net('each'))(a)", "unknown"),
    ],
)
def test_the_method_that_an_object_was_given_runs(text: str, wanted: str) -> None:
    assert placed(executed(BEFORE + text + "\n"), "x") == wanted
