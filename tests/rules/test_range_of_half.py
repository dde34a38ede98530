"""DPM319: numbers that float16 does not have."""

from __future__ import annotations

import pytest

from dpmigrate.settings import Settings
from tests.rules.program import found

AMP = Settings(amp=True)


def _net(code: str) -> str:
    return f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n    def forward(self, x):\n        h = self.fc(x)\n        h = {code}\n        return h\n"


_FILL = "h.masked_fill(h > 2, -1e9)"
_ADD = "h / (h.sum(1, keepdim=True) + 1e-8)"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("h.masked_fill(h > 2, -1e4)", id="a number that fits"),
        pytest.param("h.masked_fill(h > 2, float('-inf'))", id="infinity"),
        pytest.param("h.masked_fill(h > 2, torch.finfo(h.dtype).min)", id="the smallest of the type"),
        pytest.param("h.masked_fill(h > 2)", id="no number"),
        pytest.param("h.masked_fill(h > 2, 'x')", id="a text"),
        pytest.param("h.masked_fill(h > 2, +1e9)", id="another sign"),
        pytest.param("h / (h.sum(1, keepdim=True) + 1e-6)", id="an epsilon that fits"),
        pytest.param("h * 1e-8", id="a product"),
        pytest.param("h + 0", id="nothing is added"),
        pytest.param("h + -1e-8", id="less is added"),
    ],
)
def test_nothing_to_say(code: str) -> None:
    assert found("DPM319", AMP, net=_net(code)) == []


@pytest.mark.parametrize("settings", [None, Settings(amp=True, amp_dtype="bfloat16")], ids=["without --amp", "the range of float32"])
@pytest.mark.parametrize("code", [_FILL, _ADD])
def test_only_in_float16(settings: Settings | None, code: str) -> None:
    assert found("DPM319", settings, net=_net(code)) == []


def test_an_average_outside_a_model() -> None:
    assert found("DPM319", AMP, end="print(3.0 / (2 + 1e-8))") == []


@pytest.mark.parametrize(
    ("code", "pointed"),
    [
        pytest.param(_FILL, _FILL, id="positional"),
        pytest.param("h.masked_fill_(mask=h > 2, value=1e10)", "h.masked_fill_(mask=h > 2, value=1e10)", id="keyword, in place"),
        pytest.param(_ADD, "h.sum(1, keepdim=True) + 1e-8", id="right"),
        pytest.param("h / (1e-10 + h)", "1e-10 + h", id="left"),
    ],
)
def test_out_of_range(code: str, pointed: str) -> None:
    assert found("DPM319", AMP, net=_net(code)) == [pointed]
