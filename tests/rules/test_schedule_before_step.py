"""DPM315: schedules that go on where the scaler leaves a step out."""

from __future__ import annotations

import pytest

from dpmigrate.settings import Settings
from tests.rules.program import STEP, after, found

AMP = Settings(amp=True)
_BEFORE = "sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=12)"
_EACH = {"before": _BEFORE, "step": STEP + "sched.step()"}


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        pytest.param(None, _EACH, id="without --amp"),
        pytest.param(Settings(amp=True, amp_dtype="bfloat16"), _EACH, id="no scaler"),
        pytest.param(AMP, {"before": _BEFORE, "epoch_end": "sched.step()"}, id="for every epoch"),
        pytest.param(AMP, {"before": "sched = {}", "step": STEP + "sched.step()"}, id="something else"),
        pytest.param(AMP, {"before": _BEFORE + "\ns = torch.amp.GradScaler('cuda')", "step": STEP + "sched.step()"}, id="a scaler of its own"),
    ],
)
def test_nothing_to_say(settings: Settings | None, parts: dict[str, str]) -> None:
    assert found("DPM315", settings, **parts) == []


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_EACH, id="full name"),
        pytest.param({"imports": "from torch.optim.lr_scheduler import StepLR as S", "before": "sched = S(optimizer, 2)", "step": STEP + "sched.step()"}, id="alias"),
        pytest.param(
            {"imports": "from torch.optim import lr_scheduler", "before": "sched = lr_scheduler.StepLR(optimizer, 2)", "step": STEP + "if epoch:\n    sched.step()"}, id="under a test"
        ),
    ],
)  # fmt: skip
def test_for_every_batch(parts: dict[str, str]) -> None:
    assert found("DPM315", AMP, **parts) == ["sched.step()"]
    assert not any("get_scale" in line for line in after(AMP, **parts))
