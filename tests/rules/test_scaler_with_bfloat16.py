"""DPM320: a scaler for bfloat16."""

from __future__ import annotations

import pytest

from tests.rules.program import found

_SCALER = "scaler = torch.amp.GradScaler('cuda')"
_STEP = "optimizer.zero_grad()\nwith {}:\n    loss = F.cross_entropy(model(x), y)\nscaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()"
_BF16 = _STEP.format("torch.autocast('cuda', dtype=torch.bfloat16)")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="no mixed precision"),
        pytest.param({"before": _SCALER}, id="no autocast"),
        pytest.param({"before": _SCALER, "step": _STEP.format("torch.autocast('cuda')")}, id="the default type"),
        pytest.param({"before": _SCALER, "step": _STEP.format("torch.autocast('cuda', dtype=torch.float16)")}, id="float16"),
        pytest.param({"before": _SCALER, "setup": "kind = torch.bfloat16", "step": _STEP.format("torch.autocast('cuda', dtype=kind)")}, id="a type that is chosen"),
        pytest.param({"before": _SCALER, "step": _BF16, "end": "with torch.autocast('cuda', torch.float16):\n    pass"}, id="another type elsewhere"),
        pytest.param({"before": "scaler = torch.amp.GradScaler('cuda', enabled=False)", "step": _BF16}, id="switched off"),
    ],
)  # fmt: skip
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM320", **parts) == []


@pytest.mark.parametrize(
    ("imports", "scaler", "autocast"),
    [
        pytest.param("", "torch.amp.GradScaler('cuda')", "torch.autocast('cuda', dtype=torch.bfloat16)", id="keyword"),
        pytest.param("from torch.amp import autocast as ac", "torch.amp.GradScaler('cuda')", "ac('cuda', torch.bfloat16)", id="positional, alias"),
        pytest.param("from torch.cuda.amp import GradScaler, autocast", "GradScaler()", "autocast(True, torch.bfloat16)", id="old names"),
        pytest.param("from torch import bfloat16", "torch.amp.GradScaler('cuda')", "torch.autocast('cuda', dtype=bfloat16)", id="the type imported"),
    ],
)
def test_not_needed(imports: str, scaler: str, autocast: str) -> None:
    assert found("DPM320", imports=imports, before=f"scaler = {scaler}", step=_STEP.format(autocast)) == [scaler]
