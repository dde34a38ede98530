"""What feeds a step that no loader feeds."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dpmigrate.facts.feeds import Feed, feed, short
from tests.pipeline import script

_TOP = """\
import itertools, random
import numpy as np
import torch
import other
from torch.utils.data import DataLoader
x, y = torch.load("x.pt"), torch.load("y.pt")
model = other.Net()
optimizer = torch.optim.SGD(model.parameters(), lr=1)
"""
_STEP = """\
loss = criterion(model(a), b)
loss.backward()
optimizer.step()
"""


def _feed(text: str) -> Feed:
    found = script(_TOP + dedent(text)).roles
    return feed(found, found.backwards[0])


def _loop(head: str, taken: str = "", before: str = "") -> Feed:
    """What feeds the usual step in a loop that begins with ``taken``."""
    return _feed(f"{dedent(before)}\n{head}\n{indent(dedent(taken), '    ')}\n{indent(_STEP, '    ')}")


_STATE = "\nh = model.begin(4)\n{head}\n    {first}\n    out, h = model(x[i], h)\n    out.sum().backward()\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param(_STATE.format(head="for i in range(9):", first="h = h.detach()"), "h", id="detached"),
        pytest.param(_STATE.format(head="while go():", first="h = keep(h)"), "h", id="by a function, in a while loop"),
        pytest.param(_STATE.format(head="for i in range(9):", first="pass"), "h", id="as it is"),
        pytest.param("h = [1]\nfor i in range(9):\n    out, h[i] = model(x, h[i])\n    out.sum().backward()\n", "h", id="in a list"),
    ],
)
def test_a_state_that_goes_on(text: str, what: str) -> None:
    found = _feed(text)
    assert (found.kind, found.what) == ("state", what)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_STATE.format(head="for i in range(9):", first="h = model.begin(4)"), id="begun in every turn"),
        pytest.param("for i in range(9):\n    a = x[i]\n    a = model(a)\n    a.sum().backward()\n", id="a batch that is overwritten"),
        pytest.param("for i in range(9):\n    print(model(x[i]))\n    model(x[i]).sum().backward()\n", id="results that nobody keeps"),
    ],
)
def test_no_state(text: str) -> None:
    assert _feed(text).kind == "cut"


@pytest.mark.parametrize(
    ("head", "taken", "before", "kind", "what", "by"),
    [
        pytest.param(
            "for a, b in it:", "", "from torchtext import data\nit, _ = data.BucketIterator.splits(sets)", "library", "it", "torchtext", id="torchtext"
        ),
        pytest.param("for a, b in tqdm(it):", "", "import webdataset as wds\nit = wds.WebLoader(u)", "library", "it", "webdataset", id="webdataset"),
        pytest.param(
            "for a, b in wds.WebLoader(u):", "", "import webdataset as wds", "library", "wds.WebLoader(u)", "webdataset", id="made in the loop's head"
        ),
        pytest.param(
            "for a, b in it.batch(9):", "", "import tensorflow as tf\nit = tf.data.Dataset.range(3)", "library", "it.batch(9)", "tf.data", id="a method's"
        ),
        pytest.param("for a, b in it:", "", "class B:\n    def __iter__(self):\n        yield 1\nit = B()", "own", "it", "B", id="a class of the file"),
        pytest.param("for a, b in itertools.chain(p, q):", "", "p = q = []", "chained", "itertools.chain(p, q)", "", id="loaders end to end"),
        pytest.param("for a, b in filter(f, p):", "", "p = torch.utils.data.DataLoader(q)", "chosen", "filter(f, p)", "", id="batches that are chosen"),
        pytest.param("while True:", "a, b = next(it)", "def cycle(n):\n    while 1:\n        yield n\nit = cycle(9)", "made", "it", "cycle", id="a generator"),
        pytest.param("while True:", "a, b = it.next()", "import torchtext\nit = torchtext.f()", "library", "it", "torchtext", id="a method next"),
        pytest.param("for a, b in it:", "", "it = other.get(3)", "elsewhere", "it", "other.get", id="another file's"),
        pytest.param("for a, b in it:", "", "", "unassigned", "it", "", id="nobody's"),
        pytest.param("while True:", "a, b = it.next()", "sets = [0] * 3\nit = iter(sets[1])", "unseen", "sets[1]", "", id="begun with something"),
        pytest.param("while True:", "a, b = next(it)", "sets = [0] * 3\nit = iter(sets[1])", "unseen", "sets[1]", "", id="begun with something, next"),
        pytest.param("for a, b in later():", "", "from other import later", "elsewhere", "later()", "later", id="a function of another file"),
        pytest.param("for a, b in it.some:", "", "it = 3", "unknown", "", "", id="an attribute of something"),
        pytest.param("for a, b in it:", "", "it = [x, y]", "unknown", "", "", id="a list"),
        pytest.param("for a, b in it:", "", "from other import *", "unknown", "", "", id="perhaps a star import's"),
        pytest.param("for i in range(9):", "a = torch.randn(3)\nb = 1", "", "made", "torch.randn(3)", "", id="drawn at random"),
        pytest.param("for i in range(9):", "a, b = other.get_batch(x, i)", "", "drawn", "other.get_batch(x, i)", "", id="by another file's function"),
        pytest.param("for a, b in it:", "", "def get():\n    return [3]\nit = get()", "elsewhere", "it", "get", id="a function's of the file"),
        pytest.param("while go():", "a = b = float(3)", "", "unknown", "", "", id="something else"),
    ],
)
def test_streams(head: str, taken: str, before: str, kind: str, what: str, by: str) -> None:
    found = _loop(head, taken, before)
    assert (found.kind, found.what, found.by) == (kind, what, by)


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        pytest.param(
            "def fit(it):\n    for a, b in it:\n        model(a).sum().backward()\nfit(train_loader)\n", "unassigned", "train_loader", id="an argument"
        ),
        pytest.param("def fit(it):\n    for a, b in it:\n        model(a).sum().backward()\nfit(make())\n", "unknown", "", id="an argument that has no name"),
        pytest.param("def fit(it):\n    for a, b in it:\n        model(a).sum().backward()\n", "uncalled", "fit", id="a function that nobody calls"),
        pytest.param("def fit(a):\n    model(a).sum().backward()\n", "uncalled", "fit", id="a step that nobody calls"),
        pytest.param("@main\ndef fit(a):\n    model(a).sum().backward()\n", "unknown", "", id="a function with a decorator"),
        pytest.param("def fit(a):\n    model(a).sum().backward()\nfit(3)\n", "unknown", "", id="one step"),
        pytest.param("def f():\n    if 1:\n        f()\n    model(3).sum().backward()\nf()\n", "unknown", "", id="a function that calls itself"),
    ],
)
def test_functions(text: str, kind: str, what: str) -> None:
    found = _feed(text)
    assert (found.kind, found.what) == (kind, what)


@pytest.mark.parametrize(
    ("head", "taken", "before", "tensors", "variables", "size", "shuffled"),
    [
        pytest.param("for i in range(0, 9, n):", "a, b = x[i:i+n], y[i:i+n]", "", ("x", "y"), ("a", "b"), "n", False, id="slices in order"),
        pytest.param("for i in range(9):", "a = x[i*n:(i+1)*n]\nb = y[i*n:(i+1)*n]", "n = 4", ("x", "y"), ("a", "b"), "n", False, id="by number"),
        pytest.param("for i in range(9):", "a = x[i*i:9]\nb = 3", "", ("x",), ("a",), "", False, id="a size that cannot be read"),
        pytest.param("for i in range(9):", "a = x[:i]\nb = 3", "", ("x",), ("a",), "", False, id="no size"),
        pytest.param(
            "for i in range(9):",
            "idx = order[i:i+4]\na, b = x[idx], y[idx]",
            "order = torch.randperm(9)",
            ("x", "y"),
            ("a", "b"),
            "4",
            True,
            id="a permutation",
        ),
        pytest.param(
            "for i in range(9):", "a, b = x[order[i:i+4]], y[order[i:i+4]]", "order = random.sample(9, 9)", ("x", "y"), ("a", "b"), "4", True, id="at once"
        ),
        pytest.param("for i in range(9):", "idx = np.random.randint(0, 9, 4)\na, b = x[idx], y[idx]", "", ("x", "y"), ("a", "b"), "", True, id="drawn"),
        pytest.param("for i in range(9):", "a = x[i:i+2, :]\nb = self.y[i:i+2]", "", ("x", "self.y"), ("a", "b"), "2", False, id="columns and attributes"),
        pytest.param(
            "for i in range(9):",
            "a, b = cut(x, i), cut(y, i)",
            "def cut(data, i):\n    return data[i:i+5]",
            ("x", "y"),
            ("x_batch", "y_batch"),
            "5",
            False,
            id="by a function",
        ),
        pytest.param(
            "for i in range(9):",
            "a = torch.from_numpy(x[i:i+2])\nb = torch.tensor(y[i:i+2])",
            "",
            ("torch.as_tensor(x)", "torch.as_tensor(y)"),
            ("a", "b"),
            "2",
            False,
            id="arrays",
        ),
        pytest.param("for i in range(9):", "a[0], b = x[i:i+2], y[i:i+2]", "", ("x", "y"), ("x_batch", "b"), "2", False, id="into something"),
        pytest.param(
            "for i in range(9):",
            "a, b = cut(i), x[0]",
            "def cut(i, data=x):\n    return data[i:i+5]\ncut(3)",
            ("data",),
            ("data_batch",),
            "5",
            False,
            id="a default",
        ),
        pytest.param("for i in range(9):", "a, b = x[i:j+2], 0", "", ("x",), ("a",), "", False, id="from here to there"),
        pytest.param("for i in range(9):", "a = b = x[i:i+2]", "", ("x",), ("x_batch",), "2", False, id="into two variables"),
    ],
)
def test_batches_cut_by_hand(head: str, taken: str, before: str, tensors: tuple[str, ...], variables: tuple[str, ...], size: str, shuffled: bool) -> None:
    found = _loop(head, taken, before)
    assert found.kind == "cut"
    assert found.cut is not None
    assert (found.cut.tensors, found.cut.variables, found.cut.batch_size, found.cut.shuffled) == (tensors, variables, size, shuffled)


def test_a_batch_that_is_cut_in_the_call_of_the_model() -> None:
    found = _feed("for i in range(0, 9, n):\n    loss = criterion(model(x[i:i+n]), y[i:i+n])\n    loss.backward()\n")
    assert found.cut is not None
    assert (found.cut.tensors, found.cut.variables) == (("x", "y"), ("x_batch", "y_batch"))


def test_the_model_makes_no_samples() -> None:
    net = "class Net(torch.nn.Module):\n    def forward(self, a):\n        return torch.randn(3) + a\n"
    use = "net = Net()\nfor i in range(9):\n    net(x[i:i+2]).sum().backward()\n"
    opt = "torch.optim.SGD(net.parameters())\n"
    assert _feed(net + use + opt).kind == "cut"


def test_what_goes_into_a_pass_beside_the_batch() -> None:
    """A counter and a device are no samples."""
    text = "for k in range(3):\n    for i in range(9):\n        a = other()\n        loss = criterion(model(a, k), device)\n        loss.backward()\n"
    assert _feed(text).kind != "whole"


def test_all_samples_at_once() -> None:
    found = _feed("for i in range(9):\n    loss = criterion(model(x), y)\n    loss.backward()\n")
    assert found.kind == "whole"
    assert found.cut is not None
    assert (found.cut.tensors, found.cut.variables, found.cut.batch_size) == (("x", "y"), ("x_batch", "y_batch"), "len(x)")


def test_long_expressions_are_cut_short() -> None:
    import ast

    text = short(ast.parse("f(" + ", ".join(f"a{i}" for i in range(40)) + ")", mode="eval").body)
    assert len(text) <= 60
    assert text.endswith(" …")


def test_a_library_that_a_function_of_the_program_asks() -> None:
    """The step is a function that is given the batch, and the batches are what a function returns."""
    found = _feed(
        """
        from torchtext.data import BucketIterator
        def buckets(rows):
            made = BucketIterator(rows, batch_size=8)
            return made
        def step(a, b):
            loss = criterion(model(a), b)
            loss.backward()
            optimizer.step()
        it = buckets(x)
        for batch in it:
            step(a=batch.src, b=batch.trg)
        """
    )
    assert (found.kind, found.what, found.by) == ("library", "it", "torchtext")
