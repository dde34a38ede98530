"""Which loops take batches, from which loaders, and where their passes begin."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from dpmigrate.facts.loops import restarts
from dpmigrate.facts.script import Script
from tests.pipeline import script

_TOP = """\
import itertools
import torch
from tqdm import tqdm
from torch.utils.data import DataLoader
a = DataLoader(one)
b = DataLoader(two)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1)
def train(x):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
def again(loader):
    while True:
        for x in loader:
            yield x
def forever(loader):
    while True:
        yield from loader
"""


def _script(text: str) -> Script:
    return script(_TOP + dedent(text))


def _feeds(text: str) -> list[tuple[str, str]]:
    """The first line of each training loop, with the loader that it takes batches from."""
    return [(ast.unparse(b.node).splitlines()[0], ast.unparse(b.source)) for b in _script(text).roles.train_feeds]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("for x in a:\n    print(x)", [], id="nothing is trained"),
        pytest.param("for i in range(3):\n    x = next(b)\n    print(x)", [], id="next without training"),
        pytest.param("for x in a:\n    train(x)\nwith torch.no_grad():\n    for x in b:\n        train(x)", ["a"], id="a step without gradients"),
        pytest.param("for x in a:\n    train(x)\nwith torch.no_grad():\n    for x in b:\n        with torch.enable_grad():\n            train(x)", ["a", "b"], id="with gradients again"),
        pytest.param("for x in a:\n    train(x)\n    with torch.no_grad():\n        print(next(iter(b)))", ["a"], id="a look at other data without gradients"),
        pytest.param("for x in a:\n    train(x)\n    y = next(iter(b))\n    model.eval()\n    print(model(y))", ["a"], id="a look in evaluation mode"),
        pytest.param(
            "def show():\n    y = next(iter(b))\n    torch.save(model(y), 'y')\nfor x in a:\n    train(x)\n    show()",
            ["a"],
            id="a look in a function that keeps it",
        ),
        pytest.param("for e in range(3):\n    for x in a:\n        train(x)\n    print(next(iter(b)))", ["a"], id="a look at other data between epochs"),
        pytest.param("for x in a:\n    train(x)\n    if t:\n        y = next(iter(b))\n        print(model(y))", ["a"], id="a look that leads to no step"),
        pytest.param("it = iter(b)\nfor x in a:\n    train(x)\n    if t:\n        for _ in range(2):\n            print(it.next())", ["a"], id="several looks"),
        pytest.param(
            "for x in a:\n    train(x)\n    if t:\n        try:\n            x = next(it)\n        except StopIteration:\n            it = iter(b)\n            x = next(it)\n"
            "        shown = []\n        shown.append(model(x))\n        print(shown)",
            ["a"],
            id="a look by the name of the batch",
        ),
        pytest.param("for x in a:\n    if t:\n        y = next(iter(b))\n    train(x + y)", ["a", "b"], id="another batch now and then"),
        pytest.param("y = 0\nfor x in a:\n    train(x + y)\n    if t:\n        y = next(iter(b))", ["a", "b"], id="a batch for the next turn"),
        pytest.param("for x in a:\n    if t:\n        model.y = next(iter(b))\n    train(x + model.y)", ["a", "b"], id="a batch in an object"),
        pytest.param("ys = []\nfor x in a:\n    if t:\n        ys.append(next(iter(b)))\n    train(x + ys[-1])", ["a", "b"], id="batches in a list"),
        pytest.param(
            "for x in a:\n    if t:\n        y = next(iter(b))\n        f(y)\n    train(x + c.y)\ndef f(y):\n    c.y = y", ["a", "b"], id="kept by a function"
        ),
        pytest.param(
            "for x in a:\n    def f(z):\n        train(z + y)\n    if t:\n        y = next(iter(b))\n    f(x)", ["a", "b"], id="read by a function inside"
        ),
        pytest.param(
            "y = 0\ndef step(x):\n    train(x + y)\ndef go(a):\n    global y\n    for x in a:\n        step(x)\n        if t:\n            y = next(iter(b))\ngo(a)",
            ["a", "b"],
            id="a global that another function reads",
        ),
        pytest.param(
            "def go(a):\n    global y\n    for x in a:\n        train(x + y)\n        if t:\n            y = next(iter(b))\ngo(a)", ["a", "b"], id="a global"
        ),
        pytest.param("for i in range(3):\n    train(next(unknown))", [], id="an unknown iterator"),
        pytest.param("for x in zip([1], [2]):\n    train(x)", [], id="zip without a loader"),
        pytest.param("for x in zip(a, b):\n    train(x)", ["a", "b"], id="zip"),
        pytest.param("for i, (x, y) in tqdm(enumerate(zip(a, b))):\n    train(x)", ["a", "b"], id="zip inside enumerate and a bar"),
        pytest.param("for x, y in itertools.zip_longest(a, itertools.cycle(b)):\n    train(x)", ["a", "b"], id="zip_longest with cycle"),
        pytest.param("for x, i in zip(a, range(9)):\n    train(x)", ["a"], id="zip with a range"),
        pytest.param("both = zip(a, b)\nfor x in tqdm(both):\n    train(x)", ["a", "b"], id="zip by its name"),
        pytest.param("for x in map(f, a):\n    train(x)", ["a"], id="a function of each batch"),
        pytest.param("bar = tqdm(desc='a', iterable=a)\nfor x in bar:\n    train(x)", ["a"], id="a bar that is given it by name"),
        pytest.param("from fastprogress import progress_bar\nbar = progress_bar(a, parent=m)\nfor x in bar:\n    train(x)", ["a"], id="a bar in a bar"),
        pytest.param("from progressbar import ProgressBar\nbar = ProgressBar(max_value=9)\nfor i, x in bar(enumerate(a, 0)):\n    train(x)", ["a"], id="a bar that is called"),
        pytest.param("import progressbar as p\nfor x in p.ProgressBar()(iterable=a):\n    train(x)", ["a"], id="a bar that is called where it is made"),
        pytest.param("from progressbar import ProgressBar\nseen = ProgressBar()(a)\nfor x in seen:\n    train(x)", ["a"], id="a bar that was called"),
        pytest.param("from progressbar import ProgressBar\nbar = ProgressBar()\nbar = f(bar)\nfor x in bar(a):\n    train(x)", [], id="what may be no bar"),
        pytest.param("from progressbar import ProgressBar\nbar = ProgressBar()\nfor x in bar(f(a)):\n    train(x)", [], id="a bar round something unknown"),
        pytest.param("for i, x in enumerate(map(f, tqdm(a))):\n    train(x)", ["a"], id="a function of each batch, in a bar and counted"),
        pytest.param("for x in map(f, a, b):\n    train(x)", ["a", "b"], id="a function of two batches"),
        pytest.param("each = map(f, a)\nfor x in each:\n    train(x)", ["a"], id="a function of each batch, by its name"),
        pytest.param("for x in (f(y) for y in a):\n    train(x)", ["a"], id="a generator expression"),
        pytest.param("each = (f(y) for y in a)\nfor x in each:\n    train(x)", ["a"], id="a generator expression, by its name"),
        pytest.param("for x in [f(y) for y in a]:\n    train(x)", ["a"], id="a list of all"),
        pytest.param("for x in (f(y) for y in a if y):\n    train(x)", [], id="some batches"),
        pytest.param("for x in (z for y in a for z in y):\n    train(x)", [], id="the samples of the batches"),
        pytest.param("for x in itertools.chain(a, b):\n    train(x)", ["a", "b"], id="end to end"),
        pytest.param("for x in itertools.chain(*[a, b]):\n    train(x)", ["a", "b"], id="a list end to end"),
        pytest.param("for x in itertools.chain.from_iterable((a, b)):\n    train(x)", ["a", "b"], id="a tuple end to end"),
        pytest.param("for x in itertools.chain(map(f, a), zip(b, b)):\n    train(x)", ["a", "b", "b"], id="of several kinds"),
        pytest.param("for x in itertools.chain(a, a):\n    train(x)", [], id="one loader twice"),
        pytest.param("for x in itertools.chain.from_iterable(both):\n    train(x)", [], id="a list that is not seen"),
        pytest.param("for x in itertools.chain(a, *both):\n    train(x)", [], id="a star that is not seen"),
        pytest.param("for x in itertools.chain():\n    train(x)", [], id="nothing end to end"),
        pytest.param("c = map(f, c)\nfor x in c:\n    train(x)", [], id="made of itself"),
        pytest.param("for x in filter(f, a):\n    train(x)", [], id="batches that are chosen"),
        pytest.param("both = zip(again(a), again(b))\nfor i in range(9):\n    train(next(both))", ["a", "b"], id="next of a zip"),
        pytest.param("for x in zip(*[a, b]):\n    train(x)", [], id="zip of a star"),
        pytest.param("it = iter(a)\nfor i in range(9):\n    train(next(it))", ["a"], id="next"),
        pytest.param(
            "it = iter(a)\nfor i in range(9):\n    x = next(it)\n    t.eval()\n    model(x).mean().backward()", ["a"], id="beside a teacher in evaluation mode"
        ),
        pytest.param(
            "class F:\n    def get(self):\n        self.x = next(it)\nit, f = iter(a), F()\nfor i in range(9):\n    f.get()\n    train(f.x)",
            ["a"],
            id="a function that stores what it draws",
        ),
        pytest.param(
            "def get():\n    global x\n    x = next(it)\nit = iter(a)\nfor i in range(9):\n    get()\n    train(x)",
            ["a"],
            id="a function that draws into a global",
        ),
        pytest.param("it = iter(a)\nwhile True:\n    train(it.next())", ["a"], id="a method next"),
        pytest.param("it = iter(a)\nwhile True:\n    train(it.__next__())", ["a"], id="its dunder"),
        pytest.param("for i in range(9):\n    train(next(iter(a)))", ["a"], id="a new iterator each turn"),
        pytest.param("for e in range(3):\n    p = enumerate(a)\n    if e:\n        p = tqdm(p)\n    for i, x in p:\n        train(x)\n    p = enumerate(b)", ["a"], id="a bar round what it is"),
        pytest.param("p = None\nif k:\n    p = tqdm(enumerate(a))\nif not k:\n    p = tqdm(a)\nfor i, x in p:\n    train(x)", ["a"], id="one of two bars"),
        pytest.param("it = again(a)\nfor i in range(9):\n    train(next(it))", ["a"], id="a generator of the file"),
        pytest.param("p, q = again(a), again(b)\nfor i in range(9):\n    train(next(p))\n    train(next(q))", ["a", "b"], id="two generators"),
        pytest.param("for x in again(a):\n    train(x)", ["a"], id="for over a generator"),
        pytest.param("it = iter(b)\nfor x in a:\n    y = next(it)\n    train(x + y)", ["a", "b"], id="next beside for"),
        pytest.param("it = iter(a)\nfor i in range(9):\n    for k in range(2):\n        train(next(it))", ["a"], id="accumulation"),
        pytest.param("it = iter(a)\ndef get():\n    return next(it)\nfor i in range(9):\n    train(get())", ["a"], id="a function that draws"),
        pytest.param(
            "class Feed:\n    def __init__(self):\n        self.it = iter(a)\n    def next(self):\n        return next(self.it)\nf = Feed()\nwhile 1:\n    train(f.next())",
            ["a"],
            id="a class that draws",
        ),
        pytest.param(
            "it = iter(a)\nfor i in range(9):\n    for k in range(5):\n        train(next(it))\n    train(next(it))", ["a", "a"], id="a critic's loop inside"
        ),
    ],
)
def test_what_training_takes_its_batches_from(text: str, expected: list[str]) -> None:
    assert [source for _, source in _feeds(text)] == expected


def test_a_generator_that_hands_batches_on_is_no_loop_of_its_own() -> None:
    assert _feeds("for x in again(a):\n    train(x)") == [("for x in again(a):", "a")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("it = iter(a)\nfor i in range(9):\n    train(next(it))", [], id="one pass"),
        pytest.param("it = itertools.cycle(a)\nfor i in range(9):\n    train(next(it))", [], id="cycle repeats what it has kept"),
        pytest.param(
            "it = iter(a)\nfor i in range(9):\n    if i % 4 == 0:\n        it = iter(a)\n    train(next(it))", [("it = iter(a)", "a")], id="by the step"
        ),
        pytest.param("for i in range(9):\n    train(next(iter(a)))", [("train(next(iter(a)))", "a")], id="each turn"),
        pytest.param(
            "for i in range(9):\n    train(next(iter(DataLoader(one))))",
            [("train(next(iter(DataLoader(one))))", "DataLoader(one)")],
            id="a new loader each turn",
        ),
        pytest.param(
            "for i in range(9):\n    _, x = next(iter(enumerate(a)))\n    train(x)", [("_, x = next(iter(enumerate(a)))", "a")], id="counted, each turn"
        ),
        pytest.param(
            "for e in range(3):\n    it = itertools.cycle(a)\n    for i in range(9):\n        train(next(it))", [("it = itertools.cycle(a)", "a")],
            id="a cycle of each epoch",
        ),
        pytest.param(
            "for e in range(3):\n    it = iter(zip(range(9), a))\n    for i in range(9):\n        train(next(it))",
            [("it = iter(zip(range(9), a))", "a")], id="in step with something else",
        ),
        pytest.param(
            "for e in range(3):\n    it = zip(itertools.cycle(a), range(9))\n    for i in range(9):\n        train(next(it))",
            [("it = zip(itertools.cycle(a), range(9))", "a")], id="an iterator by itself",
        ),
        pytest.param("it = zip(a, range(9))\nfor i in range(9):\n    train(next(it))", [], id="one pass in step"),
        pytest.param("it = again(a)\nfor i in range(9):\n    train(next(it))", [("for x in loader:\n    yield x", "loader")], id="a generator"),
        pytest.param("it = forever(a)\nfor i in range(9):\n    train(next(it))", [("yield from loader", "loader")], id="a generator of a loader's batches"),
        pytest.param(
            "def go():\n    it = iter(a)\n    while True:\n        train(next(it))\nfor e in range(3):\n    go()", [("it = iter(a)", "a")], id="a function"
        ),
    ],
)
def test_where_passes_begin_again(text: str, expected: list[tuple[str, str]]) -> None:
    found = _script(text)
    (loop,) = found.roles.train_feeds
    places = [(ast.unparse(r.stmt), ast.unparse(r.loader)) for r in restarts(found.roles, loop)]
    assert places == expected


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        pytest.param("map(f, a)", ["a"], id="a function of each batch"),
        pytest.param("itertools.chain(a, b)", ["a", "b"], id="end to end"),
        pytest.param("itertools.chain(a, a)", ["a", "a"], id="twice"),
        pytest.param("list(a)[:3]", ["a"], id="the first of a list"),
        pytest.param("reversed(list(a))", ["a"], id="turned round"),
        pytest.param("filter(f, a)", ["a"], id="chosen"),
        pytest.param("filter(f)", [], id="chosen of nothing"),
        pytest.param("itertools.takewhile(f, a)", ["a"], id="the first"),
        pytest.param("(x for x in a if x)", ["a"], id="chosen by a generator expression"),
        pytest.param("First(a, n=3)", ["a"], id="an object of the program"),
        pytest.param("first", ["a"], id="an object of the program, by its name"),
        pytest.param("unknown(a)", [], id="what is not known"),
        pytest.param("a.dataset", [], id="something else of it"),
    ],
)
def test_what_evaluation_takes_its_batches_from(over: str, expected: list[str]) -> None:
    top = "class First:\n    def __init__(self, loader, n):\n        self.loader, self.n = loader, n\nfirst = First(loader=a, n=2)\nfor x in a:\n    train(x)\n"
    found = _script(f"{top}with torch.no_grad():\n    for x in {over}:\n        print(model(x))")
    loops = [b for b in found.roles.batch_loops if b.evaluates]
    assert [ast.unparse(b.source) for b in loops] == expected
    assert all(b.made for b in loops)
