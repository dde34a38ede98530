"""What may go into what is differentiated."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dpmigrate.facts.sources import marks, training_sources
from tests.facts.probe import probed

_TOP = """
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(8, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def reaches(turn: str, defs: str = "", end: str = "") -> bool:
    text = _TOP + dedent(defs) + "\nfor epoch in range(2):\n    for x, y in DataLoader(data):\n" + indent(dedent(turn), " " * 8) + "\n" + dedent(end) + "\n"
    found, node = probed(text)
    return found.roles.into_loss(node)


@pytest.mark.parametrize(
    ("turn", "defs", "end"),
    [
        pytest.param("loss = criterion(model(x), y)\nloss.backward()\nprobe(other)", "", "", id="another variable"),
        pytest.param("loss = model(x)\nloss.backward()\nwith torch.no_grad():\n    loss = criterion(aux, y)\nprobe(aux)", "", "", id="under no_grad"),
        pytest.param(
            "loss = model(x)\nloss.backward()",
            "",
            "for x, y in DataLoader(data):\n    loss = criterion(model(x), aux)\n    print(loss)\nprobe(aux)",
            id="in an evaluation",
        ),
        pytest.param(
            "loss = model(x)\nloss.backward()", "def report(aux):\n    loss = criterion(aux)\n    probe(aux)\nreport(1)", "", id="in another function"
        ),
        pytest.param("loss = f(x)\nloss.backward()\nprobe(aux)", "@torch.no_grad()\ndef f(x):\n    return aux", "", id="of a function under no_grad"),
        pytest.param(
            "loss = model(x)\nloss.backward()", "class Head(nn.Module):\n    def forward(self, x):\n        probe(x)\n        return x", "", id="of a module"
        ),
    ],
)
def test_not_into_the_loss(turn: str, defs: str, end: str) -> None:
    assert not reaches(turn, defs, end)


@pytest.mark.parametrize(
    ("turn", "defs"),
    [
        pytest.param("loss = criterion(model(x), y)\nprobe(loss)\nloss.backward()", "", id="the loss"),
        pytest.param("a: int = model(x)\nb = a\nb += 1\nprobe(a)\nb.backward()", "", id="through assignments"),
        pytest.param("criterion(a, y).backward()\nprobe(a)", "", id="in the call"),
        pytest.param("box.loss = model(x)\nbox.loss.backward()\nprobe(box.loss)", "box = open(0)", id="an attribute"),
        pytest.param("loss = f(x)\nloss.backward()", "def f(x):\n    out = model(x)\n    probe(out)\n    return out", id="what a function returns"),
        pytest.param("out = model(x)\nprobe(out)\nf(out)", "def f(loss):\n    loss.backward()", id="what a function is given"),
        pytest.param(
            "loss = table['f'](x)\nloss.backward()", "def f(x):\n    out = model(x)\n    probe(out)\n    return out", id="of a function that nothing calls"
        ),
    ],
)
def test_into_the_loss(turn: str, defs: str) -> None:
    assert reaches(turn, defs)


@pytest.mark.parametrize(
    ("turn", "goes"),
    [
        pytest.param("history[epoch].append(aux)", False, id="a list of a table"),
        pytest.param("history[epoch] = aux", False, id="an entry of a table"),
        pytest.param("rows[epoch].append(aux)", True, id="a list of samples"),
        pytest.param("rows[epoch][0] = aux", True, id="an entry of samples"),
    ],
)
def test_an_index_says_only_where_something_is_written(turn: str, goes: bool) -> None:
    """``epoch`` is in what the training goes over."""
    text = f"{_TOP}for epoch in range(2):\n    for x, y in DataLoader(rows, name=f'{{epoch}}'):\n        model(x).backward()\n        {turn}\nprobe(aux)\n"
    found, node = probed(text)
    assert bool(marks(found.roles, node) & training_sources(found.roles)) is goes


_TRAIN = """
def train(net, mean):
    net = net.to("cpu")
    for x, y in DataLoader(data):
        loss = criterion(net(x), y)
        loss.backward()
        aux = loss.item()
    probe(aux)
    return {given}
"""


@pytest.mark.parametrize(
    ("given", "taken", "goes"),
    [
        pytest.param("net, aux", "model, mean", False, id="beside the model"),
        pytest.param("aux, net", "mean, model", False, id="before the model"),
        pytest.param("net, aux", "*model, mean", True, id="places that are not known"),
        pytest.param("net, aux", "both", True, id="both together"),
        pytest.param("wrapped(net, aux), 0.0", "model, mean", True, id="the model is made of it"),
        pytest.param("mean, net", "model, mean", False, id="another order"),
        pytest.param("aux, net", "model, mean", True, id="in the place of the model"),
        pytest.param("[net, aux]", "model, mean", True, id="no tuple"),
    ],
)
def test_each_part_of_what_a_function_returns_goes_its_own_way(given: str, taken: str, goes: bool) -> None:
    end = "probed = 0.0" if taken != "both" else "model = both[0]"
    text = f"{_TOP}{_TRAIN.format(given=given)}\nmean = 0.0\nfor epoch in range(2):\n    {taken} = train(model, mean)\n    {end}\n"
    found, node = probed(text)
    assert bool(marks(found.roles, node) & training_sources(found.roles)) is goes


def test_a_function_with_a_decorator_may_return_something_else() -> None:
    text = f"{_TOP}@cached\n{_TRAIN.format(given='net, aux').lstrip()}\nfor epoch in range(2):\n    model, mean = train(model, 0.0)\n"
    found, node = probed(text)
    assert marks(found.roles, node) & training_sources(found.roles)
