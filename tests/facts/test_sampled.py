"""Which counts of samples say something about training."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.sampled import made_global
from tests.pipeline import script
from tests.rules.program import STEP, program


def _sampled(lines: str, before: str = "seen = 0", end: str = "") -> list[tuple[str, str, bool]]:
    found = script(program(before=before, step=f"{STEP}\n{lines}", end=end))
    assert made_global(found) == [s for s in found.sampled if s.divisor is None]
    return [(ast.unparse(s.target), ast.unparse(s.size), s.equal) for s in found.sampled]


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        pytest.param("seen += 1", "ramp(seen)", id="counts batches"),
        pytest.param("seen += x.size(0)", "", id="nobody reads it"),
        pytest.param("seen += x.size(0)", "print(seen)", id="shown"),
        pytest.param("seen += x.size(0)", "print(total / seen)", id="a divisor alone"),
        pytest.param("seen += len(train_set)", "ramp(seen)", id="the data set's"),
    ],
)
def test_nothing_goes_by_it(lines: str, end: str) -> None:
    assert _sampled(lines, "seen = total = 0", end) == []


@pytest.mark.parametrize(
    ("lines", "size", "equal"),
    [
        ("seen += x.size(0)\nif seen > 100:\n    ramp = 1", "x.size(0)", True),
        ("seen = seen + len(x)\nramp(seen)", "len(x)", True),
        ("seen += (y != 0).sum().item()\nramp(seen)", "(y != 0).sum().item()", False),
    ],
)
def test_training_goes_by_it(lines: str, size: str, equal: bool) -> None:
    assert _sampled(lines) == [("seen", size, equal)]
