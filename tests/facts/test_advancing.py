"""Batches of objects and functions that count by themselves: ``__next__``, ``while``, ``next()``, ``__getitem__``."""

from __future__ import annotations

import ast

import pytest

from tests.pipeline import script

_TOP = """\
import numpy as np
import torch
from torch import nn

X, Y = torch.randn(50, 4), torch.randn(50, 1)
{defs}
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
at = 0
for epoch in range(3):
    for {head}:
        {body}
        loss = ((model(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
_NEXT = """\
class Batches:
    def __init__(self, a, b, size):
        self.a, self.b, self.size, self.at = a, b, size, 0
    def __iter__(self):
        self.at = 0
        return self
    def __next__(self):
        if self.at >= len(self.a):
            raise StopIteration
        {cut}
        return {given}
made = Batches(X, Y, 8)
"""
_NUMBERED = """\
class Batches:
    def __init__(self, rows, size):
        self.rows, self.size, self.index = rows, size, 0
        self.full = len(rows) // size
        self.rest = len(rows) % size != 0
    def put(self, rows):
        return torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows])
    def __next__(self):
        if self.rest and self.index == self.full:
            rows = self.rows[self.index * self.size:{end}]
            self.index += 1
            return self.put(rows)
        elif self.index >= self.full:
            self.index = 0
            raise StopIteration
        else:
            rows = self.rows[self.index * self.size:(self.index + 1) * self.size]
            self.index += 1
            return self.put(rows)
    def __iter__(self):
        return self
made = Batches(list(zip(X, Y)), 8)
"""
_WHILE = """\
def batches(a, b, size):
    order = np.random.permutation(len(a))
    start = 0
    while start < len(a):
        end = {end}
        part = order[start:end]
        yield a[part], b[part]
        start = {next}
"""
_INNER = """\
class Loader:
    def __init__(self, a, b, size):
        self.a, self.b, self.size, self.current, self.n = a, b, size, 0, len(a)
    def get_iterator(self):
        self.current = 0
        def inner():
            while self.current < self.n // self.size:
                start = self.size * self.current
                end = min(self.n, self.size * (self.current + 1))
                yield self.a[start:end, ...], self.b[start:end, ...]
                self.current += 1
        return inner()
made = {"train": Loader(X, Y, 8), "val": Loader(X, Y, 8)}
"""
_PARTS = """\
class Parts:
    def __init__(self, a, b, size):
        self.a, self.b, self.size = a, b, size
    def __len__(self):
        return len(self.a) // self.size
    def __getitem__(self, i):
        {low}
        return self.a[low:low + self.size], self.b[low:low + self.size]
