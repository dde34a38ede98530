"""DPM909: a file that another one starts."""

from __future__ import annotations

import pytest

from tests.rules.program import COUNTING, STEP, found, of, pointed

_TRAIN = "def train(model, loader):\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    for x, y in loader:\n"
_TRAIN += "".join(f"        {line}\n" for line in STEP.splitlines())
_IMPORTS = "import torch\nimport torch.nn.functional as F\n"


@pytest.mark.parametrize("module_level", [False, True], ids=["guard", "module"])
def test_a_script_that_starts(module_level: bool) -> None:
    assert found("DPM909", module_level=module_level) == []
    assert found("DPM909", module_level=module_level, end=COUNTING) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_IMPORTS + _TRAIN, id="functions only"),
        pytest.param(_IMPORTS + "RATE = 0.1\n" + _TRAIN + "'train()'  # train()\n", id="a constant, a string, a comment"),
        pytest.param(_IMPORTS + "class T:\n" + "".join(f"    {line}\n" for line in _TRAIN.splitlines()), id="in a class"),
        pytest.param(_IMPORTS + _TRAIN + "try:\n    import apex\nexcept ImportError:\n    apex = None\n", id="imports that may fail"),
    ],
)
def test_refused(text: str) -> None:
    (one,) = of("DPM909", text)
    assert pointed(text, one) == "loss.backward()"
    assert not one.edits and one.severity.value == "blocker"
