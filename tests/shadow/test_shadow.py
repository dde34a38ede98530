"""The facts and the execution on paper say the same of every fixture and program, but for the differences that are recorded.

``differences.tsv`` has a line for each: the program, the question, the side that says it alone, the place, and how it is classed: *old wrong* (the facts are),
or *either*. One where the trace is wrong is not recorded but mended.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pipeline import Case, Several, cases, programs
from tests.shadow.compare import differences, script_at

RECORDED = Path(__file__).with_name("differences.tsv")
_ALL: tuple[Case | Several, ...] = (*cases(), *programs())
_LINES = [tuple(line.split("\t")) for line in RECORDED.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", _ALL, ids=lambda c: c.name)
def test_differences_are_as_recorded(case: Case | Several, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case.path if isinstance(case, Case) else case.path / "before")
    script = script_at(Path("before.py" if isinstance(case, Case) else os.fspath(case.entry)))
    found = set() if script.exempt else {(d.question, d.side, d.at) for d in differences(script)}
    assert found == {(q, side, at) for name, q, side, at, _ in _LINES if name == case.name}


def test_each_difference_is_classed() -> None:
    assert all(why.startswith(("old wrong: ", "either: ")) for *_, why in _LINES)
    assert {name for name, *_ in _LINES} <= {c.name for c in _ALL}
