"""Methods of models that use nothing of the model."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.facts.stateless import stateless
from tests.pipeline import script, script_of

_HEAD = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

class Base(nn.Module):
    margin = 1.0
    scale: float = -2 * 0.5
    odd = f(3)
    table = None

class Net(Base):
    def __init__(self, weight):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.criterion = nn.CrossEntropyLoss(reduction="mean")
        self.weighted = nn.CrossEntropyLoss(weight)
        self.given = weight
        self.register_buffer("table", weight)
        self.count, self.other = 1, 2
    def forward(self, x):
        return self.fc(x)
    def distance(self, a, b):
        return (a - b).abs()
    @property
    def size(self):
        return self.fc.weight.sum()
"""
_TRAIN = """
model = Net(1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(data):
        model.loss(model(x), y).backward()
        optimizer.step()
"""


def free(method: str) -> bool:
    found = script(_HEAD + indent(method, "    ") + "\n" + _TRAIN)
    return stateless(found.roles, found.roles.models, "loss")


@pytest.mark.parametrize(
    "method",
    [
        pytest.param("def other(self):\n    pass", id="not a method"),
        pytest.param("def loss(self, out, y):\n    return self.fc(out)", id="a layer"),
        pytest.param("def loss(self, out, y):\n    return out.sum() + self.fc.weight.norm()", id="a parameter"),
        pytest.param("def loss(self, out, y):\n    return self(out)", id="the model itself"),
        pytest.param("def loss(self, out, y):\n    return f(self)", id="handed on"),
        pytest.param("def loss(self, out, y):\n    return super().loss(out, y)", id="of the base"),
        pytest.param("def loss(self, out, y):\n    self.last = out\n    return out", id="kept"),
        pytest.param("def loss(self, out, y):\n    return self.help(out)\ndef help(self, x):\n    return self.fc(x)", id="another method that does"),
        pytest.param("def loss(self, out, y):\n    return f(self.distance)", id="a method that is handed on"),
        pytest.param("def loss(self, out, y):\n    return out * self.size", id="a property"),
        pytest.param("def loss(self, out, y):\n    return out * self.odd", id="something that is not known"),
        pytest.param("def loss(self, out, y):\n    return out * self.given", id="something that it is given"),
        pytest.param("def loss(self, out, y):\n    return out * self.count", id="one of several"),
        pytest.param("def loss(self, out, y):\n    return out * self.table", id="a buffer"),
        pytest.param("def loss(self, out, y):\n    return self.weighted(out, y)", id="a loss with weights"),
        pytest.param("def loss(self, out, y):\n    return out(y)", id="what it is given is called"),
        pytest.param("def loss(self, out, y):\n    return model(out)", id="a global model"),
    ],
)
def test_uses_the_model(method: str) -> None:
    assert not free(method)


@pytest.mark.parametrize(
    "method",
    [
        pytest.param("def loss(self, out, y):\n    return F.cross_entropy(out, y)", id="a function of torch"),
        pytest.param("@staticmethod\ndef loss(out, y):\n    return F.cross_entropy(out, y)", id="static"),
        pytest.param("def loss(*given):\n    return given[0].sum()", id="no parameters"),
        pytest.param("def loss(self, out, y):\n    return self.criterion(out, y)", id="a loss of torch"),
        pytest.param("def loss(self, out, y):\n    return self.margin * self.scale * out.sum()", id="numbers of the class"),
        pytest.param("def loss(self, out, y):\n    return self.distance(out, y).mean()", id="another method"),
        pytest.param("def loss(self, out, y):\n    return out.sum() if y is None else self.loss(out, None)", id="itself"),
    ],
)
def test_uses_nothing(method: str) -> None:
    assert free(method)


def test_the_norm_of_such_a_loss() -> None:
    """Through the wrapper, over every class that the model may be of."""
    nets = "from torch import nn\nfrom torch.nn import functional as F\n"
    for name, loss in (("One", "F.mse_loss(out, y)"), ("Two", "F.mse_loss(out, y, reduction='{kind}')")):
        nets += f"class {name}(nn.Module):\n    def forward(self, x):\n        return self.fc(x)\n    def loss(self, out, y):\n        return {loss}\n"
    nets += "def make(kind):\n    if kind:\n        return One()\n    return Two()\n"
    train = "import torch\nfrom torch.utils.data import DataLoader\nimport nets\n" + _TRAIN.replace("Net(1)", "nets.make(kind)")
    norms = []
    for kind in ("mean", "sum"):
        found = script_of({"nets": nets.format(kind=kind), "train": train})
        norms.append(found.losses.of_backward(found.roles.backwards[0]).norm.value)
    assert norms == ["mean", "unknown"]


_TENSORS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.kernel = torch.ones(2)
        self.across, self.down = self.filters()
        self.weight = nn.Parameter(torch.ones(2))
        self.wanted = torch.ones(2).requires_grad_()
        self.register_buffer("table", torch.ones(2))
        self.register_buffer("queue", torch.ones(2))
        self.register_buffer("rows", torch.ones(2))
        self.register_buffer("lent", torch.ones(2))
        self.register_buffer("late", torch.ones(2))
        self.first, self.last = self.fc, None
        self.made = self.fc.weight * 2
        self.either = self.kernel if len(list(self.parameters())) > 3 else self.weight
        self.seen = torch.ones(2)
    def filters(self):
        return torch.tensor([1.0, 2.0]).view(2), torch.zeros(2)
    def forward(self, x):
        self.seen = self.fc(x)
        self.queue.mul_(0.9)
        self.rows[0] = x.mean()
        lent = self.lent
        lent.add_(1)
        self.register_buffer("late", x.mean(0))
        return self.fc(x)
    def loss(self, out, y):
        return {value}

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.ones(16, 8), torch.ones(16, 2)), batch_size=4):
        model.loss(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("(out * self.kernel).sum()", True, id="a tensor"),
        pytest.param("(out * self.across + self.down).sum()", True, id="what a method makes"),
        pytest.param("(out * self.weight).sum()", False, id="a parameter"),
        pytest.param("(out * self.wanted).sum()", False, id="a tensor that wants gradients"),
        pytest.param("(out * self.table).sum()", True, id="a buffer"),
        pytest.param("torch.dot(out[0], self.table.view(-1)[:2])", True, id="a part of a buffer"),
        pytest.param("(out * self.queue).sum()", False, id="a buffer that forward writes"),
        pytest.param("(out * self.rows).sum()", False, id="a buffer of which forward writes a part"),
        pytest.param("(out * self.late).sum()", False, id="a buffer registered later"),
        pytest.param("(out * self.lent).sum()", False, id="a buffer that has another name"),
        pytest.param("self.first(out).sum()", False, id="one of several, a layer"),
        pytest.param("(out * self.made).sum()", False, id="what is made of a parameter"),
        pytest.param("(out * self.either).sum()", False, id="a tensor or a parameter"),
        pytest.param("(out * self.seen).sum()", False, id="what forward gives anew"),
        pytest.param("(out * self.unknown).sum()", False, id="what is not given"),
    ],
)
def test_a_tensor_that_is_no_part(value: str, expected: bool) -> None:
    """It is neither trained nor kept: the execution knows what the attribute holds."""
    found = script(_TENSORS.format(value=value))
    assert stateless(found.roles, found.roles.models, "loss") is expected
