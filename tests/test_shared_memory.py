"""A feed of the program's own whose order is shuffled by another name, or by something that shares its memory: all ranks have to draw the same order."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from dpmigrate import engine
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings

_PROGRAM = """\
import random
import numpy as np
import torch
from torch import nn


def mix(rows):
    np.random.shuffle(rows)


class Feed:
    def __init__(self, x, y, size):
        self.x, self.y, self.size = x, y, size
        self.order = {made}
        self.shown = [0, 1, 2]

    def __iter__(self):
        {inside}
        for i in range(len(self.x) // self.size):
            rows = self.order[i * self.size : (i + 1) * self.size]
            yield self.x[rows], self.y[rows]


def main():
    feed = Feed(torch.randn(96, 8), torch.randint(0, 2, (96,)), 12)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        {between}
        for x, y in feed:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
"""
_TENSOR, _ARRAY, _LIST = "torch.arange(len(x))", "np.arange(len(x))", "list(range(len(x)))"


def applied(folder: Path, between: str = "pass", made: str = _TENSOR, inside: str = "pass") -> tuple[Outcome, str]:
    path = folder / "train.py"
    path.write_text(_PROGRAM.format(made=made, inside=indent(inside, " " * 8).strip(), between=indent(between, " " * 8).strip()))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    return outcome, str(outcome.files[-1].after)


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        pytest.param(_TENSOR, "order = feed.order.numpy()\nnp.random.shuffle(order)", id="an array of a tensor"),
        pytest.param(_TENSOR, "order = np.asarray(feed.order)\nnp.random.shuffle(order)", id="asarray"),
        pytest.param(_TENSOR, "order = memoryview(feed.order.numpy())\nrandom.shuffle(order)", id="memoryview"),
        pytest.param(_TENSOR, "order = feed.order\norder.copy_(torch.randperm(96))", id="a tensor that is copied to"),
        pytest.param(_TENSOR, "order = feed.order[:]\norder.random_(0, 96)", id="a view of a tensor"),
        pytest.param(_TENSOR, "first, n = feed.order.numpy(), 48\nnp.random.shuffle(first[:n])", id="a part of it"),
        pytest.param(_TENSOR, "order = feed.order.numpy()\norder[:] = np.random.permutation(order)", id="given by slices"),
        pytest.param(_ARRAY, "order = feed.order\nnp.random.shuffle(order)", id="an array"),
        pytest.param(_ARRAY, "order = torch.from_numpy(feed.order)\norder.copy_(torch.randperm(96))", id="a tensor of an array"),
        pytest.param(_ARRAY, "order = feed.order.tolist()\nrandom.shuffle(order)\nfeed.order = np.array(order)", id="a list that is stored again"),
        pytest.param(_LIST, "order = feed.order\nrandom.shuffle(order)", id="a list"),
        pytest.param(_LIST, "held = [feed.order]\nrandom.shuffle(held[0])", id="a list in a list"),
    ],
)
def test_all_ranks_draw_one_order(made: str, lines: str, tmp_path: Path) -> None:
    outcome, text = applied(tmp_path, lines, made)
    assert outcome.status is Status.CHANGED, outcome
    drawing = next(line for line in lines.splitlines() if any(w in line for w in ("shuffle", "random_", "randperm", "permutation")))
    assert f"        with ddp.same_stream():\n            {drawing}\n" in text


def test_in_a_function_all_ranks_draw_one_order(tmp_path: Path) -> None:
    outcome, text = applied(tmp_path, "order = feed.order.numpy()\nmix(order)")
    assert outcome.status is Status.CHANGED, outcome
    assert "    with ddp.same_stream():\n        np.random.shuffle(rows)\n" in text
    assert text.count("same_stream") == 1


def test_within_the_feed(tmp_path: Path) -> None:
    outcome, text = applied(tmp_path, inside="order = self.order.numpy()\nnp.random.shuffle(order)")
    assert outcome.status is Status.CHANGED, outcome
    assert "        with ddp.same_stream():\n            np.random.shuffle(order)\n" in text


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("order = feed.order.numpy()\norder[:] = order[::-1].copy()", id="turned round"),
        pytest.param("some = list(range(5))\nrandom.shuffle(some)\nprint(some)", id="something else"),
        pytest.param("weights = np.ones(8)\nnp.random.shuffle(weights)\nprint(weights)", id="an array of its own"),
        pytest.param("order = feed.order.numpy()\nprint(order[:3])", id="only read"),
        pytest.param("print(torch.randn(3))", id="another draw"),
    ],
)
def test_what_is_not_of_the_order_stays(lines: str, tmp_path: Path) -> None:
    outcome, text = applied(tmp_path, lines)
    assert outcome.status is Status.CHANGED, outcome
    assert "same_stream" not in text
