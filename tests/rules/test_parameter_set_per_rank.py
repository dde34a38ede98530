"""DPM145: parameters that a step sets from its batch."""

from __future__ import annotations

import pytest

from tests.rules.program import found, refused

_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.scale = nn.Parameter(torch.ones(8))
        self.register_parameter("shift", None)
        self.register_parameter("power", nn.Parameter(torch.ones(8)))
        if self.fc.bias is None:
            self.register_parameter("middle", None)
        else:
            self.register_buffer("middle", torch.zeros(8))
        self.scale.data.mul_(2)
        self.ready = False

    def init_weights(self, x):
        self.scale.data.copy_(x.std(0))

    def forward(self, x):
        {}
        return self.fc(x * self.scale)
"""


def _net(lines: str) -> str:
    return _NET.format(lines.replace("\n", "\n        "))


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("x = x + self.scale", id="only read"),
        pytest.param("self.scale.data.clamp_(0, 1)", id="bounds"),
        pytest.param("self.scale.data.copy_(self.fc.weight.sum(0))", id="of the weights"),
        pytest.param("self.scale.data = torch.ones(x.shape[1], device=x.device)", id="of another size"),
        pytest.param("self.kept = x", id="no parameter"),
        pytest.param("x.weight = x.std(0)\nself.x.last = x", id="not of the module"),
        pytest.param("weight = x.std(0)\nprint(weight)", id="a variable"),
        pytest.param("self.middle.data.copy_(x.mean(0))", id="a buffer, registered as None elsewhere"),
    ],
)
def test_nothing_to_say(lines: str) -> None:
    assert found("DPM145", net=_net(lines)) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("self.scale.data.copy_(x.std(0))", id="copied"),
        pytest.param("self.scale.data = x.std(0)", id="its data"),
        pytest.param("self.scale = nn.Parameter(x.std(0))", id="made again"),
        pytest.param("self.scale.data[:4] = x[0, :4]", id="a part"),
        pytest.param("self.shift = nn.Parameter(x.mean(0))", id="registered by name"),
        pytest.param("self.power.data.copy_(x.mean(0))", id="registered with a value"),
        pytest.param("self.fc.weight.data.copy_(x[:2])", id="of a layer"),
        pytest.param("self.fc.bias.data[0] = x.mean()", id="of a layer, a part"),
    ],
)
def test_refused(line: str) -> None:
    assert refused("DPM145", net=_net(line)) == [line]
    assert refused("DPM145", net=_net(f"if not self.ready:\n    with torch.no_grad():\n        {line}\n    self.ready = True")) == [line]
    assert refused("DPM145", net=_net(line), model="model = nn.DataParallel(Net())") == [line]
    assert refused("DPM145", net=_net(line).replace("Net", "Inner"), model="model = nn.Sequential(nn.Linear(8, 8), Inner())") == [line]


def test_by_a_method_of_its_own() -> None:
    assert refused("DPM145", net=_net("if not self.ready:\n    self.init_weights(x)")) == ["self.scale.data.copy_(x.std(0))"]


def test_by_the_training_loop() -> None:
    step = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nloss.backward()\noptimizer.step()\n"
    net = _net("pass").replace("init_weights", "begin")
    assert refused("DPM145", net=net, step="model.begin(x)\n" + step) == ["self.scale.data.copy_(x.std(0))"]
    assert found("DPM145", net=net, before="model.begin(next(iter(loader))[0])") == []
