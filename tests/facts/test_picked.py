"""Which training batches the program picks at random by itself, and what has a row for each of their samples."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from tests.pipeline import script

_TOP = """\
import random
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
X, Y = torch.randn(200, 4), torch.randint(0, 2, (200,))
text = torch.randint(0, 4, (900,))
rng = np.random.default_rng(0)
size, device, cuda = 16, "cpu", False
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_STEP = """\
loss = F.cross_entropy(model(x), y)
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""


def _picked(drawn: str, before: str = "", step: str = _STEP) -> list[tuple[str, bool]]:
    """What each rank is to take its rows of in a loop that begins with ``drawn``, and whether it is a call that gives batches."""
    text = f"{_TOP}{dedent(before)}\nfor step in range(10):\n{indent(dedent(drawn) + step, '    ')}"
    loops = [b for b in script(text).roles.train_loops if b.picked]
    return [(ast.unparse(p.rows), p.called) for b in loops for p in b.picked]


@pytest.mark.parametrize(
    "draw",
    [
        "torch.randint(0, len(X), (size,))",
        "torch.randint(len(X), size=[size])",
        "torch.randperm(len(X))[:size]",
        "np.random.randint(0, len(X), size)",
        "np.random.choice(len(X), size, replace=False)",
        "np.random.choice(len(X), size=(size,))",
        "np.random.permutation(len(X))[:size]",
        "rng.integers(0, len(X), size=size)",
        "random.sample(range(len(X)), size)",
        "random.choices(range(len(X)), k=size)",
        "rng.choice(len(X), size)",
    ],
)
def test_draws_of_indices(draw: str) -> None:
    assert _picked(f"ix = {draw}\nx, y = X[ix], Y[ix]\n") == [(draw, False)]
    assert _picked("x, y = batch()\n", f"def batch():\n    ix = {draw}\n    return X[ix], Y[ix]") == [("batch()", True)]


@pytest.mark.parametrize(
    "drawn",
    [
        pytest.param("ix = torch.randint(0, len(X), (size, 2))\nx, y = X[ix], Y[ix]\n", id="along two axes"),
        pytest.param("i = random.randrange(len(X))\nx, y = X[i : i + size], Y[i : i + size]\n", id="neighbours"),
        pytest.param("i = np.random.randint(0, len(X))\nx, y = X[i : i + 1], Y[i : i + 1]\n", id="one number"),
        pytest.param("order = torch.randperm(len(X))\nx, y = X[order], Y[order]\n", id="all samples"),
        pytest.param("ix = torch.randperm(len(X))[size:]\nx, y = X[ix], Y[ix]\n", id="all but some"),
        pytest.param("n = torch.randint(0, len(X), (size,))\nx, y = X + n.max(), Y\n", id="no index"),
        pytest.param("x, y = X, Y\nix = torch.randint(0, len(X), (size,))\nz = X[ix]\n", id="not trained on"),
        pytest.param("ix = random.choices(range(len(X)), chances)\nx, y = X[ix], Y[ix]\n", id="one index, by chances"),
        pytest.param("ix = torch.randint(*shape, (size,))\nx, y = X[ix], Y[ix]\n", id="arguments that are not seen"),
    ],
)
def test_no_draws_of_indices(drawn: str) -> None:
    assert _picked(drawn) == []


@pytest.mark.parametrize(
    "body",
    [
        "return torch.stack([text[i : i + 4] for i in ix]).float(), torch.stack([text[i] % 2 for i in ix])",
        "x = X[ix]\n    y = Y[ix]\n    x, y = x.to(device), y.to(device)\n    return x, y",
        "x, y = X[ix], Y[ix]\n    if cuda:\n        x, y = x.pin_memory().to(device), y.pin_memory().to(device)\n    else:\n        x, y = x.to(device), y.to(device)\n    return x, y",
        "return (X[ix].cuda() if cuda else X[ix]), Y[ix, ...]",
        "rows = [text[i : i + 5].numpy() for i in ix.tolist()]\n    both = torch.from_numpy(np.stack(rows)).long()\n    return both[:, :-1].float(), both[:, 0]",
        "return {'x': X[ix], 'y': Y[ix]}",
    ],
)
def test_functions_that_make_batches(body: str) -> None:
    taken = "got = batch()\nx, y = got['x'], got['y']\n" if "{" in body else "x, y = batch()\n"
    assert _picked(taken, f"def batch():\n    ix = torch.randint(0, len(X) - 5, (size,))\n    {body}") == [("batch()", True)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return X[ix].t(), Y[ix]", id="turned over"),
        pytest.param("return torch.stack([X[i] for i in ix], 1), Y[ix]", id="stacked along another axis"),
        pytest.param("return torch.stack([X[i] for i in ix], dim=1), Y[ix]", id="stacked along another axis, by name"),
        pytest.param("return X[:, ix], Y[ix]", id="columns"),
        pytest.param("return torch.stack([X[i] for i in ix if i > 3]), Y[ix]", id="some of them"),
        pytest.param("return X[ix], Y[ix][:3]", id="the first ones"),
        pytest.param("return X[ix], size", id="a number"),
        pytest.param("return X[ix].mean(0), Y[ix]", id="a mean"),
        pytest.param("rows = torch.arange(3)[:, None]\n    return X[ix, rows], Y[ix]", id="for each of several columns"),
        pytest.param("return torch.cat([X[ix], X[ix]]), Y[ix]", id="end to end"),
        pytest.param("x = []\n    for i in ix:\n        x.append(X[i])\n    return torch.stack(x), Y[ix]", id="filled by a loop"),
        pytest.param("x = X[ix]\n    x = x.t()\n    return x, Y[ix]", id="turned over afterwards"),
        pytest.param("yield X[ix], Y[ix]", id="a generator"),
        pytest.param("global Y\n    Y = Y.flip(0)\n    return X[ix], Y", id="all of something"),
    ],
)
def test_functions_that_make_something_else(body: str) -> None:
    assert _picked("x, y = batch()\n", f"def batch():\n    ix = torch.randint(0, len(X), (size,))\n    {body}") == []


@pytest.mark.parametrize(
    "drawn",
    [
        "ix = torch.as_tensor(np.random.choice(len(X), size)).to(device)\nx, y = X[ix], Y[ix]\n",
        "x = torch.stack([X[i] for i in np.random.choice(len(X), size).tolist()])\ny = x[:, 0].long()\n",
        "x = X[np.random.choice(len(X), size), :]\ny = x[:, 0].long()\n",
    ],
)
def test_indices_that_are_converted(drawn: str) -> None:
    assert _picked(drawn) == [("np.random.choice(len(X), size)", False)]


def test_a_batch_that_is_drawn_ahead() -> None:
    """The first batch is drawn before the loop, and each further one behind the pass."""
    before = "def batch():\n    ix = torch.randint(0, len(X), (size,))\n    return X[ix], Y[ix]\nx, y = batch()"
    assert _picked("", before, "loss = F.cross_entropy(model(x), y)\nx, y = batch()\nloss.backward()\noptimizer.step()\n") == [("batch()", True)] * 2


def test_a_loader_feeds_the_step() -> None:
    text = f"{_TOP}loader = torch.utils.data.DataLoader(list(zip(X, Y)), 4)\nfor x, y in loader:\n    ix = torch.randint(0, 4, (2,))\n    x, y = x[ix], y[ix]\n"
    loops = script(text + indent(_STEP, "    ")).roles.train_loops
    assert [b.picked for b in loops] == [()]


def test_what_is_taken_already() -> None:
    text = _TOP.replace("import torch\n", "import torch\nimport dpmigrate_runtime as ddp\n", 1)
    taken = "for step in range(10):\n    ix = ddp.local_rows(torch.randint(0, len(X), (size,)))\n    x, y = X[ix], Y[ix]\n"
    (loop,) = script(text + taken + indent(_STEP, "    ")).roles.train_loops
    assert [p.done for p in loop.picked] == [True]


_MEMORY = """\
class Memory:
    def __init__(self):
        self.x, self.y, self.place = X.clone(), Y.clone(), 0

    def add(self, x, y):
        self.x[self.place], self.y[self.place] = x, y
        self.place += 1

    def batch(self):
        ix = np.random.randint(0, self.place, size=size)
        return self.x[ix], self.y[ix]

