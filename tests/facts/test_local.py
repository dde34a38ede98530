"""What of a loss is made of the rank's own part of the batch alone."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts import local
from tests.facts.probe import probed

_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader
model = nn.Linear(3, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    z = model(x)
    loss = criterion(z, y)
    {lines}
    probe(loss)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _last(lines: str) -> tuple[object, ast.expr, ast.Name]:
    """The roles, what the loss is given last, and where it is read."""
    found, read = probed(_PROGRAM.format(lines=lines.replace("\n", "\n    ")))
    assert isinstance(read, ast.Name)
    given = [s for s in found.names.nodes if isinstance(s, ast.Assign | ast.AugAssign) and "loss" in ast.unparse(s).split("=")[0]]
    return found.roles, given[-1].value, read


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("pass", id="no choice"),
        pytest.param("if epoch > 3:\n    loss = loss * 2", id="a counter"),
        pytest.param("if x.size(0) > 3:\n    loss = loss * 2", id="a size"),
        pytest.param("if isinstance(z, tuple):\n    loss = loss * 2", id="what it is"),
        pytest.param("if z is None:\n    loss = loss * 2", id="whether it is"),
    ],
)
def test_all_ranks_choose_alike(lines: str) -> None:
    roles, value, read = _last(lines)
    assert local.chosen(roles, value, read) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize("test", ["loss > 1", "z.max() < 3", "(y == 1).any()"])
def test_each_rank_chooses_by_its_part(test: str) -> None:
    roles, value, read = _last(f"if {test}:\n    loss = loss * 2")
    assert test in local.chosen(roles, value, read)  # type: ignore[arg-type]


@pytest.mark.parametrize("lines", ["for p in model.parameters():\n    loss = loss + p.norm()", "for k in range(3):\n    loss = loss + criterion(z, y)"])
def test_a_loop_over_something_else(lines: str) -> None:
    roles, value, read = _last(lines)
    assert local.repeated(roles, value, read) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "surely"),
    [
        ("for k in range(x.size(0)):\n    loss = loss + criterion(z[k], y[k])", True),
        ("for a, b in zip(x, y):\n    loss = loss + criterion(model(a), b)", False),
    ],
)
def test_a_loop_over_the_samples(lines: str, surely: bool) -> None:
    roles, value, read = _last(lines)
    over = local.repeated(roles, value, read)  # type: ignore[arg-type]
    assert over is not None and over.surely is surely


@pytest.mark.parametrize(("expression", "own"), [("model.weight.sum()", False), ("3", False), ("z.mean()", True), ("y.size(0)", True)])
def test_a_number_that_weighs(expression: str, own: bool) -> None:
    found, node = probed(_PROGRAM.format(lines="pass").replace("probe(loss)", f"probe({expression})"))
    assert bool(local.number(found.roles, node, node)) is own
