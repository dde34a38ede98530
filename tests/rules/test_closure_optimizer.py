"""DPM907: optimizers that call the loss themselves."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, refused


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="one gradient a step"),
        pytest.param({"end": "print('torch.optim.LBFGS')  # torch.optim.LBFGS"}, id="in a string and a comment"),
        pytest.param({"before": "sched = torch.optim.lr_scheduler.StepLR(optimizer, 1)", "epoch_end": "sched.step(epoch)"}, id="a scheduler takes a number"),
        pytest.param({"before": "import lib\nbar = lib.Bar()", "epoch_end": "bar.step(3)"}, id="a step of something else"),
        pytest.param({"step": STEP.replace("optimizer.step()", "optimizer.step(None)")}, id="no closure given"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM907", **parts) == []


@pytest.mark.parametrize(
    ("parts", "pointed"),
    [
        pytest.param({"optimizer": "optimizer = torch.optim.LBFGS(model.parameters())"}, "torch.optim.LBFGS(model.parameters())", id="LBFGS"),
        pytest.param(
            {"imports": "from torch.optim import LBFGS as L", "optimizer": "optimizer = L(params=model.parameters())"},
            "L(params=model.parameters())",
            id="alias",
        ),
        pytest.param({"step": STEP.replace("step()", "step(f)")}, "optimizer.step(f)", id="closure"),
        pytest.param({"step": STEP.replace("step()", "step(closure=f)")}, "optimizer.step(closure=f)", id="closure by keyword"),
        pytest.param({"step": STEP.replace("step()", "step(lambda: loss)"), "module_level": True}, "optimizer.step(lambda: loss)", id="lambda, module level"),
    ],
)
def test_refused(parts: dict[str, str], pointed: str) -> None:
    assert refused("DPM907", defs="def f():\n    return 0", **parts) == [pointed]


def test_in_a_function_and_a_class() -> None:
    defs = """
    class Trainer:
        def __init__(self, model):
            self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(self, f):
            self.optimizer.step(f)
    """
    assert refused("DPM907", defs=defs, before="t = Trainer(model)") == ["self.optimizer.step(f)"]
