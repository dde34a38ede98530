"""DPM313: clipping while the gradients carry a scale."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, hits, whole

_SCALER = "scaler = torch.amp.GradScaler('cuda')"
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
_STEP = "optimizer.zero_grad()\nwith torch.autocast('cuda'):\n    loss = F.cross_entropy(model(x), y)\nscaler.scale(loss).backward()\n{}\nscaler.update()"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="no scaler"),
        pytest.param({"step": f"optimizer.zero_grad()\nF.cross_entropy(model(x), y).backward()\n{_CLIP}\noptimizer.step()"}, id="clipped without a scaler"),
        pytest.param({"before": _SCALER, "step": _STEP.format("scaler.step(optimizer)")}, id="not clipped"),
        pytest.param({"before": _SCALER, "step": _STEP.format(f"scaler.unscale_(optimizer)\n{_CLIP}\nscaler.step(optimizer)")}, id="unscaled"),
        pytest.param({"before": _SCALER, "step": _STEP.format(f"if epoch:\n    scaler.unscale_(optimizer)\n    {_CLIP}\nscaler.step(optimizer)")}, id="unscaled under the test of the clipping"),
        pytest.param({"before": _SCALER, "step": f"{_CLIP}\n" + _STEP.format("scaler.step(optimizer)")}, id="clipped before the backward"),
        pytest.param({"before": _SCALER, "step": _STEP.format(f"{_CLIP}  # scaler.step(optimizer)\noptimizer.step()")}, id="a step past the scaler"),
        pytest.param({"before": _SCALER, "step": _STEP.format(f"{_CLIP}\nprint(scaler.step(optimizer))")}, id="a step inside another call"),
        pytest.param({"before": _SCALER + "\nother = {}", "step": _STEP.format(f"{_CLIP}\nother.step(optimizer)\noptimizer.step()")}, id="a step of something else"),
    ],
)  # fmt: skip
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM313", **parts) == []


@pytest.mark.parametrize(
    ("clip", "step"),
    [
        pytest.param(_CLIP, "scaler.step(optimizer)", id="statement"),
        pytest.param(f"norm = {_CLIP}", "scaler.step(optimizer)", id="the norm is used"),
        pytest.param(f"if epoch:\n    {_CLIP}", "scaler.step(optimizer)", id="under a test"),
        pytest.param("nn.utils.clip_grad_value_(clip_value=1.0, parameters=model.parameters())", "scaler.step(optimizer)", id="by value, keywords"),
        pytest.param(_CLIP, "r = scaler.step(optimizer)", id="the result is used"),
    ],
)
def test_unscaled_before_the_first(clip: str, step: str) -> None:
    parts = {"before": _SCALER, "step": _STEP.format(f"{clip}\n{step}")}
    assert found("DPM313", **parts) == [clip.splitlines()[0]]
    assert [f.advice for f in hits("DPM313", **parts)] == ["they are unscaled first now, so that the result trains otherwise than the original, also in one process"]
    lines = [line.strip() for line in whole(**parts).splitlines()]
    assert lines[lines.index(clip.splitlines()[0]) - 1] == "scaler.unscale_(optimizer)"


def test_spellings_of_the_scaler() -> None:
    step = _STEP.replace("scaler.", "s.amp.").format(f"{_CLIP}\ns.amp.step(optimizer)")
    defs = "class S:\n    def __init__(self):\n        self.amp = GradScaler()"
    parts = {"imports": "from torch.cuda.amp import GradScaler", "defs": defs, "before": "s = S()", "step": step}
    assert "s.amp.unscale_(optimizer)" in after(**parts)


def test_two_optimizers_of_one_backward() -> None:
    optimizer = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nother = torch.optim.SGD(model.parameters(), lr=0.2)"
    lines = after(optimizer=optimizer, before=_SCALER, step=_STEP.format(f"{_CLIP}\nscaler.step(optimizer)\nscaler.step(other)"))
    assert {"scaler.unscale_(optimizer)", "scaler.unscale_(other)"} <= set(lines)


def test_clipping_before_the_test_on_the_step_is_reported() -> None:
    """To unscale there would do it twice in a window."""
    parts = {
        "before": _SCALER,
        "step": _STEP.format(f"{_CLIP}\nif epoch:\n    if x is not None:\n        scaler.step(optimizer)\n    else:\n        scaler.step(optimizer)"),
    }
    assert found("DPM313", **parts) == [_CLIP]
    assert not any("unscale_" in line for line in after(**parts))


def test_a_step_in_a_function_of_its_own() -> None:
    defs = "def go(scaler, optimizer):\n    if optimizer:\n        scaler.step(optimizer)"
    assert found("DPM313", defs=defs, before=_SCALER, step=_STEP.format(f"{_CLIP}\ngo(scaler, optimizer)")) == []


def test_the_test_on_the_step_may_stand_anywhere() -> None:
    left = f"{_CLIP}\nif loss is not None:\n    with torch.no_grad():\n        scaler.step(optimizer)"
    parts = {"before": _SCALER, "step": _STEP.format("scaler.step(optimizer)"), "end": left}
    assert found("DPM313", **parts, module_level=True) == [_CLIP]
