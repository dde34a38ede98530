"""Whether the rows of a tensor are the samples of a batch, each in its place."""

from __future__ import annotations

import pytest

from dpmigrate.facts.rows import Rows
from tests.facts.probe import probed

_PROGRAM = """
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
model = nn.Linear(3, 2)
criterion = nn.CrossEntropyLoss(reduction="none")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=8)
table = torch.zeros(10, 2)
for x, y in loader:
    z = model(x)
    moved = x.cuda().float()
    x = x.cuda()
    both = torch.cat([x, x])
    probe({expression})
    loss = criterion(z, y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("table", "a table"),
        ("both", "put together in the step"),
        ("x.t()", "turned"),
        ("x.T", "turned"),
        ("x[y > 0]", "chosen"),
        ("x[::2]", "every second"),
        ("z.mean(0)", "the samples are gone"),
        ("z.sum()", "all is gone"),
        ("x.view(-1, 1)", "an element each"),
        ("x.flatten()", "an element each"),
        ("x.shape", "no tensor"),
        ("unknown(x)", "a function that is not seen"),
    ],
)
def test_other_rows(expression: str, why: str) -> None:
    found, node = probed(_PROGRAM.format(expression=expression))
    assert not Rows(found.roles).samples(node), why


@pytest.mark.parametrize(
    "expression",
    ["x", "y.float()", "moved", "z", "-z", "z * table", "z[:, 0]", "z.mean(1)", "F.softmax(z, dim=1)", "x.view(len(x), -1)", "x.flatten(1)", "criterion(z, y)"],
)
def test_rows_are_samples(expression: str) -> None:
    found, node = probed(_PROGRAM.format(expression=expression))
    assert Rows(found.roles).samples(node)
