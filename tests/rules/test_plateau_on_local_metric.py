"""DPM323: the ranks lower the learning rate together."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found

_MADE = "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"before": "sched = torch.optim.lr_scheduler.StepLR(optimizer, 1)", "epoch_end": "sched.step(epoch)"}, id="a scheduler without a metric"),
        pytest.param({"before": _MADE, "epoch_end": "sched.step()"}, id="no metric"),
        pytest.param({"before": "import lib\nsched = lib.Plateau(optimizer)", "epoch_end": "sched.step(loss)"}, id="another library's"),
        pytest.param({"before": _MADE, "epoch_end": "print('sched.step(loss)')  # sched.step(loss)"}, id="in a string and a comment"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM323", **parts) == []


@pytest.mark.parametrize(
    ("imports", "made", "line", "metric"),
    [
        pytest.param("", _MADE, "sched.step(loss)", "loss", id="positional"),
        pytest.param("", _MADE, "sched.step(metrics=loss.item() / 2)", "loss.item() / 2", id="keyword"),
        pytest.param("from torch.optim.lr_scheduler import ReduceLROnPlateau as R", "sched = R(optimizer)", "sched.step(loss, epoch)", "loss", id="alias"),
        pytest.param("from torch.optim import lr_scheduler", "sched = lr_scheduler.ReduceLROnPlateau(optimizer)", "sched.step(loss)", "loss", id="module"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(imports: str, made: str, line: str, metric: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "before": made, "epoch_end": line, "module_level": module_level}
    assert found("DPM323", **parts) == [metric]
    assert after(**parts) == [line.replace(metric, f"ddp.mean_all({metric})")]


def test_a_parameter_and_an_attribute() -> None:
    defs = "class T:\n    def __init__(self, optimizer):\n        self.s = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n"
    defs += "    def end(self, value):\n        self.s.step(value)\ndef end(s, value):\n    s.step(value)"
    parts = {"defs": defs, "before": f"{_MADE}\nt = T(optimizer)", "epoch_end": "end(sched, loss)\nt.end(loss)"}
    assert after(**parts) == ["self.s.step(ddp.mean_all(value))", "s.step(ddp.mean_all(value))"]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        pytest.param("sched.step(total)", [], id="put together behind the loop"),
        pytest.param("total = other(total)\nsched.step(total)", ["total"], id="something else since"),
        pytest.param("sched.step(total / 3)", ["total / 3"], id="made of it"),
    ],
)
def test_a_total_of_the_training_loop(end: str, expected: list[str]) -> None:
    parts = {"before": _MADE, "epoch_start": "total = 0.0", "step": f"{STEP}total += loss.item()", "epoch_end": end, "defs": "def other(x):\n    return x"}
    assert found("DPM323", **parts) == expected
    assert ("total = ddp.mean_all(total)" in after(**parts)) is True
