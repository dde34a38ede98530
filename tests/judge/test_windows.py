"""A block of accumulate() holds one window of gradients, and no loop that steps."""

from __future__ import annotations

import pytest

from dpmigrate.judge import judged, windows
from tests.judge.trained import result

_LOOP = "for k in range(4):\n    nn.functional.cross_entropy(model(x), y).backward()"


@pytest.mark.parametrize(
    ("step", "wrong"),
    [
        pytest.param(f"with ddp.accumulate(model, sync=i % 2 == 1):\n    {_LOOP}\n        optimizer.step()".replace("\n    nn", "\n        nn"), True, id="a loop that steps"),
        pytest.param(f"with ddp.accumulate(model, sync=i % 2 == 1):\n    {_LOOP}\noptimizer.step()".replace("\n    nn", "\n        nn"), False, id="a step behind the block"),
        pytest.param(f"with ddp.accumulate(model, sync=True):\n    {_LOOP}\n        optimizer.step()".replace("\n    nn", "\n        nn"), False, id="always averaged"),
        pytest.param("with ddp.accumulate(model, sync=i % 2 == 1):\n    loss = nn.functional.cross_entropy(model(x), y)\n    loss.backward()\n    if i % 2 == 1:\n        optimizer.step()", False, id="a step of the turn's own"),
    ],
)
def test_a_block_is_one_window(step: str, wrong: bool) -> None:
    found = [f for f in judged(result(step=step)).faults if f.invariant == windows.NAME]
    assert bool(found) is wrong, found


def test_a_step_in_a_function() -> None:
    made = "def update():\n    optimizer.step()\n"
    step = "with ddp.accumulate(model, sync=i > 0):\n    for k in range(4):\n        model(x).sum().backward()\n        update()"
    assert any(f.invariant == windows.NAME for f in judged(result(epoch=made, step=step)).faults)
