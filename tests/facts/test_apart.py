"""Objects of one class, one of the training and others of evaluations, that a factory makes: told apart by the variables that hold them."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.loops import BatchLoop
from tests.pipeline import script

_CLASS = """\
import torch
from torch.utils.data import DataLoader
class Feed:
    def __init__(self, data, size=1):
        self.data, self.size = data, size
        self.loader = DataLoader(data, batch_size=size)
    def ready(self):
        return self
    def count(self):
        return len(self.data)
    def __len__(self):
        return len(self.loader)
    def __iter__(self):
        for i, batch in enumerate(self.loader):
            if i * self.size >= 100:
                break
            yield batch
def create(data):
    feed = Feed(data)
    feed = feed.ready()
    return feed
def score(model, feed):
    model.eval()
    with torch.no_grad():
        return sum(model(x).sum().item() for x in feed)
one, two = list(range(8)), list(range(8))
"""
_TRAIN = """\
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1)
for epoch in range(3):
    for i, x in enumerate(train):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    AFTER
"""


def _feeds(make: str, after: str = "print(score(model, test))", text: str = _CLASS) -> list[BatchLoop]:
    return list(script(text + make + "\n" + _TRAIN.replace("AFTER", after.replace("\n", "\n    "))).roles.train_feeds)


@pytest.mark.parametrize(
    ("make", "given"),
    [
        pytest.param("train = create(one)\ntest = create(two)", ["train = create(one)"], id="a factory"),
        pytest.param("train = Feed(one)\ntest = Feed(two)", ["train = Feed(one)"], id="the class"),
        pytest.param("data = create(one)\ntest = create(two)\ntrain = data", ["data = create(one)"], id="another name of it"),
        pytest.param("made = Feed(one)\ntrain = made.ready()\nother = Feed(two)\ntest = other.ready()", ["train = made.ready()"], id="by a method that gives itself"),
        pytest.param("test = None\ntrain = create(one)\nif len(two):\n    test = create(two)", ["train = create(one)"], id="an evaluation that may not be"),
    ],
)
def test_the_object_of_the_training(make: str, given: list[str]) -> None:
    (found,) = _feeds(make)
    assert [ast.unparse(s) for s in found.apart] == given
    assert found.inside is not None and ast.unparse(found.inside) == "self.loader"


@pytest.mark.parametrize(
    ("make", "after"),
    [
        pytest.param("train = create(one)\ntest = train", "print(score(model, test))", id="one object under two names"),
        pytest.param("train = create(one)\ntest = create(two)", "print(score(model, train))", id="an evaluation of the training's"),
        pytest.param("made = Feed(one)\ntrain = made.ready()\ntest = made.ready()", "print(score(model, test))", id="one that gives itself twice"),
        pytest.param("_ALL = {}\ndef get(data):\n    if 1 not in _ALL:\n        _ALL[1] = Feed(data)\n    return _ALL[1]\ntrain = get(one)\ntest = get(two)", "print(score(model, test))", id="one that is kept"),
        pytest.param("_ONE = None\ndef get(data):\n    global _ONE\n    if _ONE is None:\n        _ONE = Feed(data)\n    return _ONE\ntrain = get(one)\ntest = get(two)", "print(score(model, test))", id="one in a global"),
        pytest.param("from functools import cache\n@cache\ndef get(size):\n    return Feed(one)\ntrain = get(1)\ntest = get(1)", "print(score(model, test))", id="one in a cache"),
        pytest.param("train = create(one)\ntest = create(two)\nfrom other import keep\nkeep(train)", "print(score(model, test))", id="code that is not seen"),
        pytest.param("train = create(one)\ntest = create(two)", "print(next(iter(train)))\nprint(score(model, test))", id="the first batch of the training"),
        pytest.param("train = create(one)\ntest = create(two)\nboth = [train, test]", "print([score(model, b) for b in both])", id="in a list"),
        pytest.param("def pick(a, b):\n    return a if len(a) > len(b) else b\ntrain = create(one)\nother = create(two)\ntest = pick(train, other)", "print(score(model, test))", id="perhaps the training's"),
        pytest.param("class Kept(Feed):\n    known = None\n    def __new__(cls, data):\n        cls.known = cls.known or super().__new__(cls)\n        return cls.known\ntrain = Kept(one)\ntest = Kept(two)", "print(score(model, test))", id="a class that makes one"),
        pytest.param("train, test = create(one), create(two)", "print(score(model, test))", id="given with another"),
    ],
)  # fmt: skip
def test_the_same_object_perhaps(make: str, after: str) -> None:
    assert not [b for b in _feeds(make, after) if b.apart]


def test_a_loop_that_serves_both() -> None:
    text = _CLASS + """\
def run(feed, optimizer=None):
    for x in feed:
        loss = model(x).mean()
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
train = create(one)
test = create(two)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1)
for epoch in range(3):
    run(train, optimizer)
    run(test)
"""
    assert not [b for b in script(text).roles.train_feeds if b.apart]


def test_a_name_of_the_class_alone() -> None:
    """``feed.__loader`` would be another attribute outside of the class."""
    assert not [b for b in _feeds("train = create(one)\ntest = create(two)", text=_CLASS.replace("self.loader", "self.__loader")) if b.apart]


def test_the_class_has_a_pass_of_its_own() -> None:
    """What reads ``self`` may be the object of the training."""
    text = _CLASS.replace("    def count(self):\n", "    def total(self):\n        for x in self:\n            print(x)\n    def count(self):\n")
    make = "train = create(one)\ntest = create(two)\nprint(test.total(), train.total())"
    assert not [b for b in _feeds(make, text=text) if b.apart]


@pytest.mark.parametrize(("listed", "seen"), [("create(two)", True), ("train", False), ("create(two), train", False)])
def test_an_execution_tells_what_the_text_does_not(listed: str, *, seen: bool) -> None:
    """Objects in a list: which of them an evaluation goes over no variable says."""
    text = _CLASS.replace("        return sum(model(x).sum().item() for x in feed)\n", "        total = 0.0\n        for x in feed:\n            total += model(x).sum().item()\n        return total\n")
    found = _feeds(f"train = create(one)\ntests = ({listed},)", "print([score(model, t) for t in tests])", text)
    assert [ast.unparse(s) for b in found for s in b.apart] == ["train = create(one)"] * seen
