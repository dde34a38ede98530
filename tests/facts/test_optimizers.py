"""Which calls build an optimizer, and whose parameters it gets."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tests.pipeline import script

_TOP = """\
import torch
import lib
from torch import nn, optim
net = lib.Net()
other = lib.Net()
x = net(other(1))
"""


def _optimizers(text: str) -> list[list[str]]:
    """For each optimizer the expressions of the models that it trains."""
    found = script(_TOP + dedent(text))
    return [[ast.unparse(r) for r in o.receivers] for o in found.roles.optimizers if o.models]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="none"),
        pytest.param("s = optim.lr_scheduler.StepLR(lib.opt(net), 3)\ns.step()", [], id="a scheduler"),
        pytest.param("s = lib.scheduler(net)\ns.step()", [], id="stepped, never cleared"),
        pytest.param("s = lib.make(3)\ns.step()\ns.zero_grad()", [], id="given no model"),
        pytest.param("optim.SGD(net.parameters(), lr=1)", [["net"]], id="parameters"),
        pytest.param("optim.SGD(params=[{'params': net.parameters()}])", [["net"]], id="groups by keyword"),
        pytest.param("ps = []\nfor k, p in net.named_parameters():\n    ps += [{'params': p}]\noptim.SGD(ps)", [["net"]], id="groups filled in a loop"),
        pytest.param("ps = []\nps.append(net.parameters())\nps.extend(other.parameters())\noptim.SGD(ps)", [["net", "other"]], id="append and extend"),
        pytest.param(
            "class T:\n    def __init__(self):\n        self.ps = []\n        self.ps += list(net.parameters())\n        self.o = optim.SGD(self.ps)",
            [["net"]],
            id="an attribute that is filled",
        ),
        pytest.param(
            "def make(ps):\n    return optim.SGD(ps)\nmake(net.parameters())\nmake(ps=other.parameters())", [["net", "other"]], id="a parameter, by its calls"
        ),
        pytest.param(
            "ps = [{'params': net.parameters()}]\no = lib.make(ps)\no.step()\nnet.zero_grad()", [["net"]], id="another library's, cleared by the model"
        ),
        pytest.param("s = lib.schedule(optim.SGD(net.parameters()), [3])\ns.step()", [["net"]], id="a scheduler of another library is none"),
        pytest.param("def ps(m):\n    return m.parameters()\noptim.SGD(ps(net))", [["m"]], id="a function of the file"),
        pytest.param("ps = []\nfor k, part in net.named_children():\n    ps += list(part.parameters())\noptim.SGD(ps)", [["part"]], id="part by part"),
        pytest.param("optim.SGD(lib.groups(net, 3))", [["net"]], id="groups of another file"),
        pytest.param("optim.SGD(net.trainable(0.1))", [["net"]], id="groups by a method of the model"),
        pytest.param("o = lib.make(3, net)\no.zero_grad()\no.step()", [["net"]], id="an optimizer of another file"),
        pytest.param("o = lib.make(model=net)\no.zero_grad()\no.step()", [["net"]], id="an optimizer of another file, keyword"),
        pytest.param("o = net.optimizer(3)\no.zero_grad()\no.step()", [["net"]], id="an optimizer by the model"),
        pytest.param("o = {'a': optim.SGD}['a'](net.parameters())\no.zero_grad()\no.step()", [["net"]], id="from a table"),
        pytest.param("o = getattr(optim, 'SGD')(net.parameters())\no.zero_grad()\no.step()", [["net"]], id="by its name"),
        pytest.param("m = getattr(lib, 'Net')()\nm(1)\noptim.SGD(m.parameters())", [["m"]], id="a model by its name"),
    ],
)
def test_whose_parameters(text: str, expected: list[list[str]]) -> None:
    assert [sorted(r) for r in _optimizers(text)] == expected
