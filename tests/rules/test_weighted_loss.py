"""DPM302: means over something else than the samples."""

from __future__ import annotations

import pytest

from tests.rules.program import found, refused

_STEP = "optimizer.zero_grad()\n{}\nloss.backward()\noptimizer.step()"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("loss = F.cross_entropy(model(x), y)", id="a plain mean"),
        pytest.param("loss = F.cross_entropy(model(x), y, label_smoothing=0.1)", id="smoothing"),
        pytest.param("loss = F.binary_cross_entropy_with_logits(model(x), y, weight=x)", id="weights that do not divide"),
        pytest.param("loss = F.mse_loss(model(x), y, reduction='sum') / len(x)", id="divided by the batch"),
        pytest.param("loss = F.cross_entropy(model(x), y)  # ignore_index=0", id="in a comment"),
    ],
)
def test_nothing_to_say(line: str) -> None:
    assert found("DPM302", step=_STEP.format(line)) == []


@pytest.mark.parametrize(
    ("before", "line", "pointed"),
    [
        pytest.param("", "loss = F.cross_entropy(model(x), y, ignore_index=0)", "F.cross_entropy(model(x), y, ignore_index=0)", id="ignore_index"),
        pytest.param("", "loss = F.cross_entropy(model(x), y, torch.ones(2))", "F.cross_entropy(model(x), y, torch.ones(2))", id="weights by position"),
        pytest.param("c = nn.CrossEntropyLoss(torch.ones(2))", "loss = c(model(x), y)", "nn.CrossEntropyLoss(torch.ones(2))", id="module"),
        pytest.param("c = nn.NLLLoss(weight=torch.ones(2))", "loss = c(model(x), y)", "nn.NLLLoss(weight=torch.ones(2))", id="NLLLoss, keyword"),
        pytest.param("from torch.nn import CrossEntropyLoss as CE\nc = CE(ignore_index=-1)", "loss = 2 * c(model(x), y)", "CE(ignore_index=-1)", id="alias"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(before: str, line: str, pointed: str, module_level: bool) -> None:
    assert refused("DPM302", before=before, step=_STEP.format(line), module_level=module_level) == [pointed]


def test_a_sum_divided_by_a_mask() -> None:
    line = "mask = (y > 0).float()\nloss = (model(x)[:, 0] * mask).sum() / mask.sum()"
    assert refused("DPM302", step=_STEP.format(line)) == ["(model(x)[:, 0] * mask).sum() / mask.sum()"]


def test_in_a_class_and_a_function() -> None:
    defs = "class T:\n    def __init__(self):\n        self.c = nn.CrossEntropyLoss(ignore_index=0)\ndef f(c, a, b):\n    return c(a, b)"
    assert refused("DPM302", defs=defs, before="t = T()", step=_STEP.format("loss = t.c(model(x), y)")) == ["nn.CrossEntropyLoss(ignore_index=0)"]
    before = "c = nn.CrossEntropyLoss(ignore_index=0)"
    assert refused("DPM302", defs=defs, before=before, step=_STEP.format("loss = f(c, model(x), y)")) == ["nn.CrossEntropyLoss(ignore_index=0)"]
