"""DPM312: clipping before the window is complete."""

from __future__ import annotations

import pytest

from tests.rules.program import found

_BATCHES = "for i, (x, y) in enumerate(loader):"
_CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
_STEP = "F.cross_entropy(model(x), y).backward()\n"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(_STEP + f"{_CLIP}\noptimizer.step()", id="a step in every turn"),
        pytest.param(_STEP + f"if i % 4 == 3:\n    {_CLIP}\n    optimizer.step()", id="where the optimizer steps"),
        pytest.param(_STEP + f"if i % 4 == 3:\n    optimizer.step()\nprint('{_CLIP}')", id="in a string"),
        pytest.param(_STEP + f"if i % 4 == 3:\n    {_CLIP}\nif i % 4 == 3:\n    optimizer.step()", id="under a test of its own"),
    ],
)
def test_nothing_to_say(step: str) -> None:
    assert found("DPM312", batches=_BATCHES, step=step) == []


@pytest.mark.parametrize("clip", [_CLIP, "clip(model)", "torch.nn.utils.clip_grad_value_(parameters=model.parameters(), clip_value=1.0)", "own(model)"])
def test_found(clip: str) -> None:
    imports = "from helpers import clip_grad as clip"
    defs = f"def own(model):\n    {_CLIP}"
    step = _STEP + f"{clip}\nif i % 4 == 3:\n    optimizer.step()"
    assert found("DPM312", imports=imports, defs=defs, batches=_BATCHES, step=step) == ([] if clip.startswith("clip(") else [clip])
