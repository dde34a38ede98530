"""What happens in a run has a place in the trace of its text: an event that is missing there is a hole in the engine.

Each program runs as it is, in one process, and its migration at two ranks. What rank 0 records, by kind and line, is held against the events of the trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.pipeline import Case, Several, cases, programs
from tests.trace import beside
from tests.trace.beside import ORIGINAL, RESULT

pytestmark = pytest.mark.usefixtures("forked_python")

_WRITTEN: tuple[Case | Several, ...] = (*cases(), *programs())
ALL = tuple(c for c in _WRITTEN if c.facts.get("run"))
#: without --all-runs every so many of the programs runs, and every so many of these as a result, too
EVERY, EVERY_RESULT = 30, 2
#: (program, side) -> what the engine does not follow; the list may only shrink
NOT_YET: Mapping[tuple[str, str], str] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("--all-runs")
    chosen = ALL if everything else ALL[::EVERY]
    runs = [_run(c, ORIGINAL, s) for c in chosen for s in beside.scripts(c)]
    migrated = [c for c in (chosen if everything else chosen[::EVERY_RESULT]) if _migrates(c)]
    runs += [_run(c, RESULT, s) for c in migrated for s in beside.scripts(c)]
    metafunc.parametrize(("case", "side", "script"), runs)


def _migrates(case: Case | Several) -> bool:
    expect = case.facts["expect"]
    return set(expect if isinstance(expect, list) else [expect]) == {"migrate"}


def _run(case: Case | Several, side: str, script: str) -> object:
    reason = NOT_YET.get((case.name, side))
    marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
    return pytest.param(case, side, script, marks=marks, id=f"{case.name} {script} {side}")


def test_what_happens_is_in_the_trace(case: Case | Several, side: str, script: str, tmp_path: Path) -> None:
    folder = tmp_path / "program"
    beside.written(case, side, folder)
    path = folder / script
    ran = beside.recorded(path, folder, 2 if side == RESULT else 0, case.facts.get("args", []))
    known = beside.noted(beside.traced(path), path)
    assert ran.code == 0, ran.stderr
    if not ran.records:  # of a program that never imports torch there is none
        assert not {"backward", "step", "pass"} & set(known), ran.stderr
        return
    beside.keep(case.name, side, script, ran.records[0])
    missing = beside.holes(beside.happened(ran.records[0]), known)
    assert list(beside.told(missing, path)) == []
