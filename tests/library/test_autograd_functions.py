"""``Function.apply`` of a class of the program, and of an object of it."""

from __future__ import annotations

import pytest

from tests.execution.paper import executed, placed

_HEAD = """
from torch.autograd import Function
import torch.distributed as dist
class Scaled(Function):
    @staticmethod
    def forward(ctx, x, by):
        return x * by
    @staticmethod
    def backward(ctx, gradient):
        return gradient, None
"""


@pytest.mark.parametrize("of", ["Scaled", "Scaled()"])
@pytest.mark.parametrize(("by", "lying"), [("2", "uniform"), ("dist.get_rank()", "per rank")])
def test_forward_is_called(of: str, by: str, lying: str) -> None:
    assert placed(executed(f"{_HEAD}held = {of}\nx = held.apply(torch.ones(2), {by})\n"), "x") == lying
