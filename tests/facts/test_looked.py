"""Batches taken with ``next()`` that train nothing, and the loops in which a model is measured on them."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tests.pipeline import script

_TOP = """\
import torch
from torch.utils.data import DataLoader
a = DataLoader(one)
b = DataLoader(two)
model = torch.nn.Linear(1, 1)
other = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1)
class Meter:
    def __init__(self):
        self.sum = 0
    def update(self, value):
        self.sum += value
meter = Meter()
it, val = iter(a), iter(b)
"""
_STEP = "while True:\n    x = next(it)\n    model(x).mean().backward()\n    optimizer.step()\n"
_INLINE = "while True:\n    x = next(it)\n    loss = model(x).mean() + {}\n    loss.backward()\n    optimizer.step()\n    if t:\n        for i in range(9):\n            {}\n"


def _sources(text: str) -> tuple[list[str], list[str]]:
    roles = script(_TOP + dedent(text)).roles
    return [ast.unparse(b.source) for b in roles.train_feeds], [ast.unparse(b.source) for b in roles.eval_loops]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("def two():\n    total = 0\n    for i in range(2):\n        total = total + model(next(val)).mean()\n    return total\nwhile True:\n    two().backward()", id="returned into a loss"),
        pytest.param("def two():\n    return [model(next(val)) for i in range(2)]\nwhile True:\n    sum(two()).mean().backward()", id="returned at once into a loss"),
        pytest.param("while True:\n    total = 0\n    for i in range(2):\n        total += model(next(val)).mean()\n    total.backward()", id="an accumulation of losses"),
        pytest.param("while True:\n    kept = []\n    for i in range(2):\n        kept.append(model(next(val)).mean())\n    sum(kept).backward()", id="a list of losses"),
        pytest.param("while True:\n    kept = {}\n    for i in range(2):\n        kept[i] = model(next(val)).mean()\n    sum(kept.values()).backward()", id="a dict of losses"),
        pytest.param("class K:\n    pass\nk = K()\nwhile True:\n    for i in range(2):\n        k.x = model(next(val))\n    k.x.mean().backward()", id="an attribute"),
        pytest.param("while True:\n    for i in range(2):\n        x = next(val)\n        print(model(x))\n    model(x).mean().backward()", id="the last batch trains"),
        pytest.param("def go():\n    model(x).mean().backward()\nwhile True:\n    for i in range(2):\n        x = next(val)\n        print(model(x))\n    go()", id="a function trains with it"),
        pytest.param("while True:\n    for i in range(2):\n        loss = model(next(val)).mean()\n        loss.backward()", id="it trains"),
        pytest.param("def keep(x):\n    global kept\n    kept = x\nwhile True:\n    if t:\n        keep(next(val))\n    model(kept).mean().backward()", id="a global of a function"),
    ],
)  # fmt: skip
def test_batches_that_train(text: str) -> None:
    train, measured = _sources(text)
    assert train and set(train) == {"b"}
    assert measured == []


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        pytest.param(_STEP + "    if t:\n        for i in range(9):\n            print(next(val))", [], id="no model is called"),
        pytest.param(_STEP + "    if t:\n        y = next(val)\n        print(model(y))", [], id="one batch"),
        pytest.param("for i in range(9):\n    print(model(next(it)))\n" + _STEP, [], id="of the training loader"),
        pytest.param("for x in a:\n    model(x).mean().backward()\nfor y in b:\n    print(model(y))\n    for k in range(2):\n        print(model(next(val)))", ["b"], id="inside another evaluation"),
        pytest.param(_STEP + "    if t:\n        for i in range(9):\n            print(model(next(val)))", ["b"], id="under a test in the step's loop"),
        pytest.param(_STEP + "for i in range(9):\n    x = next(val)\n    print(model(x))", ["b"], id="after training"),
        pytest.param("def go(it):\n    for i in range(9):\n        y = next(it)\n        print(model(y))\n" + _STEP + "    go(val)", ["it"], id="a function"),
        pytest.param(
            "def go(data):\n    its = iter(DataLoader(data))\n    right = 0\n    for p in model.parameters():\n        p.requires_grad = False\n"
            "    for i in range(9):\n        right += (model(its.next()) > 0).sum()\n        meter.update(right)\n    return right / 9\n" + _STEP + "    best = max(best, go(two))",
            ["DataLoader(data)"], id="a function that builds the loader, stores and returns",
        ),
        pytest.param("def one_of(it):\n    y = next(it)\n    return (model(y) > 0).sum().item()\n" + _STEP + "    print(sum(one_of(val) for i in range(9)))", [], id="a function for each batch, in no loop"),
        pytest.param("def one_of(it):\n    y = next(it)\n    return (model(y) > 0).sum().item()\n" + _STEP + "    if t:\n        for i in range(9):\n            n += one_of(val)", ["it"], id="a function for each batch"),
        pytest.param("def get():\n    return model(next(val))\n" + _STEP + "    if t:\n        for i in range(9):\n            print(get())", ["b"], id="a function that returns what the model says"),
        pytest.param(_STEP + "    if t:\n        right = 0\n        for i in range(9):\n            x = next(val)\n            right += model(x)\n        kept.append(right)\n        print(right)", ["b"], id="a list that is kept"),
        pytest.param(_STEP + "    if t:\n        with torch.no_grad():\n            for i in range(9):\n                print(model(next(val)))", ["b"], id="without gradients"),
        pytest.param(_STEP + "    if t:\n        for i in range(9):\n            seen = {}\n            seen[i] = model(next(val))\n            print(seen)", ["b"], id="items"),
        pytest.param(_STEP + "    if t:\n        seen = {}\n        for i in range(9):\n            seen[i] = model(next(val))\n        kept[t] = seen", ["b"], id="items that are kept"),
        pytest.param(_INLINE.format("0", "best = max(best, model(next(val)).mean())"), ["b"], id="the best so far"),
    ],
)  # fmt: skip
def test_batches_that_train_nothing(text: str, measured: list[str]) -> None:
    train, found = _sources(text)
    assert train == ["a"]
    assert found == measured


def test_a_number_that_weighs_the_loss_is_not_told_from_a_loss() -> None:
    train, measured = _sources(_INLINE.format("best", "best = max(best, model(next(val)).mean())"))
    assert (train, measured) == (["a", "b"], [])