made = Parts(X, Y, 8)
"""


def _cut(head: str, defs: str = "", body: str = "pass") -> list[str]:
    """What is divided in the training loop, as written."""
    found = script(_TOP.format(head=head, body=body, defs=defs))
    return [ast.unparse(p.rows) for loop in found.roles.train_loops for p in loop.picked]


_AFTER = "self.a[self.at - self.size:self.at], self.b[self.at - self.size:self.at]"


@pytest.mark.parametrize(
    ("head", "defs", "body", "divided"),
    [
        pytest.param("x, y in made", _NEXT.format(cut="lo = self.at\n        self.at += self.size", given="self.a[lo:lo + self.size], self.b[lo:self.at]"), "pass", ["made"], id="advanced between the bounds"),
        pytest.param("x, y in made", _NEXT.format(cut="self.at += self.size", given=_AFTER), "pass", ["made"], id="advanced before"),
        pytest.param("x, y in made", _NEXT.format(cut="end = self.at + self.size\n        a, b = self.a[self.at:end], self.b[self.at:end]\n        self.at = end", given="a, b"), "pass", ["made"], id="set to the end"),
        pytest.param("i, (x, y) in enumerate(made)", _NUMBERED.format(end="len(self.rows)"), "pass", ["made"], id="a number of batches with a rest"),
        pytest.param("x, y in made", _NUMBERED.format(end=""), "pass", ["made"], id="an open rest"),
        pytest.param("x, y in batches(X, Y, 8)", _WHILE.format(end="min(start + size, len(a))", next="end"), "pass", ["batches(X, Y, 8)"], id="while, to the end"),
        pytest.param("x, y in batches(X, Y, 8)", _WHILE.format(end="start + size", next="start + size"), "pass", ["batches(X, Y, 8)"], id="while, by the size"),
        pytest.param("x, y in made['train'].get_iterator()", _INNER, "pass", ["made['train'].get_iterator()"], id="a generator in a method"),
        pytest.param("x, y in made", _PARTS.format(low="low = i * self.size"), "pass", ["made"], id="items by their numbers"),
        pytest.param("i in range(len(made))", _PARTS.format(low="low = i * self.size"), "x, y = made[i]", ["made[i]"], id="one item after the other"),
        pytest.param("i in range(6)", "", "x, y = X[at:at + 8], Y[at:at + 8]\n        at += 8", ["X[at:at + 8]", "Y[at:at + 8]"], id="a number beside the loop"),
        pytest.param("i in range(6)", _WHILE.format(end="start + size", next="end") + "stream = batches(X, Y, 8)\n", "x, y = next(stream)", ["next(stream)"], id="next()"),
    ],
)  # fmt: skip
def test_batches_that_are_counted_by_hand(head: str, defs: str, body: str, divided: list[str]) -> None:
    assert _cut(head, defs, body) == divided


@pytest.mark.parametrize(
    ("head", "defs", "body"),
    [
        pytest.param("x, y in made", _NEXT.format(cut="self.at += 1", given="self.a[self.at:self.at + 8], self.b[self.at:self.at + 8]"), "pass", id="windows"),
        pytest.param("x, y in made", _NEXT.format(cut="lo = self.at\n        self.at += self.size", given="self.a[lo:self.at + self.size], self.b[lo:self.at + self.size]"), "pass", id="overlapping"),
        pytest.param("x, y in made", _NEXT.format(cut="self.at += self.size", given="self.a[self.at], self.b[self.at]"), "pass", id="one sample"),
        pytest.param("x, y in made", _NEXT.format(cut="lo = self.at\n        self.at += self.size", given="self.a[lo:self.at].t(), self.b[lo:self.at]"), "pass", id="another axis"),
        pytest.param("x, y in made", _NEXT.format(cut="lo = self.at\n        if len(self.a) % 3:\n            self.at += self.size\n        hi = self.at", given="self.a[lo:hi], self.b[lo:hi]"), "pass", id="advanced under a test"),
        pytest.param("x, y in made", _NEXT.format(cut="lo = self.at\n        self.at += self.size", given="self.a[lo:], self.b[lo:self.at]"), "pass", id="all that is left beside a batch"),
        pytest.param("x, y in batches(X, Y, 8)", _WHILE.format(end="start + size", next="start + 1"), "pass", id="while, sample by sample"),
        pytest.param("x, y in made", _PARTS.format(low="low = i"), "pass", id="items that overlap"),
        pytest.param("i in range(6)", "", "x, y = X[at:at + 8], Y[at:at + 8]\n        at += 1", id="windows by a number beside the loop"),
    ],
)  # fmt: skip
def test_what_is_no_batch_after_the_other(head: str, defs: str, body: str) -> None:
    assert _cut(head, defs, body) == []


_EVALUATING = _NEXT.format(cut="lo = self.at\n        self.at += self.size", given="self.a[lo:self.at], self.b[lo:self.at]") + """
def measure(model, batches):
    right, seen = 0, 0
    with torch.no_grad():
        for a, b in batches:
            if len(a) < 8:
                continue
            right += ((model(a) - b) > 0).sum().item()
            seen += len(a)
    return right / seen
"""


def test_an_evaluation_in_the_step_has_whole_batches() -> None:
    """What goes by the length of its batches says nothing of the step's."""
    body = "if measure(model, Batches(X, Y, 8)) > 0.9:\n            print('good')"
    assert _cut("x, y in made", _EVALUATING, body) == ["made"]


def test_what_is_given_the_batch_goes_by_its_length() -> None:
    body = "if measure(model, [(x, y)]) > 0.9:\n            print('good')"
    assert _cut("x, y in made", _EVALUATING, body) == []


def test_what_is_shown_of_a_count() -> None:
    """A share of a rank's own samples is told elsewhere (DPM602)."""
    shown = "at += len(x)\n        said = 3 / at\n        print(said)"
    used = "at += len(x)\n        said = 3 / at\n        opt.param_groups[0]['lr'] = said"
    assert _cut("x, y in made", _EVALUATING, shown) == ["made"]
    assert _cut("x, y in made", _EVALUATING, used) == []