memory = Memory()
rows = []
"""


@pytest.mark.parametrize(
    ("drawn", "at"),
    [
        ("ix = torch.randint(0, len(X), (size,))\nx, y = X[ix], Y[ix]\n", ""),
        ("ix = torch.randint(0, len(X), (size,))\nx, y = X[ix], Y[ix]\nrows.append(0)\n", ""),
        ("X[step] = 0\nix = torch.randint(0, len(X), (size,))\nx, y = X[ix], Y[ix]\n", "X[step]"),
        ("X[step] = 0\nx = torch.stack([X[i] for i in torch.randint(0, len(X), (size,)).tolist()])\ny = x[:, 0].long()\n", "X[step]"),
        ("rows.append((X[step], 1))\nchosen = random.sample(rows, size)\nx = torch.stack([r[0] for r in chosen])\ny = Y[:size]\n", "rows.append((X[step], 1))"),
        ("x, y = memory.batch()\n", ""),
        ("memory.add(X[step], 1)\nx, y = memory.batch()\n", "self.x[self.place]"),
    ],
)
def test_samples_that_change_while_training_runs(drawn: str, at: str) -> None:
    text = f"{_TOP}{_MEMORY}\nfor step in range(10):\n{indent(drawn + _STEP, '    ')}"
    (loop,) = script(text).roles.train_loops
    assert {"" if p.grown is None else ast.unparse(p.grown) for p in loop.picked} == {at}
