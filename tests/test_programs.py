"""Programs of several files: what is found in which file, what comes out, and what must hold for every result."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Outcome, Status
from tests.pipeline import Several, programs

ALL = programs()
each = pytest.mark.parametrize("case", ALL, ids=[c.name for c in ALL])
each_migrated = pytest.mark.parametrize("case", [c for c in ALL if c.facts["expect"] == "migrate"], ids=lambda c: c.name)
#: what a case may expect, by what apply says
_ENDS = {"migrate": Status.CHANGED, "refuse": Status.REFUSED, "noop": Status.UNCHANGED}


#: what came of each case: what apply has said, and all files of its folder afterwards
_DONE: dict[str, tuple[list[Outcome], dict[str, bytes]]] = {}


def applied(case: Several, folder: Path) -> list[Outcome]:
    """Apply to the case's program in the folder, as its author would: the script, or what the case gives. Done once for all tests of a case."""
    if case.name not in _DONE:
        case.copied_to(folder)
        here = Path.cwd()
        os.chdir(folder)
        try:
            outcomes = list(engine.apply([Path(p) for p in case.facts.get("paths", [case.entry])], case.settings, engine.Writing()))
        finally:
            os.chdir(here)
        _DONE[case.name] = outcomes, {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    outcomes, files = _DONE[case.name]
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return outcomes


def listed(outcomes: list[Outcome]) -> str:
    """findings.txt: a line each with its file, and the reason of each program for which there is one."""
    lines = []
    for o in outcomes:
        lines += [f"{o.path}: {o.status.value}: {o.reason}"] if o.reason else []
        lines += [
            f"{file.path}:{f.span.line}:{f.span.col + 1} {f.code} {f.severity.value}{' fixed' if f.edits else ''}: {f.message}"
            for file in o.files
            for f in file.findings
        ]
    return "".join(line + "\n" for line in lines)


@each
def test_it_is_as_recorded(case: Several, tmp_path: Path, update: bool) -> None:
    """The findings, and every file that changes; the others are as they were."""
    outcomes = applied(case, tmp_path)
    said = listed(outcomes)
    now = {name: (tmp_path / name).read_bytes() for name in case.before}
    changed = {name: data for name, data in now.items() if data != case.before[name]}
    recorded = (case.path / "findings.txt").read_text() if (case.path / "findings.txt").exists() else ""
    if update and (said, changed) != (recorded, case.after):
        (case.path / "findings.txt").write_text(said)
        for name in case.after.keys() - changed.keys():
            (case.path / "after" / name).unlink()
        for name, data in changed.items():
            (case.path / "after" / name).parent.mkdir(parents=True, exist_ok=True)
            (case.path / "after" / name).write_bytes(data)
        pytest.fail(f"{case.path} was updated: review it with git diff")
    assert said == recorded
    assert {n: d.decode() for n, d in changed.items()} == {n: d.decode() for n, d in case.after.items()}


@each
def test_it_ends_as_expected(case: Several, tmp_path: Path) -> None:
    assert [o.status for o in applied(case, tmp_path) if not o.reason.endswith("in this file")] == [
        _ENDS[e] for e in ([case.facts["expect"]] if isinstance(case.facts["expect"], str) else case.facts["expect"])
    ]


@each_migrated
def test_a_second_run_changes_nothing(case: Several, tmp_path: Path) -> None:
    applied(case, tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in case.before}
    again = list(engine.apply([tmp_path / case.entry], case.settings, engine.Writing()))
    assert [(o.status, "already uses the dpmigrate runtime" in o.reason) for o in again] == [(Status.UNCHANGED, True)]
    assert {name: (tmp_path / name).read_bytes() for name in case.before} == before
