"""Objects of the program that hold a loader and hand its batches on."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from dpmigrate.facts.loops import BatchLoop
from tests.pipeline import script

_CLASS = """\
import torch
from torch.utils.data import DataLoader
class Moved:
    def __init__(self, loader):
        self.loader = loader
        self.size, self.most, self.seen = 2, 8, 0
    def count(self):
        self.seen += 1
    def __len__(self):
        return len(self.loader)
    def __iter__(self):
"""
_PLAIN = "for batch in self.loader:\n    yield batch.cuda()\n"
_MAKE = "moved = Moved(DataLoader(one))\n"
_TRAIN = """\
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1)
for epoch in range(3):
    for x in moved:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
"""


def _feeds(iterates: str = _PLAIN, make: str = _MAKE, after: str = "") -> list[BatchLoop]:
    text = _CLASS + indent(dedent(iterates), " " * 8) + "\n" + dedent(make) + _TRAIN + dedent(after)
    return list(script(text).roles.train_feeds)


def _sources(found: list[BatchLoop]) -> list[str]:
    return [ast.unparse(b.inside) for b in found if b.inside is not None]


@pytest.mark.parametrize(
    "iterates",
    [
        pytest.param(_PLAIN, id="a generator"),
        pytest.param("for i, batch in enumerate(self.loader):\n    batch = batch.cuda()\n    yield batch\n", id="numbered"),
        pytest.param("for i, batch in enumerate(self.loader):\n    if i == 3:\n        break\n    yield batch\n", id="the first ones"),
        pytest.param("for i, batch in enumerate(self.loader):\n    if i * self.size >= self.most:\n        break\n    yield batch\n", id="the first ones of a setting"),
        pytest.param("yield from self.loader\n", id="handed on"),
        pytest.param("batches = iter(self.loader)\nfor batch in batches:\n    yield batch.cuda()\n", id="a variable"),
        pytest.param("return iter(self.loader)\n", id="its own iterator"),
        pytest.param("return map(torch.neg, self.loader)\n", id="a map"),
        pytest.param("return (b.cuda() for b in self.loader)\n", id="a generator expression"),
    ],
)
def test_the_batches_are_those_of_the_loader(iterates: str) -> None:
    (found,) = _feeds(iterates)
    assert _sources([found]) == ["self.loader"]
    assert {ast.unparse(v.node) for v in found.loaders} == {"DataLoader(one)"}


@pytest.mark.parametrize(
    "iterates",
    [
        pytest.param("for i, batch in enumerate(self.loader):\n    if i % 2:\n        yield batch\n", id="some of them"),
        pytest.param("for batch in self.loader:\n    if len(batch) < 2:\n        continue\n    yield batch\n", id="some left out"),
        pytest.param("for i, batch in enumerate(self.loader):\n    if len(batch) < i:\n        break\n    yield batch\n", id="as many as a batch says"),
        pytest.param("for i, batch in enumerate(self.loader):\n    if i == self.most():\n        break\n    yield batch\n", id="as many as a call says"),
        pytest.param("for i, batch in enumerate(self.loader):\n    if i == most:\n        break\n    yield batch\n", id="as many as a variable says"),
        pytest.param("for i, batch in enumerate(self.loader):\n    if i == self.seen:\n        break\n    yield batch\n", id="as many as is counted"),
        pytest.param("for i, batch in enumerate(self.loader):\n    yield batch\n    if i == 3:\n        break\n", id="an end behind it"),
        pytest.param("for batch in self.loader:\n    yield batch\n    yield batch\n", id="each twice"),
        pytest.param("yield first\nfor batch in self.loader:\n    yield batch\n", id="another one before"),
        pytest.param("while True:\n    for batch in self.loader:\n        yield batch\n", id="without end"),
        pytest.param("return (b for b in self.loader if len(b) > 1)\n", id="chosen by an expression"),
        pytest.param("return map(torch.add, self.loader, other)\n", id="a map of two"),
        pytest.param("for batch in [1, 2]:\n    yield batch\n", id="no loader"),
        pytest.param("batches = iter(self.loader)\nnext(batches)\nfor batch in batches:\n    yield batch\n", id="all but the first"),
        pytest.param("if ask():\n    batches = iter(self.loader)\nfor batch in batches:\n    yield batch\n", id="perhaps not given"),
        pytest.param("batches, n = iter(self.loader), 0\nfor batch in batches:\n    yield batch\n", id="given with another"),
    ],
)
def test_other_batches_than_the_loaders(iterates: str) -> None:
    assert _feeds(iterates) == []


@pytest.mark.parametrize(
    "make",
    [
        pytest.param("loader = DataLoader(one)\nmoved = Moved(loader)\n", id="in a variable"),
        pytest.param("moved = DataLoader(one)\nmoved = Moved(moved)\n", id="in the place of the loader"),
        pytest.param("def made(data):\n    return Moved(loader=DataLoader(data))\nmoved = made(one)\n", id="by a function"),
        pytest.param("moved, other = Moved(DataLoader(one)), Moved(DataLoader(two))\n", id="beside another"),
    ],
)
def test_objects(make: str) -> None:
    assert _sources(_feeds(make=make)) == ["self.loader"]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param("moved = Moved(ask())\n", id="given what is not seen"),
        pytest.param("moved = Moved(list(DataLoader(one)))\n", id="given a list"),
        pytest.param("moved = Moved(DataLoader(one)) if ask() else ask()\n", id="perhaps no object"),
        pytest.param("loader = DataLoader(one)\nmoved, other = Moved(loader), Moved(loader)\n", id="two of one loader"),
        pytest.param("moved = Moved(DataLoader(one))\nmoved.loader = other\n", id="changed afterwards"),
    ],
)
def test_what_the_object_holds_is_not_known(make: str) -> None:
    assert _sources(_feeds(make=make)) == []


@pytest.mark.parametrize(
    "after",
    [
        pytest.param("for x in moved:\n    print(model(x))\n", id="a loop"),
        pytest.param("print([model(x) for x in moved])\n", id="a comprehension"),
        pytest.param("print(next(iter(moved)))\n", id="the first batch"),
        pytest.param("other(moved)\n", id="code that is not seen"),
        pytest.param("kept = [moved]\n", id="kept in a list"),
    ],
)
def test_something_else_takes_batches(after: str) -> None:
    assert _feeds(after=after) == []


@pytest.mark.parametrize("after", ["print(len(moved))\n", "def look(batches):\n    return len(batches)\nprint(look(moved))\n", "print(moved.loader)\n"])
def test_nothing_else_takes_batches(after: str) -> None:
    assert _sources(_feeds(after=after)) == ["self.loader"]


_OWN = """\
import torch
from torch.utils.data import DataLoader
class Feed:
    def __init__(self, data):
        self.loader = DataLoader(data)
    def ready(self):
        return self
    def __iter__(self):
        for batch in self.loader:
            yield batch
"""


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        pytest.param("moved = Feed(one)\n", True, id="one object"),
        pytest.param("moved = Feed(one).ready()\n", True, id="that gives itself"),
        pytest.param("def made():\n    return Feed(one).ready()\nmoved = made()\n", True, id="by a function"),
        pytest.param("moved, other = Feed(one), Feed(two)\n", False, id="another one, whose loader the same call makes"),
    ],
)
def test_an_object_that_makes_its_loader(make: str, *, seen: bool) -> None:
    assert [ast.unparse(b.inside) for b in script(_OWN + make + _TRAIN).roles.train_feeds if b.inside is not None] == ["self.loader"] * seen
