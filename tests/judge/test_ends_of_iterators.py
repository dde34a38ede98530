"""The end of an iterator of the program: whether all ranks come to it in the same turn, and what is written on the way to it."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from dpmigrate.program import Program
from dpmigrate.source import Source, parse
from tests.pipeline import blocked, findings, migrate

_PROGRAM = """\
import random
import numpy as np
import torch
from torch import nn


class Pages:
    def __init__(self, x, y, n):
        self.x, self.y, self.n, self.at = x, y, n, 0
        self.upto, self.tired, self.scale, self.gone = len(x), False, 1.0, 1.0
        self.order = torch.arange(len(x))

    def __iter__(self):
        self.at = 0
        return self

    def __next__(self):
{ends}
        rows = self.order[self.at : self.at + self.n]
        self.at += self.n
        return self.x[rows], self.y[rows]


pages = Pages(torch.randn(128, 6), torch.randn(128, 1), 16)
model = nn.Linear(6, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(4):
    {before}
    for x, y in pages:
        value = (model(x) - y).pow(2).mean()
        opt.zero_grad()
        (pages.scale * value).backward()
        opt.step()
        {after}
"""
_PLAIN = "if self.at >= len(self.x):\n    raise StopIteration"


def _program(ends: str, before: str = "pass", after: str = "pass") -> str:
    return _PROGRAM.format(ends="\n".join(f"        {line}" for line in ends.splitlines()), before=before, after=after)


def _shown(text: str) -> bool:
    result = migrate(text)
    if result is None:
        return False
    source = parse(result.encode(), "train.py")
    assert isinstance(source, Source)
    found = judge.judged(Program.of(source))
    return found.means and not found.doubts and not found.faults


@pytest.mark.parametrize(
    ("ends", "before", "after"),
    [
        pytest.param(_PLAIN, "pass", "pass", id="by a counter"),
        pytest.param("if self.at >= self.upto:\n    self.scale = 0.5\n    raise StopIteration", "pass", "pass", id="a number that all ranks have"),
        pytest.param("if self.at >= len(self.x) or self.tired:\n    raise StopIteration", "pass", "pages.tired = value.item() < 0.1", id="by a mean of losses"),
        pytest.param(_PLAIN, "np.random.shuffle(pages.order.numpy())", "pass", id="an order that is changed through a view"),
        pytest.param(_PLAIN, "pages.order = torch.randperm(128)", "pass", id="another order"),
        pytest.param("if self.at >= self.upto:\n    raise StopIteration", "pages.upto = 16 * random.randint(2, 8)", "pass", id="a drawn part of the data"),
        pytest.param(
            "try:\n    if self.at >= len(self.x):\n        raise IndexError\nexcept IndexError:\n    self.order = torch.randperm(len(self.x))\n    raise StopIteration",
            "pass", "pass", id="an order that a handler draws",
        ),
    ],
)  # fmt: skip
def test_ends_to_which_all_ranks_come(ends: str, before: str, after: str) -> None:
    text = _program(ends, before, after)
    assert not blocked(findings(text))
    assert _shown(text)
    drawn = "rand" in ends + before
    assert ("same_stream()" in (migrate(text) or "")) is drawn


@pytest.mark.parametrize(
    ("ends", "after"),
    [
        pytest.param("if self.at >= len(self.x):\n    self.scale = 8 / self.gone\n    raise StopIteration", "pages.gone += value.item()", id="of sums so far"),
        pytest.param("if self.at >= len(self.x) or self.gone < 0.1:\n    raise StopIteration", "pages.gone = (x * y).max().item()", id="by the rank's rows"),
    ],
)
def test_ends_that_differ_are_not_shown(ends: str, after: str) -> None:
    assert not _shown(_program(ends, "pass", after))


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param("if self.at >= len(self.x) or random.random() < 0.1:\n    raise StopIteration", id="if"),
        pytest.param("if self.at >= len(self.x):\n    raise StopIteration\nelif self.at > 64 and random.random() < 0.1:\n    raise StopIteration", id="elif"),
    ],
)
def test_draws_in_tests_are_refused(ends: str) -> None:
    assert ["every rank would have its own" in f.message for f in blocked(findings(_program(ends)))] == [True]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("shift = torch.linspace(0, 1, 16)[:, None]", "print((x + shift).sum())\n        (model(x + shift) - y).pow(2).mean().backward()", id="given the size"),
        pytest.param("shift = torch.zeros(6).repeat(16, 1)", "(model(x + shift) - y).pow(2).mean().backward()", id="repeated"),
    ],
)
def test_rows_that_are_made_before_for_a_whole_batch_are_refused(before: str, after: str) -> None:
    found = blocked(findings(_program(_PLAIN, before, after)))
    assert ["shift" in f.message for f in found] == [True]


@pytest.mark.parametrize(
    ("before", "refused"),
    [
        ("w = torch.randn(6, 16)", False),
        ("w = torch.zeros((6, 16))", False),
        ("w = torch.zeros(16, 6).T", True),
        ("w = torch.linspace(0, 1, 16)", True),
        ("w = torch.zeros(1, 16, 6)", True),
    ],
)
def test_a_number_of_features_is_none_of_samples(before: str, refused: bool) -> None:
    found = blocked(findings(_program(_PLAIN, before, "(model(x) + (x[:, :6] @ w).mean() - y).pow(2).mean().backward()")))
    assert bool(found) is refused


def test_a_whole_batch_taken_before_the_loop_is_refused() -> None:
    text = _PROGRAM.replace("for epoch in range(4):\n    {before}\n    for x, y in pages:\n", "u, v = next(pages)\nfor step in range(7):\n    if step < 9:\n        x, y = next(pages)\n")
    text = text.format(ends="        if self.at >= len(self.x):\n            self.at = 0", after="u = x").replace("model(x)", "model(x + u)")
    assert ["u (line" in f.message for f in blocked(findings(text))] == [True]
