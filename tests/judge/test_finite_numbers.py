"""Tests whether numbers are finite, by which a step has one loss or another: those that ask it of the whole batch can be decided together."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.judge import judged
from tests.judge.trained import result

_LOSS = "z = model(x)\nloss = z.pow(2).mean()\nif {}:\n    loss = z.nan_to_num(0.0).abs().mean()\nloss.backward()"
_OF_A_SAMPLE = "z = model(x)\nloss = 0\nfor row in z:\n    if torch.isnan(row).any():\n        row = row.nan_to_num(0.0)\n    loss = loss + row.mean() / len(z)\nloss.backward()"


@pytest.mark.parametrize(
    ("step", "tests"),
    [
        pytest.param(_LOSS.format("torch.isnan(z).any()"), ["torch.isnan(z).any()"], id="of all samples"),
        pytest.param(_LOSS.format("not torch.isfinite(loss)"), ["not torch.isfinite(loss)"], id="of a mean over them"),
        pytest.param(_LOSS.format("math.isnan(loss.item())"), ["math.isnan(loss.item())"], id="of its number"),
        pytest.param(_LOSS.format("torch.isnan(z).any() or torch.isinf(z).any()"), ["torch.isnan(z).any() or torch.isinf(z).any()"], id="two questions"),
        pytest.param(_LOSS.format("torch.isnan(z[0]).any()"), [], id="of the first sample of a rank"),
        pytest.param(_LOSS.format("torch.isnan(z.std(0)).any()"), [], id="of a statistic of a rank's samples"),
        pytest.param(_LOSS.format("loss.item() > 3"), [], id="another question"),
        pytest.param(_OF_A_SAMPLE, [], id="of one sample after the other"),
        pytest.param("z = model(x)\nif torch.isnan(z).any():\n    print('not finite')\nz.mean().backward()", [], id="only told"),
        pytest.param("z = model(x)\nif torch.isnan(z).any():\n    note = 3\nz.mean().backward()", [], id="the loss is shown to be a mean"),
    ],
)
def test_of_the_whole_batch(step: str, tests: list[str]) -> None:
    found = judged(result(step=step, top="import math")).draws
    assert [ast.unparse(n) for n in found] == tests
