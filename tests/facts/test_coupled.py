"""Where training makes the samples of a batch depend on each other."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.coupled import couplings
from tests.pipeline import script

_PROGRAM = """
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
model = nn.Linear(3, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=8)
table = torch.zeros(10, 2)
for x, y in loader:
    z = model(x)
    loss = criterion(z, y)
    LINE
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _found(line: str) -> list[tuple[str, str]]:
    return [(ast.unparse(c.node), c.kind) for c in couplings(script(_PROGRAM.replace("LINE", line)))]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("pass", id="a loss of samples"),
        pytest.param("scores = z @ table.t()", id="with a table"),
        pytest.param("print(z.std(dim=0))", id="a statistic that is shown"),
        pytest.param("loss = loss + z.std(dim=1).mean()", id="a statistic of each sample"),
        pytest.param("loss = loss + z.softmax(1).max(1).values.mean()", id="a proportion within a sample"),
        pytest.param("first = z[:8]", id="places that go nowhere"),
        pytest.param("z = model(x - x.mean(1, keepdim=True))", id="the model is given what is taken of each sample"),
        pytest.param("print(x.mean(), (x / x.max()).sum())", id="a number of the batch that is shown"),
    ],
)
def test_samples_stay_alone(line: str) -> None:
    assert _found(line) == []


@pytest.mark.parametrize(
    ("line", "node", "kind"),
    [
        ("loss = loss + (z @ z.t()).mean()", "z @ z.t()", "compared"),
        ("loss = F.cross_entropy(table[y] @ z, torch.arange(len(z)))", "F.cross_entropy(table[y] @ z, torch.arange(len(z)))", "classes"),
        ("loss = loss + z.std(dim=0).mean()", "z.std(dim=0)", "statistic"),
        ("loss = loss + z.softmax(0).mean()", "z.softmax(0)", "ordered"),
        ("loss = loss + z[:4].mean()", "z[:4]", "placed"),
        ("loss = loss + torch.svd(z)[1].sum()", "torch.svd(z)", "decomposed"),
        ("loss = loss + model(x - x.mean()).mean()", "x - x.mean()", "given"),
        ("loss = loss + model(input=x / x.max()).mean()", "x / x.max()", "given"),
        ("loss = loss + nt_xent(z, y)", "nt_xent(z, y)", "named"),
    ],
)
def test_samples_meet(line: str, node: str, kind: str) -> None:
    assert _found(line) == [(node, kind)]


def test_classes_are_not_named_beside_their_product() -> None:
    assert _found("loss = F.cross_entropy(z @ z.t(), torch.arange(len(z)))") == [("z @ z.t()", "compared")]
