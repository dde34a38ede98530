"""Questions to a whole program."""

from __future__ import annotations

import ast

import pytest

from tests.pipeline import script

_TOP = """
import os, torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, RandomSampler
"""
_STEP = "    for x, y in {loader}:\n        loss = F.mse_loss(model(x), y)\n        loss.backward()\n        optimizer.step()\n"
_MODEL = "model = nn.Linear(3, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


def _program(loader: str, source: str = "loader") -> str:
    return _TOP + _MODEL + loader + "\nfor epoch in range(3):\n" + _STEP.format(loader=source)


@pytest.mark.parametrize(
    ("loader", "answer"),
    [
        pytest.param("loader = DataLoader(data, shuffle=True)", True, id="plain"),
        pytest.param("loader = DataLoader(data, sampler=RandomSampler(data))", True, id="a sampler made in place"),
        pytest.param("s = RandomSampler(data)\nloader = DataLoader(data, sampler=s)", True, id="a sampler by name"),
        pytest.param("def f(s):\n    return DataLoader(data, sampler=s)\nloader = f()", False, id="a sampler from nowhere"),
        pytest.param("s = None\ns = RandomSampler(data)\nloader = DataLoader(data, sampler=s)", True, id="a sampler given last"),
        pytest.param("s = None\nif own:\n    s = RandomSampler(data)\nloader = DataLoader(data, sampler=s)", False, id="a sampler or none"),
        pytest.param("loader = DataLoader(shuffle=True)", False, id="no data"),
        pytest.param("loader = DataLoader(data, batch_sampler=b)", False, id="a batch sampler"),
        pytest.param("loader = DataLoader(data, **kw)", False, id="stars"),
        pytest.param("loader = [DataLoader(d) for d in data][0]", False, id="in a comprehension"),
    ],
)
def test_loaders_that_can_be_read(loader: str, answer: bool) -> None:
    found = script(_program(loader))
    (call,) = found.train_loader_calls
    assert found.reads_statically(call) is answer
    assert (found.distributed_at(call) == []) is (answer or "in a comprehension" in loader)


def test_where_a_factory_for_both_sides_is_distributed() -> None:
    text = "def make(s):\n    return DataLoader(s)\nother = 3\nloader, val = make(a), make(b)\n"
    found = script(_program(text) + "for x, y in val:\n    model(x)\n")
    (call,) = found.train_loader_calls
    assert [ast.unparse(e) for e in found.distributed_at(call)] == ["make(a)"]


@pytest.mark.parametrize(
    ("around", "answer"),
    [
        pytest.param("{step}", True, id="module level"),
        pytest.param("def run():\n{step}run()", True, id="called"),
        pytest.param("def run():\n{step}", False, id="called by nobody"),
        pytest.param("def run():\n{step}def main():\n    run()", False, id="called by what nobody calls"),
        pytest.param("@click.command()\ndef run():\n{step}", True, id="a command"),
        pytest.param("def run():\n{step}app.run(run)", True, id="handed on"),
        pytest.param("def run():\n{step}    run()", False, id="called by itself"),
    ],
)
def test_whether_the_program_comes_to_a_loop(around: str, answer: bool) -> None:
    found = script(
        _TOP
        + _MODEL
        + "loader = DataLoader(data)\n"
        + around.format(step=_STEP.format(loader="loader") if "def" in around else "if True:\n" + _STEP.format(loader="loader"))
    )
    (loop,) = found.roles.train_loops
    assert found.starts(loop.node) is answer


@pytest.mark.parametrize(
    ("text", "loader"),
    [
        pytest.param("loader = DataLoader(data)\nfor epoch in range(3):\n{step}", "loader", id="beside it"),
        pytest.param("for epoch in range(3):\n    loader = DataLoader(data)\n{step}", "loader", id="made inside"),
        pytest.param("def run(l):\n{param}for epoch in range(3):\n    run(DataLoader(data))", None, id="made in the call"),
        pytest.param("def run(l):\n{param}loader = DataLoader(data)\nfor epoch in range(3):\n    run(loader)", "loader", id="an argument"),
        pytest.param("def run(l=loader):\n{param}loader = DataLoader(data)\nfor epoch in range(3):\n    run()", None, id="a default"),
        pytest.param(
            "def run(l):\n{param}def step(d):\n    run(d['a'])\nd = {{'a': DataLoader(data)}}\nfor epoch in range(3):\n    step(d)",
            "d['a']",
            id="a part of an argument",
        ),
        pytest.param(
            "class T:\n    def __init__(self):\n        self.l = DataLoader(data)\n    def run(self):\n{attr}t = T()\nfor epoch in range(3):\n    t.run()",
            "t.l",
            id="an attribute",
        ),
        pytest.param(
            "loader = DataLoader(data)\nother = DataLoader(data)\nfor epoch in range(3):\n    for x, y in loader if a else other:\n        F.mse_loss(model(x), y).backward()\n        optimizer.step()",
            "(loader if a else other)",
            id="chosen",
        ),
        pytest.param("loaders = [DataLoader(d) for d in many]\nfor epoch in range(3):\n    for loader in loaders:\n{nested}", None, id="one of several"),
        pytest.param("a, b = DataLoader(one), DataLoader(two)\nfor epoch in range(3):\n    for loader in (a, b):\n{nested}", None, id="one of two"),
    ],
)
def test_the_loader_as_the_epoch_loop_writes_it(text: str, loader: str | None) -> None:
    forms = {
        "step": _STEP.format(loader="loader"),
        "nested": "".join("    " + line + "\n" for line in _STEP.format(loader="loader").splitlines()),
        "param": _STEP.format(loader="l"),
        "attr": "".join("    " + line + "\n" for line in _STEP.format(loader="self.l").splitlines()),
    }
    found = script(_TOP + _MODEL + text.format(**forms))
    (loop,) = found.roles.train_loops
    assert [p.loader for p in found.epoch_places(loop)] == [loader]
    assert [ast.unparse(p.loop).splitlines()[0] for p in found.epoch_places(loop)] == ["for epoch in range(3):"]


def test_fresh_names_and_arguments() -> None:
    found = script("a = 1\ndef a_2(a_3): pass\nclass a_4: pass\nf(1, *b, 2, k=3)\n")
    assert found.fresh("a") == "a_5" and found.fresh("z") == "z"
    (call,) = found.names.calls("f")
    given = [found.argument(call, name, index) for name, index in (("x", 0), ("y", 1), ("z", 2), ("k", 9), ("k", None))]
    assert [g and ast.unparse(g) for g in given] == ["1", None, None, "3", "3"]
