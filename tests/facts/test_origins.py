"""What a value is made of, behind its variables."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.origins import of_data, of_weights, origins
from tests.facts.probe import probed
from tests.rules.program import STEP, program


def _ask(expression: str, before: str = "") -> tuple[object, ast.expr]:
    found, node = probed(program(before=f"limit, seen = 3, []\n{before}", step=f"{STEP}seen.append(loss)\ntotal = loss.item() * 2\nprobe({expression})"))
    return found.roles, node


@pytest.mark.parametrize("expression", ["limit", "epoch + 1", "optimizer.param_groups[0]['lr']", "len(loader)", "'loss'"])
def test_nothing_of_a_batch(expression: str) -> None:
    roles, node = _ask(expression)
    assert not of_data(roles, node)  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", ["x", "loss", "total > limit", "seen[-1]", "model(x).max()", "x.size(0)"])
def test_of_a_batch(expression: str) -> None:
    roles, node = _ask(expression)
    assert of_data(roles, node)  # type: ignore[arg-type]


def test_what_will_be_alike_is_left_out() -> None:
    roles, node = _ask("total")
    assert isinstance(node, ast.Name)
    alike = [b.value for b in roles.names.bindings(roles.names.scope_of[node], "loss") if b.value is not None]  # type: ignore[attr-defined]
    assert not of_data(roles, node, alike)  # type: ignore[arg-type]


def test_each_expression_once() -> None:
    roles, node = _ask("total + total")
    words = [ast.unparse(n) for n, _ in origins(roles, node) if isinstance(n, ast.Call)]  # type: ignore[arg-type]
    assert words.count("loss.item()") == 1 and "F.cross_entropy(model(x), y)" in words


_PROGRAM = """
import torch
import torch.nn as nn
from collections import OrderedDict
from torch.utils.data import DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
    def forward(self, x):
        return self.fc(x)
    def size(self):
        return self.fc.weight.norm()
model, other = Net(), Net()
loader = DataLoader(data, batch_size=4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def loss_of(x):
    return model(x).sum()
def nothing(x):
    model(x)
def norms(net, x=None):
    net(x)
    return [p.norm() for p in net.parameters()]
def each(net):
    for p in net.parameters():
        yield p
def every(net):
    yield from net.parameters()
    return 3
def apart(one, two):
    d = OrderedDict()
    for (k, v), (_, w) in zip(one.state_dict().items(), two.state_dict().items()):
        d[k] = v - w
    return d
class Keeper:
    def __init__(self, net):
        self.net, self.kept, self.seen = net, {}, []
    def keep(self, x):
        self.kept["a"] = self.net(x)
        self.seen.append(self.net(x))
        return self.kept
    def last(self, x):
        return [p for p in self.net.parameters()], self.seen
    def weights(self, x):
        self.net(x).sum().backward()
        return dict(self.net.named_parameters())
keeper = Keeper(model)
for x in loader:
    loss = loss_of(x)
    loss.backward()
    optimizer.step()
    STEP
"""


def _of_weights(step: str) -> bool:
    found, expression = probed(_PROGRAM.replace("STEP", step.replace("\n", "\n    ")))
    return of_weights(found.roles, expression)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("probe(3)", id="a number"),
        pytest.param("probe(x)", id="a batch"),
        pytest.param("probe(loss)", id="a loss"),
        pytest.param("probe(list(model.parameters()) + [model(x)])", id="weights and an output"),
        pytest.param("probe(list(model.parameters()) + [loss_of(x)])", id="weights and what a function returns of an output"),
        pytest.param("probe(list(model.parameters()) + [x])", id="weights and a batch"),
        pytest.param("probe(list(model.parameters()) + [next(batches)])\nbatches = iter(loader)", id="weights and the next batch"),
        pytest.param("probe([p.grad for p in model.parameters()])", id="gradients"),
        pytest.param("probe([p + torch.randn_like(p) for p in model.parameters()])", id="weights and a draw"),
        pytest.param("probe(list(model.parameters()) + [nothing(x)])", id="a function that returns nothing"),
        pytest.param("probe(each(model))", id="a generator"),
        pytest.param("probe(every(model))", id="a generator of another one"),
        pytest.param("probe([model.size(), *model.parameters()])", id="a method of the model"),
        pytest.param("probe(keeper.keep(x))", id="an attribute that is filled by its keys"),
        pytest.param("probe(keeper.last(x))", id="an attribute that is filled by a method"),
    ],
)
def test_not_of_weights_alone(step: str) -> None:
    assert not _of_weights(step)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("probe([p.norm() for p in model.parameters()])", id="a norm"),
        pytest.param("probe(norms(model, x))", id="what a function returns that is given a batch"),
        pytest.param("probe(norms(net=model, x=x)[0] * 0.1)", id="by keyword"),
        pytest.param("d = apart(model, other)\nprobe('fc' in d.keys())", id="the names in a difference"),
        pytest.param("d = keeper.weights(x)\nprobe(d['fc.weight'])", id="what a method returns after a step"),
    ],
)
def test_of_weights(step: str) -> None:
    assert _of_weights(step)
