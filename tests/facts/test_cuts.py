"""What hands out the batches that a program cuts by itself, and which loops are divided for it."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.tiles import counts, number, poly, tile, turn
from tests.pipeline import script

_KNOWN = {"i": turn(), "gone": None}


def _bounds(text: str, step: str = "1") -> bool:
    part = ast.parse(f"x[{text}]", mode="eval").body
    assert isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Slice)
    assert part.slice.lower is not None and part.slice.upper is not None
    by = poly(ast.parse(step, mode="eval").body, {})
    assert by is not None
    return tile(poly(part.slice.lower, _KNOWN), poly(part.slice.upper, _KNOWN), by)


@pytest.mark.parametrize(
    ("bounds", "step"),
    [
        ("i : i + n", "n"), ("i : min(i + n, len(x))", "n"), ("i * n : (i + 1) * n", "1"), ("n * i : n * i + n", "1"), ("i + 5 : 5 + i + 8", "8"),
        ("2 * i : 2 * i + 2 * n", "n"), ("i : i + n if i + n < m else m", "n"), ("i : i + opt.n", "opt.n"),
    ],
)  # fmt: skip
def test_slices_that_lie_end_to_end(bounds: str, step: str) -> None:
    assert _bounds(bounds, step)


@pytest.mark.parametrize(
    ("bounds", "step"),
    [
        ("i : i + n", "1"), ("i : i + n", "m"), ("i : i + 1", "1"), ("i : i", "n"), ("0 : i", "n"), ("i - n : i + n", "n"), ("i : i + gone", "gone"),
        ("k : k + n", "n"), ("i * i : (i + 1) * (i + 1)", "1"),
    ],
)  # fmt: skip
def test_slices_that_do_not(bounds: str, step: str) -> None:
    assert not _bounds(bounds, step)


def test_what_counts() -> None:
    p = poly(ast.parse("3 * (i + n) - n", mode="eval").body, _KNOWN)
    assert p is not None
    assert counts(p)
    assert not counts(number(4))
    assert poly(ast.parse("len(gone)", mode="eval").body, _KNOWN) is None


_TOP = """\
import random
import numpy as np
import torch
from torch import nn

