"""DPM118: buffers that collect samples."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import found, hits, refused

_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.register_buffer("kept", torch.zeros(8))
        self.register_buffer(name="other", tensor=torch.zeros(8))
        self.kept += 1

    def forward(self, x):
        {}
        return self.fc(x)
"""


def _net(line: str) -> str:
    return _NET.format(line.replace("\n", "\n        "))


def _in_method(line: str, given: str) -> str:
    return _net(f"self.put({given})") + f"\n    def put(self, value):\n        {line}\n"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("y = self.kept + x", id="only read"),
        pytest.param("self.kept += 1", id="steps are counted"),
        pytest.param("self.kept.mul_(0.9)", id="changed alike on every rank"),
        pytest.param("self.kept = torch.zeros(x.shape[1], device=x.device, dtype=x.dtype)", id="made for a length"),
        pytest.param("n, length = x.shape\nself.kept = torch.zeros(length)", id="made for a length, unpacked"),
        pytest.param("size = x.size(-1)\nself.kept = torch.zeros(size)", id="made for a size, through a name"),
        pytest.param("self.last = x", id="no buffer"),
        pytest.param("self.kept[0] = self.fc.weight.sum()", id="made of weights"),
        pytest.param("x.add_(1)\nx = x.add(self.kept)\nprint(x)", id="something else is changed"),
        pytest.param("self.put(3)\n", id="a method that is not seen"),
    ],
)
def test_nothing_to_say(line: str) -> None:
    assert found("DPM118", net=_net(line)) == []


@pytest.mark.parametrize(
    ("line", "pointed"),
    [
        pytest.param("self.kept += x.size(0)", "self.kept += x.size(0)", id="samples are counted"),
        pytest.param("self.kept += x.shape[0]", "self.kept += x.shape[0]", id="samples are counted, by shape"),
        pytest.param("n, length = x.shape\nself.kept += n", "self.kept += n", id="samples are counted, unpacked"),
        pytest.param("self.kept = 0.9 * self.kept + 0.1 * x.mean(0)", "self.kept = 0.9 * self.kept + 0.1 * x.mean(0)", id="a running mean"),
        pytest.param("self.other.mul_(0.9).add_(x.mean(0), alpha=0.1)", "self.other.mul_(0.9).add_(x.mean(0), alpha=0.1)", id="a running mean, in place"),
        pytest.param("keys = x.detach()\nself.kept.data[:4] = keys", "self.kept.data[:4] = keys", id="a queue"),
        pytest.param("self.kept.data.copy_(x[0])", "self.kept.data.copy_(x[0])", id="copied"),
    ],
)
def test_refused_for_one_device(line: str, pointed: str) -> None:
    assert refused("DPM118", net=_net(line)) == [pointed]
    noted = hits("DPM118", net=_net(line), model="model = nn.DataParallel(Net())")
    assert [h.severity for h in noted] == [Severity.NOTE]


def test_a_part_of_the_model() -> None:
    net = _net("self.kept += x.size(0)").replace("Net", "Inner") + "\nclass Net(Inner):\n    pass\n"
    assert refused("DPM118", net=net) == ["self.kept += x.size(0)"]


def test_in_a_method() -> None:
    line = "self.kept = value[0]"
    assert refused("DPM118", net=_in_method(line, "x")) == [line]
    assert found("DPM118", net=_in_method(line, "[3]")) == []
