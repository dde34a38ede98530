"""DPM322: a gradient is asked of a rank's part of a batch, and the whole batch has one if any part has."""

from __future__ import annotations

import pytest

from tests.rules.program import whole

_GUARDED = "optimizer.zero_grad()\nloss = F.cross_entropy(model(x), y)\nif {}:\n    continue\nloss.backward()\noptimizer.step()\n"


@pytest.mark.parametrize(
    ("test", "new"),
    [
        pytest.param("not loss.requires_grad", "if not ddp.any_rank(loss.requires_grad):", id="no gradient"),
        pytest.param("loss.requires_grad is False", "if ddp.any_rank(loss.requires_grad) is False:", id="compared with a constant"),
        pytest.param(
            "torch.isnan(loss) or not loss.requires_grad", "if ddp.any_rank(torch.isnan(loss)) or not ddp.any_rank(loss.requires_grad):", id="beside a guard"
        ),
        pytest.param("loss.grad_fn is None", "if loss.grad_fn is None:", id="whether it is there is the same on all ranks"),
    ],
)
def test_a_loss_without_a_gradient_is_left_out_by_all(test: str, new: str) -> None:
    assert new in whole(step=_GUARDED.format(test))
