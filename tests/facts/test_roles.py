"""Which calls make loaders, which loops train or evaluate, what feeds a variable."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.loops import source
from tests.facts.probe import probed
from tests.pipeline import script

_TOP = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
import data, torchvision
from data import get_loader, get_all, Thing
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_LOOP = "for epoch in range(3):\n    for x, y in {}:\n        loss = model(x).sum()\n        loss.backward()\n        optimizer.step()\n"


@pytest.mark.parametrize(
    ("made", "source", "answer"),
    [
        pytest.param("l = DataLoader(s)", "l", True, id="a DataLoader"),
        pytest.param("l = torch.utils.data.DataLoader(s)", "l", True, id="by its full name"),
        pytest.param("L = DataLoader\nl = L(s)", "l", True, id="by another name"),
        pytest.param("l = get_loader(3)", "l", True, id="a function of another file whose name says it"),
        pytest.param("l = data.get_loader(3)", "l", True, id="a module's function"),
        pytest.param("t = Thing()\nl = t.make_loader()", "l", True, id="a method of another file's object"),
        pytest.param("train_loader = get_all()", "train_loader", True, id="a variable whose name says it"),
        pytest.param("train_loader, n = get_all()", "train_loader", True, id="one of several"),
        pytest.param("train_iter = get_all()", "train_iter", True, id="an iterator by its name"),
        pytest.param("l = get_all()", "l", False, id="no name says it"),
        pytest.param("loader = torchvision.datasets.MNIST('a')", "loader", False, id="a library's data set"),
        pytest.param("loader = list(range(3))", "loader", False, id="a list"),
        pytest.param("loader = [1, 2]", "loader", False, id="a display"),
        pytest.param("def make_loader(): return [1]\nl = make_loader()", "l", False, id="a function of this file that gives something else"),
        pytest.param("d = {'loader': get_all()}", "d['loader']", False, id="an item of a dict"),
    ],
)
def test_what_makes_a_loader(made: str, source: str, answer: bool) -> None:
    found = script(_TOP + made + "\n" + _LOOP.format(source))
    assert bool(found.roles.train_loops) is answer


def test_only_a_loader_made_here_can_be_read() -> None:
    found = script(_TOP + "a = DataLoader(s)\nb = get_loader()\n" + _LOOP.format("a") + _LOOP.format("b"))
    assert [found.roles.makes_loader(c) for c in found.roles.loader_calls] == [True, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("l = DataLoader(s)\nprobe(enumerate(l))", "l", id="enumerate"),
        pytest.param("l = DataLoader(s)\nbar = tqdm(l)\nprobe(bar)", "l", id="a bar by its name"),
        pytest.param("l = DataLoader(s)\nn, bar = 0, tqdm(l)\nprobe(bar)", "l", id="a bar in a tuple"),
        pytest.param("l = DataLoader(s)\nn, bar = f()\nprobe(bar)", "bar", id="a part of a call's result"),
        pytest.param("l = DataLoader(s)\nwith tqdm(l) as bar:\n    probe(bar)", "l", id="a bar by with"),
        pytest.param("l = DataLoader(s)\nbar = l\nprobe(bar)", "bar", id="another name"),
        pytest.param("probe(d['a'])", "d['a']", id="an item"),
    ],
)
def test_the_source_of_a_loop(text: str, expected: str) -> None:
    found, node = probed(_TOP + text)
    assert ast.unparse(source(found.roles, node)) == expected


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("a = f()", ["f()"], id="one"),
        pytest.param("a = f()\na = g()", ["f()", "g()"], id="two"),
        pytest.param("a, b = f(), g()", ["f()"], id="one of two"),
        pytest.param("b = a = f()", ["f()"], id="a chain"),
        pytest.param("a, b = f()", [], id="a part of a call's result"),
        pytest.param("a: int = f()", [], id="with an annotation"),
    ],
)
def test_what_a_variable_is_given(text: str, values: list[str]) -> None:
    found, node = probed(text + "\nprobe(a)")
    (key,) = found.values.keys(node)
    assert [ast.unparse(v) for v in found.roles.written(key)] == values


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        pytest.param("i % 4 == 0", True, id="a counter"),
        pytest.param("amp", True, id="a flag that all calls give alike"),
        pytest.param("phase == 'train'", False, id="a word for it"),
        pytest.param("model.training", False, id="a word for it, of an object"),
        pytest.param("flag", False, id="a flag that the calls give differently"),
        pytest.param("derived", False, id="a name that comes of it"),
        pytest.param("part == 3", False, id="a loop over literals"),
        pytest.param("rest", True, id="a parameter of nobody's"),
    ],
)
def test_what_a_test_is_about(test: str, answer: bool) -> None:
    text = (
        "def run(flag, amp):\n    derived = not flag\n    total = 0\n    for part in (1, 2):\n        for i in range(9):\n"
        f"            if probe({test}): pass\ndef other(rest): run(True, 1)\nrun(False, 1)\n"
    )
    found, node = probed(text)
    assert found.roles.about_numbers(node) is answer


def test_both_sides_of_a_test_train() -> None:
    body = "for epoch in range(3):\n    for x, y in l:\n        loss = model(x).sum()\n        if train:\n            loss.backward()\n        else:\n            (2 * loss).backward()\n"
    found = script(_TOP + "l = DataLoader(s)\n" + body)
    assert not found.roles.train_loops[0].branches
    one_sided = script(_TOP + "l = DataLoader(s)\n" + body.replace("(2 * loss).backward()", "pass"))
    assert one_sided.roles.train_loops[0].branches


def test_the_model_under_a_wrapper_comes_of_the_wrappers_variable() -> None:
    found, node = probed(_TOP + "net = nn.DataParallel(model)\ndef f(n):\n    probe(n.module)\nf(net)\n" + _LOOP.format("DataLoader(s)"))
    assert {ast.unparse(n) for _, n in found.roles.roots(node)} == {"net"}


def test_an_attribute_comes_of_itself() -> None:
    found, node = probed(_TOP + "class T:\n    def __init__(self):\n        self.rows = [3]\n    def f(self):\n        probe(self.rows)\nT().f()")
    assert {ast.unparse(n) for _, n in found.roles.roots(node)} == {"self.rows"}
