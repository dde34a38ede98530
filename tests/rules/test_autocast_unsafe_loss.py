"""DPM318: binary cross entropy on probabilities does not go with autocast."""

from __future__ import annotations

import pytest

from dpmigrate.settings import Settings
from tests.rules.program import found, refused

AMP = Settings(amp=True)
_STEP = "optimizer.zero_grad()\nloss = {}\nloss.backward()\noptimizer.step()"


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param("nn.BCEWithLogitsLoss()(model(x)[:, 0], y.float())", id="the form for logits"),
        pytest.param("F.binary_cross_entropy_with_logits(model(x)[:, 0], y.float())", id="the function for logits"),
        pytest.param("F.cross_entropy(model(x), y)  # nn.BCELoss()", id="in a comment"),
        pytest.param("losses.BCELoss()(model(x), y)", id="another library"),
    ],
)
def test_nothing_to_say(loss: str) -> None:
    assert found("DPM318", AMP, imports="import losses", step=_STEP.format(loss)) == []


def test_without_amp_it_is_right() -> None:
    assert found("DPM318", step=_STEP.format("nn.BCELoss()(torch.sigmoid(model(x)[:, 0]), y.float())")) == []


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        pytest.param("", "nn.BCELoss()", id="module"),
        pytest.param("", "torch.nn.BCELoss(reduction='mean')", id="keyword, full name"),
        pytest.param("from torch.nn import BCELoss as Loss", "Loss()", id="from-import with alias"),
        pytest.param("", "F.binary_cross_entropy(torch.sigmoid(model(x)[:, 0]), y.float())", id="function"),
        pytest.param("import torch.nn.functional as fn", "fn.binary_cross_entropy(input=model(x), target=y)", id="alias of the module"),
        pytest.param("from torch.nn import *", "BCELoss()", id="star import"),
    ],
)
def test_refused_with_amp(imports: str, call: str) -> None:
    assert refused("DPM318", AMP, imports=imports, step=_STEP.format(f"F.cross_entropy(model(x), y) + 0 * {call}")) == [call]


def test_attribute_of_a_class() -> None:
    holder = "class Holder:\n    def __init__(self):\n        self.criterion = nn.BCELoss()"
    assert refused("DPM318", AMP, defs=holder) == ["nn.BCELoss()"]
