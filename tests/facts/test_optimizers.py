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
        pytest.param(
            "net = nn.Sequential(nn.Linear(1, 1))\nsome = list(net.children())[1:]\nps = [list(m.parameters()) for m in some]\nps = [p for one in ps for p in one]\noptim.SGD(ps)",
            [["m"]],
            id="parts of a model, in lists of lists",
        ),
        pytest.param("some = lib.pick(net.children())\noptim.SGD([p for m in some for p in m.parameters()])", [], id="parts that are not seen"),
        pytest.param(
            "o = optim.SGD(net.parameters())\np = optim.SGD(other.parameters())\np.add_param_group({'params': net.fc.parameters()})",
            [["net"], ["net.fc", "other"]],
            id="a group for another one",
        ),
        pytest.param(
            "def show(m):\n    print([p for p in m.parameters()])\ndef build():\n    return lib.Net()\nnet = globals()[name]()\nx = net(1)\noptim.SGD(net.parameters())",
            [["net"]],
            id="a factory by name, beside a function that gives nothing",
        ),
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
        pytest.param(
            "a, b = [], []\nfor p in net.parameters():\n    (a if p.dim() > 1 else b).append(p)\noptim.SGD([{'params': a}, {'params': b}])",
            [["net"]],
            id="one of two lists",
        ),
        pytest.param("a, b = [], []\nfor p in net.parameters():\n    (b if a else 3).append(p)\noptim.SGD(a)", [], id="a test of a list"),
        pytest.param("optim.SGD(net.trainable(0.1))", [["net"]], id="groups by a method of the model"),
        pytest.param("ps = [{'params': net.base()}, {'params': net.head()}]\noptim.SGD(ps)", [["net", "net"]], id="groups by methods, by their name"),
        pytest.param("ps = net.groups()\noptim.SGD(params=ps)", [["net"]], id="groups by a method, by their name and keyword"),
        pytest.param("o = lib.make(3, net)\no.zero_grad()\no.step()", [["net"]], id="an optimizer of another file"),
        pytest.param("o = lib.make(model=net)\no.zero_grad()\no.step()", [["net"]], id="an optimizer of another file, keyword"),
        pytest.param("o = net.optimizer(3)\no.zero_grad()\no.step()", [["net"]], id="an optimizer by the model"),
        pytest.param("o = {'a': optim.SGD}['a'](net.parameters())\no.zero_grad()\no.step()", [["net"]], id="from a table"),
        pytest.param("o = getattr(optim, 'SGD')(net.parameters())\no.zero_grad()\no.step()", [["net"]], id="by its name"),
        pytest.param("make = lambda m: optim.SGD(m.parameters())\nmake(net)", [["m"]], id="a lambda that gets the model"),
        pytest.param("make = {'a': lambda ps: optim.SGD(ps), 'b': lambda ps: optim.Adam(ps)}[key]\nmake(net.parameters())", [["net"], ["net"]], id="lambdas"),
        pytest.param("lib.train(lambda ps: optim.SGD(ps))", [], id="a lambda that is called elsewhere"),
        pytest.param("m = getattr(lib, 'Net')()\nm(1)\noptim.SGD(m.parameters())", [["m"]], id="a model by its name"),
    ],
)
def test_whose_parameters(text: str, expected: list[list[str]]) -> None:
    assert [sorted(r) for r in _optimizers(text)] == expected


_OWN = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(1, 1), nn.Linear(1, 1)
    def forward(self, x):
        return self.head(self.body(x))
    def body_parameters(self):
        for m in self.body.modules():
            for p in m.parameters():
                if p.requires_grad:
                    yield p
    def head_parameters(self):
        return self.head.parameters()
    def both(self):
        return [*self.body_parameters(), *self.head_parameters()]
    def again(self):
        return self.again()
    def rate(self):
        return 0.1
    def show(self):
        print(list(self.parameters()))
mine = Net()
mine(1)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("optim.SGD([{'params': mine.body_parameters()}, {'params': mine.head_parameters(), 'lr': 1}])", ["mine", "mine"], id="two groups"),
        pytest.param("ps = [{'params': mine.body_parameters()}]\noptim.SGD(ps, lr=1)", ["mine"], id="groups in a variable"),
        pytest.param("ps = []\nps.append({'params': mine.both()})\noptim.SGD(params=ps)", ["mine"], id="through another method"),
        pytest.param("ps = list(mine.head_parameters())\noptim.SGD(ps)", ["mine"], id="a list of what a method returns"),
        pytest.param("optim.SGD([{'params': net.parameters(), 'lr': mine.rate()}, {'params': mine.again(), 'x': mine.show()}])", ["net"], id="other methods"),
    ],
)
def test_methods_of_a_model_that_give_its_parameters(text: str, expected: list[str]) -> None:
    assert _optimizers(_OWN + text) == [expected]