X, Y = torch.randn(50, 4), torch.randn(50, 1)
bs = 8
{defs}
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
{pre}
    for {head}:
{body}
        loss = ((model(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def _indented(lines: str, by: int) -> str:
    return "\n".join(" " * by + line for line in (lines or "pass").splitlines())


def _cut(head: str, body: str = "", pre: str = "", defs: str = "") -> list[str]:
    """What is divided in the training loop, as written."""
    found = script(_TOP.format(head=head, body=_indented(body, 8), pre=_indented(pre, 4), defs=defs))
    return [ast.unparse(p.rows) for loop in found.roles.train_loops for p in loop.picked]


_GENERATOR = """\
def batches(a, b, size):
    order = np.random.permutation(len(a))
    for i in range(0, len(a), size):
        part = order[i:i + size]
        yield a[part], b[part]
"""
_COLLATED = """\
def collate(rows):
    long = max(len(r) for r in rows)
    xs, ys = [], []
    for r in rows:
        xs.append(list(r) + [0] * (long - len(r)))
        ys.append(r[0])
    return torch.tensor(xs), torch.tensor(ys)


class Buckets:
    def __init__(self, rows, size):
        self.parts = self.made(rows, size)

    def made(self, rows, size):
        parts = []
        for k in range(len(rows) // size):
            parts.append(collate(rows[k * size:(k + 1) * size]))
        return parts

    def __iter__(self):
        random.shuffle(self.parts)
        for k in range(len(self.parts)):
            yield self.parts[k]


buckets = Buckets([[1.0, 2.0]] * 40, bs)
"""


@pytest.mark.parametrize(
    ("head", "body", "pre", "defs", "divided"),
    [
        pytest.param("i in range(0, 48, bs)", "x, y = X[i:i + bs], Y[i:i + bs]", "", "", ["X[i:i + bs]", "Y[i:i + bs]"], id="slices"),
        pytest.param("i in range(0, 48, bs)", "p = order[i:i + bs]\nx, y = X[p], Y[p]", "order = torch.randperm(50)", "", ["order[i:i + bs]"], id="an order"),
        pytest.param(
            "k in range(6)", "x, y = X[parts[k]], Y[parts[k]]", "parts = torch.randperm(50)[:48]\nparts = parts.view(6, bs)", "", ["parts[k]", "parts[k]"],
            id="rows of an order",
        ),
        pytest.param("k, p in enumerate(torch.randperm(50).split(bs))", "x, y = X[p], Y[p]", "", "", ["torch.randperm(50).split(bs)"], id="parts"),
        pytest.param("x, y in batches(X, Y, bs)", "", "", _GENERATOR, ["batches(X, Y, bs)"], id="a generator"),
        pytest.param("x, y in buckets", "", "", _COLLATED, ["buckets"], id="an object that hands out lists put together"),
        pytest.param(
            "i in starts", "end = i + bs\nx, y = X[i:end], Y[i:end]", "starts = list(range(0, 48, bs))\nrandom.shuffle(starts)", "",
            ["X[i:end]", "Y[i:end]"], id="starts in another order",
        ),
        pytest.param(
            "i in range(0, 48, bs)", "x, y = ready(X[i:i + bs]), ready(Y[i:i + bs])", "", "def ready(rows):\n    return rows.float()\n",
            ["X[i:i + bs]", "Y[i:i + bs]"], id="slices that a function is given",
        ),
        pytest.param(
            "i in range(0, 48, bs)", "x, y = ready(part(i))", "",
            "def part(at):\n    return X[at:at + bs], Y[at:at + bs]\ndef ready(both):\n    return both\n", ["ready(part(i))"], id="a function of a function",
        ),
        pytest.param("i in range(0, 48, bs)", "x, y = part(i)", "", "def part(at):\n    return X[at:at + bs], Y[at:at + bs]\n", ["part(i)"], id="a function"),
    ],
)  # fmt: skip
def test_batches_that_are_cut(head: str, body: str, pre: str, defs: str, divided: list[str]) -> None:
    assert _cut(head, body, pre, defs) == divided


@pytest.mark.parametrize(
    ("head", "body", "defs"),
    [
        pytest.param("i in range(50)", "x, y = X[i], Y[i]", "", id="one sample after the other"),
        pytest.param("i in range(44)", "x, y = X[i:i + 6], Y[i:i + 6]", "", id="windows"),
        pytest.param("i in range(0, 40, bs)", "x, y = X[i:i + bs], Y[i + 1:i + 1 + bs]", "", id="neighbours"),
        pytest.param("i in range(0, 48, bs)", "x, y = X[i:i + bs], torch.ones(bs, 1)", "", id="made as long as the batch"),
        pytest.param("i in range(0, 48, 8)", "x, y = X[i:i + 8], torch.ones(8, 1)", "", id="as long as the batch, by a number"),
        pytest.param("i in range(0, 48, bs)", "x, y = X[i:i + bs], Y[i]", "", id="something else by the number of the turn"),
        pytest.param("i in range(0, 48, bs)", "x, y = X.t()[:, i:i + bs].t(), Y[i:i + bs]", "", id="another axis"),
        pytest.param("i in range(0, 48, bs)", "x, y = X[i:i + bs], Y[i:i + bs]\nout[i:i + bs] = y", "out = torch.zeros(50, 1)", id="written back"),
        pytest.param("i in range(0, 48, bs)", "x, y = X[i:i + bs], Y[torch.randint(50, (8,))]", "", id="others drawn beside"),
        pytest.param("i in range(0, 48, bs)", "x, y = X[i:i + bs], one(i)", "def one(at):\n    return Y[2 * at]\n", id="a function that takes something else"),
        pytest.param("i in range(0, 48, bs)", "x, y = X[i:i + bs].view(bs, 4), Y[i:i + bs]", "", id="shaped by the size"),
        pytest.param(
            "i in range(0, 48, bs)", "x, y = both(X[i:i + bs], i), Y[i:i + bs]", "def both(rows, at):\n    return rows + X[at:at + 1]\n",
            id="a function that takes something else of a slice beside it",
        ),
        pytest.param("x, y in zip(X, Y)", "", "", id="samples"),
        pytest.param("x, y in batches(X, Y, bs)", "", _GENERATOR.replace("b[part]", "b[part].t()"), id="a generator of what is not seen"),
        pytest.param("x, y in buckets", "", _COLLATED.replace("ys.append(r[0])", "if r[0]:\n            ys.append(r[0])"), id="a list of some"),
        pytest.param("x, y in buckets", "", _COLLATED.replace("    xs, ys = [], []", "    rows = rows[2:]\n    xs, ys = [], []"), id="a batch that is cut again"),
    ],
)
def test_others_are_left_to_their_author(head: str, body: str, defs: str) -> None:
    assert _cut(head, body, defs=defs) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("if len(x) < n:\n            continue", id="a shorter batch is left out"),
        pytest.param("if x.shape[0] == 1:\n            continue", id="a batch of one"),
        pytest.param("if i + len(x) >= len(data):\n            print(i)", id="the place in the data"),
        pytest.param("seen = i + x.size(0)", id="a place in the data"),
        pytest.param("right = (x > 0).sum().item() / n", id="a quotient"),
        pytest.param("count += len(x)\n        if count % 32 == 0:\n            print(count)", id="samples that are counted"),
        pytest.param("count += len(x)\n        rate = 1 / (1 + count)", id="a rate by samples"),
    ],
)
def test_what_goes_by_the_length_of_a_batch(line: str) -> None:
    assert _picked(line) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("print(i / len(data))", id="the place of the whole batch"),
        pytest.param("if i + n > len(data):\n            break", id="the last batch is left out"),
        pytest.param("total += loss.item() * len(x)", id="a total"),
        pytest.param("assert len(x) == x.size(0)", id="two lengths"),
    ],
)
def test_what_goes_by_the_whole_batch(line: str) -> None:
    assert len(_picked(line)) == 1


