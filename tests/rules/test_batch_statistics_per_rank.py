"""DPM115: BatchNorm sees a part of the batch."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from dpmigrate.settings import Settings
from tests.rules.program import found, hits


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "nn.GroupNorm(2, 4)"}, id="GroupNorm has no statistics of the batch"),
        pytest.param({"end": "print('nn.BatchNorm2d')  # nn.BatchNorm2d"}, id="in a string and a comment"),
        pytest.param({"imports": "from lib import BatchNorm2d", "end": "BatchNorm2d(3)"}, id="another library's"),
        pytest.param({"model": "model = nn.DataParallel(nn.Sequential(nn.Linear(8, 2), nn.BatchNorm1d(2)))"}, id="DataParallel did the same"),
        pytest.param(
            {"imports": "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0,1'", "model": "model = nn.DataParallel(nn.Sequential(nn.Linear(8, 2), nn.BatchNorm1d(2)))"},
            id="DataParallel of the GPUs that were chosen",
        ),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM115", **parts) == []


@pytest.mark.parametrize(
    ("parts", "pointed"),
    [
        pytest.param({"model": "model = nn.Sequential(nn.Linear(8, 2), nn.BatchNorm1d(2))"}, "nn.BatchNorm1d", id="attribute"),
        pytest.param({"imports": "from torch.nn import BatchNorm2d as BN", "end": "print(BN)"}, "BN", id="from-import with alias"),
        pytest.param({"defs": "class Part(nn.Module):\n    norm = torch.nn.BatchNorm3d"}, "torch.nn.BatchNorm3d", id="in a class, full name"),
        pytest.param(
            {"imports": "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'", "model": "model = nn.DataParallel(nn.Sequential(nn.Linear(8, 2), nn.BatchNorm1d(2)))"},
            "nn.BatchNorm1d", id="DataParallel of one GPU",
        ),
        pytest.param({"module_level": True, "end": "a = nn.BatchNorm1d(2)\nb = nn.BatchNorm1d(2)"}, "nn.BatchNorm1d", id="said once"),
    ],
)
def test_noted(parts: dict[str, str], pointed: str) -> None:
    (one,) = hits("DPM115", **parts)
    assert found("DPM115", **parts) == [pointed]
    assert one.severity is Severity.NOTE and not one.edits


def test_not_with_sync_bn() -> None:
    assert found("DPM115", Settings(sync_bn=True), end="nn.BatchNorm1d(2)") == []


_NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)
        self.scale = nn.Parameter(torch.ones(2, 2))
    def forward(self, x):
        z = self.fc(x)
        return {}
"""


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("z / z.std(1)", id="of each sample"),
        pytest.param("z / self.scale.std(0)", id="of a parameter"),
        pytest.param("z - z.mean(0)", id="a mean, which may go over time"),
    ],
)
def test_a_model_without_statistics_of_the_batch(value: str) -> None:
    assert found("DPM115", net=_NET.format(value)) == []


@pytest.mark.parametrize(
    ("value", "pointed"),
    [
        pytest.param("z / z.std(0)", "z.std(0)", id="position"),
        pytest.param("z / torch.var(z, dim=0)", "torch.var(z, dim=0)", id="function, keyword"),
        pytest.param("z / z.std()", "z.std()", id="over everything"),
    ],
)
def test_a_statistic_by_hand(value: str, pointed: str) -> None:
    assert found("DPM115", net=_NET.format(value)) == [pointed]
    assert found("DPM115", Settings(sync_bn=True), net=_NET.format(value)) == [pointed]
    model = "model = nn.DataParallel(Net())"
    assert found("DPM115", net=_NET.format(value), model=model) == []


_OWN = """class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(8))
    def forward(self, x):
        {}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.fc = nn.Linear(8, 2)
    def forward(self, x):
        return self.fc(self.norm(x))
"""


@pytest.mark.parametrize("model", ["model = Net()", "model = nn.Sequential(Norm(), nn.Linear(8, 2))"])
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param("return x - x.mean(0)", [], id="which may go over time"),
        pytest.param("return x - (x.mean(1, keepdim=True) if self.training else 0)", [], id="of each sample"),
        pytest.param("return x - (self.kept.mean(0) if self.training else 0)", [], id="of a buffer"),
        pytest.param("if not self.training:\n    x = x - x.mean(0)\nreturn x", [], id="in evaluation alone"),
        pytest.param("if self.training:\n    m = x.mean(0)\nelse:\n    m = self.kept\nreturn x - m", ["x.mean(0)"], id="in training alone"),
        pytest.param(
            "m = torch.mean(x, dim=(0,))\nself.kept.lerp_(m.detach(), 0.1)\nreturn x - m", ["torch.mean(x, dim=(0,))"], id="through a name into a buffer"
        ),
        pytest.param("self.kept.lerp_(x.mean(0), 0.1)\nreturn x - self.kept", ["x.mean(0)"], id="into a buffer"),
        pytest.param("self.kept.lerp_(x[0], 0.1)\nm = x.mean(0)\nreturn x - m", [], id="something else into the buffer"),
        pytest.param("m, n = x.std(0), 1\nreturn x / m", ["x.std(0)"], id="a spread"),
    ],
)
def test_a_normalisation_of_its_own(model: str, lines: str, expected: list[str]) -> None:
    assert found("DPM115", net=_OWN.format(lines.replace("\n", "\n        ")), model=model) == expected
