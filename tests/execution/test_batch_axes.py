"""Tests of how many axes a batch has, of which that is not known."""

from __future__ import annotations

import pytest

from dpmigrate.execution.batch_axes import TAKEN
from dpmigrate.execution.engine import Execution
from tests.execution.paper import executed, placed

_PROGRAM = """
import torch
from torch.utils.data import DataLoader
from sounds import Sounds

loader = DataLoader(Sounds(), batch_size=12)
for x in loader:
    {lines}
    y = x + 0
"""


def _run(lines: str) -> Execution:
    return executed(_PROGRAM.format(lines="\n    ".join(lines.split("\n"))))


@pytest.mark.parametrize("test", ["x.dim() == 2", "x.ndimension() == 2", "2 == x.ndim", "not len(x.shape) == 3", "len(x.size()) != 3"])
def test_a_batch_is_taken_to_have_its_axis_of_samples(test: str) -> None:
    ex = _run(f"if {test}:\n    x = x.unsqueeze(0)")
    assert placed(ex, "y") == "rows(axis 0)"
    (taken,) = ex.trace.of(TAKEN)
    assert taken.parted is None


def test_where_it_is_in_the_other_branch() -> None:
    ex = _run("if x.dim() == 3:\n    x = x * 2\nelse:\n    x = x[None]")
    assert placed(ex, "y") == "rows(axis 0)"
    assert len(list(ex.trace.of(TAKEN))) == 1


def test_in_a_chain_of_tests() -> None:
    ex = _run("if x.dim() == 1:\n    x = x.unsqueeze(0).unsqueeze(-1)\nelif x.dim() == 2:\n    x = x.unsqueeze(-1)\nelif x.dim() != 3:\n    raise ValueError")
    assert placed(ex, "y") == "rows(axis 0)"


@pytest.mark.parametrize(
    ("lines", "taken"),
    [
        pytest.param("if x.dim() == 2:\n    x = x.unsqueeze(0)\nelse:\n    x = x.unsqueeze(0) * 2", True, id="one of two ways"),
        pytest.param("if x.dim() == 2:\n    x = x.unsqueeze(0)\nelse:\n    raise ValueError", False, id="the other way ends"),
        pytest.param("if x.mean() > 2:\n    x = x.unsqueeze(0)", False, id="another test"),
    ],
)
def test_one_branch_alone_is_left_out(lines: str, taken: bool) -> None:
    ex = _run(lines)
    assert len(list(ex.trace.of(TAKEN))) == taken
    assert placed(ex, "y") != "rows(axis 0)"


def test_nothing_is_taken_where_the_axes_are_known() -> None:
    ex = _run("x = x.flatten(1)\nx = x.view(-1, 3)\nif x.dim() == 2:\n    x = x.unsqueeze(0)")
    assert placed(ex, "y") == "rows(axis 1)"
    assert not list(ex.trace.of(TAKEN))