def test_data_that_are_made_anew() -> None:
    """What is chosen from has to be the same on all ranks; a model draws other rows on each."""
    assert _picked("print(i)", rows="data[order[i : i + n]]", epoch="data = torch.randn(64, 8)") == []
    assert len(_picked("print(i)", rows="data[order[i : i + n]]", epoch="print(epoch)")) == 1


def _picked(line: str, rows: str = "data[i : i + n]", epoch: str = "print(epoch)") -> list[str]:
    text = f"""\
import torch
from torch import nn

data = torch.randn(64, 8)
order = torch.randperm(64)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
n, count, total = 8, 0, 0.0
for epoch in range(2):
    {epoch}
    for i in range(0, len(data), n):
        x = {rows}
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {line}
"""
    return [ast.unparse(p.rows) for b in script(text).roles.train_loops for p in b.picked]


_GIVEN = """\
import torch
from torch import nn

data = torch.randn(64, 8)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def fit(data):
    order = torch.randperm(64)
    for i in range(0, 64, 8):
        part = order[i : i + 8]
        loss = model(data[part]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
for epoch in range(2):
    fit({given})
"""


@pytest.mark.parametrize(("given", "count"), [("data", 1), ("data[torch.randperm(64)]", 0), ("data + torch.randn(64, 8)", 0)])
def test_data_that_a_call_makes(given: str, count: int) -> None:
    assert sum(len(b.picked) for b in script(_GIVEN.format(given=given)).roles.train_loops) == count


def test_single_samples_under_a_name_of_another_function() -> None:
    """``data`` of the function that goes over the samples is another variable than that of the one that gives them."""
    text = _GIVEN.replace("def fit(data):", "def singles(data):\n    for i in range(64):\n        yield data[i]\ndef fit(data):")
    text = text.replace("    order = torch.randperm(64)\n    for i in range(0, 64, 8):\n        part = order[i : i + 8]\n", "    for x in singles(data):\n")
    text = text.replace("data[part]", "x").format(given="data")
    assert [p for b in script(text).roles.train_loops for p in b.picked] == []
