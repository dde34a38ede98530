"""DPM224: the program picks the samples of each batch at random by itself."""

from __future__ import annotations

import pytest

from dpmigrate.settings import Settings
from tests.pipeline import blocked, findings, migrate

_TOP = """\
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

X, Y = torch.randn(200, 4), torch.randint(0, 2, (200,))
size = 16
{defs}
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
{drawn}
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
_BATCH = """\
def batch():
    ix = torch.randint(0, len(X), (size,))
    return X[ix], Y[ix]


@torch.no_grad()
def estimate():
    total = 0.0
    for _ in range(3):
        x, y = batch()
        total += F.cross_entropy(model(x), y).item()
    return total / 3
"""


def _program(drawn: str, defs: str = "") -> str:
    return _TOP.format(drawn="\n".join(f"    {line}" for line in drawn.splitlines()), defs=defs)


def _loop(drawn: str, defs: str = "") -> str:
    """What becomes of the lines of the loop before the step."""
    result = migrate(_program(drawn, defs))
    assert result is not None
    return result.partition("for step in range(10):\n")[2].partition("    optimizer.zero_grad()")[0]


@pytest.mark.parametrize(
    ("drawn", "becomes"),
    [
        (
            "ix = torch.randint(0, len(X), (size,))\nx, y = X[ix], Y[ix]",
            "    with ddp.same_stream():\n        ix = ddp.local_rows(torch.randint(0, len(X), (size,)))\n    x, y = X[ix], Y[ix]\n",
        ),
        (
            "x = X[torch.randperm(len(X))[:size]]\ny = (x.sum(1) > 0).long()",
            "    with ddp.same_stream():\n        drawn = torch.randperm(len(X))[:size]\n    x = X[ddp.local_rows(drawn)]\n    y = (x.sum(1) > 0).long()\n",
        ),
        ("x, y = batch()", "    with ddp.same_stream():\n        x, y = ddp.local_rows(batch())\n"),
        (
            "if step % 5 == 0:\n    print(estimate())\nx, y = batch()",
            "    if step % 5 == 0:\n        with ddp.same_stream():\n            print(estimate())\n"
            "    with ddp.same_stream():\n        x, y = ddp.local_rows(batch())\n",
        ),
    ],
)
def test_all_ranks_draw_the_batch_of_one_process(drawn: str, becomes: str) -> None:
    assert _loop(drawn, _BATCH if "batch()" in drawn else "") == becomes


def test_a_generator_that_nobody_gives_is_that_of_the_process() -> None:
    batch = _BATCH.replace("def batch():", "def batch(g=None):").replace("(size,))", "(size,), generator=g)")
    assert "    with ddp.same_stream():\n        x, y = ddp.local_rows(batch())\n" in _loop("x, y = batch()", batch)


@pytest.mark.parametrize(
    ("defs", "draw"),
    [
        ("rng = np.random.default_rng(0)", "rng.integers(0, len(X), size)"),
        ("own = torch.Generator().manual_seed(0)", "torch.randint(0, len(X), (size,), generator=own)"),
    ],
)
def test_a_generator_of_the_program_is_the_same_on_all_ranks(defs: str, draw: str) -> None:
    assert _loop(f"ix = {draw}\nx, y = X[ix], Y[ix]", defs) == f"    ix = ddp.local_rows({draw})\n    x, y = X[ix], Y[ix]\n"


def test_what_is_done_is_left_alone() -> None:
    drawn = "if step % 5 == 0:\n    print(estimate())\nx, y = batch()"
    result = migrate(_program(drawn, _BATCH))
    assert result is not None
    assert not [f for f in findings(result) if f.code == "DPM224"]


def test_whole_batches_for_each_rank_are_refused() -> None:
    text = _program("ix = torch.randint(0, len(X), (size,))\nx, y = X[ix], Y[ix]")
    (found,) = blocked(findings(text, Settings(batch="per-rank")))
    assert found.code == "DPM224"
    assert "with --batch per-rank it is not divided" in found.message


def test_other_functions_are_refused_by_what_feeds_the_step() -> None:
    turned = _BATCH.replace("return X[ix], Y[ix]", "return X[ix].t(), Y[ix]")
    found = blocked(findings(_program("x, y = batch()\nx = x.t()", turned)))
    assert [f.code for f in found] == ["DPM901"]


def test_what_is_filled_while_training_runs_is_refused() -> None:
    text = _program("X[step] = 0\nix = torch.randint(0, len(X), (size,))\nx, y = X[ix], Y[ix]")
    (found,) = blocked(findings(text))
    assert found.code == "DPM224"
    assert "drawn from what is changed while training runs (line 12)" in found.message


_PICK = "ix = torch.randint(0, len(X), (size,))\nx, y = X[ix], Y[ix]\n"
_OWN = "import random\nown = torch.Generator().manual_seed(0)\nrng = np.random.default_rng(0)\nbest = 9.0\n"
_FLIPPED = """\
def turned(x):
    for i in range(len(x)):
        if random.random() < 0.5:
            x[i] = -x[i]
    return x
"""


@pytest.mark.parametrize(
    ("drawn", "defs"),
    [
        pytest.param("f = torch.randperm(4)\n" + _PICK + "x = x[:, f]", _OWN, id="columns of the batch"),
        pytest.param("if random.randrange(2):\n    x = -x", _OWN, id="a turn of the whole batch"),
        pytest.param(_PICK + "x = turned(x)", _OWN + _FLIPPED, id="a turn of each sample, in a function"),
        pytest.param(_PICK + "for i in range(len(x)):\n    x[i] *= rng.random()", _OWN, id="for each sample, of a generator that all ranks have alike"),
        pytest.param(_PICK + "x = torch.stack([r * rng.random() for r in x])", _OWN, id="for each sample, in a line"),
        pytest.param(_PICK + "if F.cross_entropy(model(x), y).item() < best:\n    print(torch.rand(1, generator=own))", _OWN, id="under a rank's own test"),
        pytest.param("x, y = batch()", _OWN + _BATCH.replace("    return X[ix]", "    print(random.random())\n    return X[ix]"), id="where the batch is made"),
    ],
)
def test_what_is_drawn_besides_is_refused(drawn: str, defs: str) -> None:
    text = _program(drawn if "x, y" in drawn else _PICK + drawn, defs)
    found = [f for f in blocked(findings(text)) if f.code == "DPM224"]
    assert ["and this besides" in f.message for f in found] == [True]


@pytest.mark.parametrize(
    ("drawn", "defs"),
    [
        pytest.param(_PICK + "x = x + 0.1 * torch.randn_like(x)", "", id="noise for each element"),
        pytest.param(_PICK + "x = F.dropout(x, 0.1)", "", id="dropout"),
        pytest.param(_PICK + "x = x * rng.random()", _OWN, id="a number for the batch, of a generator that all ranks have alike"),
        pytest.param(_PICK + "if step % 5 == 0:\n    print(torch.rand(1, generator=own))", _OWN, id="a generator that all ranks draw from"),
        pytest.param(_PICK + "with torch.no_grad():\n    print(torch.rand(1))", "", id="where nothing is trained"),
    ],
)
def test_what_may_be_drawn_besides(drawn: str, defs: str) -> None:
    assert not blocked(findings(_program(drawn, defs)))
