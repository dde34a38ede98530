"""What a function writes into a tensor or an array that it is given, its caller has as well."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import data, placement_of
from tests.execution.paper import executed, held

_HEAD = """
import numpy as np
import torch.distributed as dist
rank = dist.get_rank()
"""


@pytest.mark.parametrize(
    ("text", "lying"),
    [
        pytest.param("def f(t): t.add_(rank)\nx = torch.zeros(2)\nf(x)", "per rank", id="a method"),
        pytest.param("def f(t): t[0] = rank\nx = torch.zeros(2)\nf(x)", "per rank", id="an element"),
        pytest.param("def f(t): t += rank\nx = torch.zeros(2)\nf(x)", "per rank", id="added to a tensor"),
        pytest.param("def f(t):\n    t += rank\nx = np.zeros(2)\nf(t=x)", "per rank", id="added to an array, by name"),
        pytest.param("def f(t): t.fill_(rank)\nx = torch.zeros(2)\nf(x)", "per rank", id="filled"),
        pytest.param("x = torch.zeros(2)\nx.copy_(torch.ones(2) * rank)", "per rank", id="copied to"),
        pytest.param("x = torch.zeros(2)\nx.data = torch.ones(2) * rank", "per rank", id="given other elements"),
        pytest.param("def f(t): t.data = torch.ones(2) * rank\nx = torch.zeros(2)\nf(x)", "per rank", id="given other elements by a function"),
        pytest.param("x = torch.ones(2) * rank\nx.data = torch.zeros(2)", "zero", id="given those that all have"),
        pytest.param("def f(t): t += rank\nx = 0\nf(x)", "zero", id="added to a number"),
        pytest.param("def f(t):\n    t = t.clone()\n    t.add_(rank)\nx = torch.zeros(2)\nf(x)", "zero", id="of its own"),
        pytest.param("def f(t): return t.add(rank)\nx = torch.zeros(2)\nf(x)", "zero", id="not in place"),
        pytest.param("def g(u): u.add_(rank)\ndef f(t): g(t)\nx = torch.zeros(2)\nf(x)", "per rank", id="two calls deep"),
        pytest.param("class C:\n    def f(self, t): t[0] += rank\nx = np.zeros(2)\nC().f(x)", "per rank", id="of a method"),
        pytest.param("def f(t): t[0] = rank\nx = torch.zeros(2)\ny = torch.zeros(2)\nf(y)", "zero", id="into another one"),
        pytest.param("def f(t, on):\n    if on:\n        t.add_(rank)\nx = torch.zeros(2)\ny = torch.zeros(2)\nf(y, True)\nf(x, False)", "zero", id="in another call"),
        pytest.param("def f(t): t.add_(rank)\nx = torch.zeros(2)\ny = torch.zeros(2)\nf(y)\nf(x)", "per rank", id="in a second call"),
    ],
)
def test_what_a_function_writes_in_place(text: str, lying: str) -> None:
    ex = executed(f"{_HEAD}{text}\n")
    assert str(placement_of(held(ex, "x"))) == lying


def test_an_attribute_that_a_function_is_given() -> None:
    ex = executed(f"{_HEAD}class C: pass\nc = C()\nc.t = torch.zeros(2)\ndef f(t): t.add_(rank)\nf(c.t)\nx = c.t\n")
    assert str(placement_of(held(ex, "x"))) == "per rank"


@pytest.mark.parametrize(
    ("text", "lying"),
    [
        pytest.param("b = c.t\nb.mul_(0.9).add_(rank)", "per rank", id="by a name, in a chain"),
        pytest.param("b = getattr(c, 't')\nb += rank", "per rank", id="by a name"),
        pytest.param("b = c.t\nb = b + rank", "zero", id="another tensor"),
    ],
)
def test_a_tensor_without_axes_in_two_places(text: str, lying: str) -> None:
    ex = executed(f"{_HEAD}class C: pass\nc = C()\nc.t = torch.zeros(())\n{text}\nx = c.t\n")
    assert str(placement_of(held(ex, "x"))) == lying


@pytest.mark.parametrize(
    ("index", "lying"),
    [
        # places of elements and masks take copies
        pytest.param("torch.tensor([0, 1])", "zero", id="places"),
        pytest.param("[0, 1]", "zero", id="a list of places"),
        pytest.param("torch.arange(2)", "zero", id="an order"),
        pytest.param("c.t == 0", "zero", id="a mask"),
        pytest.param("0, torch.tensor([0, 1])", "zero", id="places on another axis"),
        # numbers and slices take parts of the tensor itself, a tensor without axes is a number
        pytest.param("0", "per rank", id="a number"),
        pytest.param("torch.tensor(0)", "per rank", id="a tensor without axes"),
        pytest.param("torch.tensor([0, 1])[0]", "per rank", id="one of several places"),
        pytest.param("1:", "per rank", id="a slice"),
        pytest.param("...", "per rank", id="all of it"),
        pytest.param("None, :", "per rank", id="another axis"),
        pytest.param("torch.load('places')", "per rank", id="a tensor that may have no axes"),
    ],
)
def test_what_an_index_takes(index: str, lying: str) -> None:
    ex = executed(f"{_HEAD}class C: pass\nc = C()\nc.t = torch.zeros(2, 2)\nb = c.t[{index}]\nb += rank\nx = c.t\n")
    assert str(placement_of(held(ex, "x"))) == lying


def test_what_is_written_into_a_place_that_an_index_names_is_in_the_tensor() -> None:
    ex = executed(f"{_HEAD}x = torch.zeros(2, 2)\nx[torch.tensor([0, 1])] += rank\n")
    assert str(placement_of(held(ex, "x"))) == "per rank"


def test_numbers_of_numpy_are_no_places() -> None:
    ex = executed(f"{_HEAD}a = np.zeros(3).mean()\nb = a\nb += rank\nx = a\n")
    assert str(placement_of(held(ex, "x"))) in ("zero", "uniform")


@pytest.mark.parametrize(
    "text",
    [
        "a, b = c.t.unbind(0)\na.add_(rank)",
        "rows = c.t.unbind()\nrows[0].mul_(0.9).add_(rank)",
        "for part in c.t.split(1):\n    part += rank",
        "c.t.chunk(2)[1].fill_(rank)",
        "torch.split(c.t, [1, 1])[0].add_(rank)",
        "torch.unbind(c.t)[1].add_(rank)",
    ],
)
def test_parts_of_a_tensor_are_the_tensor(text: str) -> None:
    top = f"{_HEAD}import torch\nclass C: pass\nc = C()\nc.t = torch.zeros(2, 3)\n"
    assert str(placement_of(held(executed(f"{top}{text}\nx = c.t\n"), "x"))) == "per rank"
    assert str(placement_of(held(executed(f"{top}c.t.unbind(0)[0].add(rank)\nx = c.t\n"), "x"))) == "zero"


@pytest.mark.parametrize("draw", ["np.random.shuffle(order)", "random.shuffle(order)", "np.random.default_rng().shuffle(order)", "mix(order[1:])"])
def test_what_is_shuffled_by_another_name_is_shuffled(draw: str) -> None:
    top = "import random\nimport torch\nimport dpmigrate_runtime as ddp\nddp.setup()\nddp.seed_ranks()\ndef mix(a): random.shuffle(a)\n"
    text = f"class C: pass\nc = C()\nc.t = torch.arange(4)\norder = c.t.numpy()\n{draw}\nx = c.t\n"
    assert str(placement_of(held(executed(f"{_HEAD}{top}{text}"), "x"))) == "per rank"


def test_what_is_written_into_a_part_the_whole_is_made_of_as_well() -> None:
    top = "import torch\nfrom torch.utils.data import DataLoader\nclass C: pass\nc = C()\nc.t = torch.zeros(2, 2)\n"
    ex = executed(f"{top}for batch in DataLoader(torch.ones(8, 2), 4):\n    part = c.t[0]\n    part += batch.sum(0)\nx = c.t\n")
    assert any(d.sources for d in data(held(ex, "x")))


_LOADER = "import torch\nfrom torch.utils.data import DataLoader\nloader = DataLoader(torch.ones(32, 3), 8)\n"


@pytest.mark.parametrize(
    ("made", "text", "lying"),
    [
        pytest.param("torch.empty(8, 3)", "b.resize_(x.size()).copy_(x)", "rows(axis 0)", id="another size, and all elements"),
        pytest.param("torch.empty(8, 3)", "b.resize_as_(x).copy_(x)", "rows(axis 0)", id="that of the batch"),
        pytest.param("torch.empty(8)", "b.resize_(x.size(0)).fill_(1.0)", "rows(axis 0)", id="one number"),
        pytest.param("torch.empty(8, 2)", "b.resize_(x.size(0), 2).normal_(0, 1)", "rows(axis 0)", id="drawn"),
        pytest.param("torch.empty(8, 3)", "b.data.resize_(x.size()).copy_(x)", "unknown", id="past the gradient: b is as long as before"),
        pytest.param("torch.empty(8, 3)", "b.data.resize_as_(x)\n    b.data.copy_(x)", "unknown", id="in two statements"),
        pytest.param("torch.empty(8, 3)", "b.copy_(x)", "unknown", id="a part into what is as long as the whole"),
        pytest.param("torch.empty(len(option), 3)", "b.copy_(x)", "rows(axis 0)", id="of a length that is not known"),
        pytest.param("torch.empty(8, 3)", "b = x @ x.T\n    b.resize_(x.size(0), 1)", "unknown", id="what meets others in another form"),
        pytest.param("torch.zeros(3)", "b.data.add_(rank)", "per rank", id="past the gradient, added"),
        pytest.param("torch.zeros(3)", "torch.nn.init.ones_(b).mul_(rank)", "per rank", id="behind a function of a module"),
        pytest.param("torch.zeros(3)", "b.add_(1).mul_(rank).clamp_(0, 1)", "per rank", id="a chain"),
        pytest.param("torch.ones(3) * rank", "b.data.copy_(torch.zeros(3))", "zero", id="past the gradient, all elements"),
    ],
)
def test_tensors_that_are_filled_anew(made: str, text: str, lying: str) -> None:
    ex = executed(f"{_HEAD}{_LOADER}option = open('a').read()\nb = {made}\nfor x in loader:\n    {text}\n    y = b\n")
    assert str(placement_of(held(ex, "y"))) == lying
