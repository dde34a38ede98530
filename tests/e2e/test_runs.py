"""Migrated programs are proved against their originals, at two gloo ranks and as plain Python."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpmigrate import proving
from dpmigrate.verify.proof import Proof, Wish, prove
from tests.pipeline import Case, Several, cases, migrate, programs

pytestmark = pytest.mark.usefixtures("forked_python")

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
ALL: tuple[Case | Several, ...] = (*cases(), *programs())
RUNNABLE = [c for c in ALL if c.facts.get("run") and set(c.facts["expect"] if isinstance(c.facts["expect"], list) else [c.facts["expect"]]) == {"migrate"}]
CHOSEN = [c for c in RUNNABLE if c.facts.get("e2e")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("--all-runs")
    runs = [pytest.param(c, s, 2, id=f"{c.name}{_beside(c, s)}-two ranks") for c in (RUNNABLE if everything else CHOSEN) for s in scripts_of(c)]
    runs += [pytest.param(c, s, 0, id=f"{c.name}{_beside(c, s)}-plain") for c in RUNNABLE if everything or c.facts.get("plain") for s in scripts_of(c)]
    metafunc.parametrize(("case", "script", "ranks"), runs)


def scripts_of(case: Case | Several) -> list[str]:
    """The scripts that the case starts."""
    return case.facts.get("paths", [case.entry]) if isinstance(case, Several) else ["train.py"]


def _beside(case: Case | Several, script: str) -> str:
    return "" if script == scripts_of(case)[0] else f" {script}"


def test_migrated_program_trains_like_the_original(case: Case | Several, script: str, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = proof(case, script, ranks, tmp_path)
    assert found.holds, said(found)


def proof(case: Case | Several, script: str, ranks: int, folder: Path, cpu: bool = True) -> Proof:
    """What verify says of one migrated script of a case, tried in a folder, which must be the current one."""
    after = _migrated(case, folder, folder / script)
    arguments = tuple(str(a) for a in case.facts.get("args", []))
    wish = Wish(ranks, steps=None, float64=not case.settings.amp, timeout=600, cpu=cpu, arguments=arguments)
    return prove(folder / script, after, wish, paths=[RUNTIME])


def _migrated(case: Case | Several, folder: Path, script: Path) -> dict[Path, bytes]:
    """Write the original into the folder; the new content of its files."""
    if isinstance(case, Several):
        case.copied_to(folder)
        _, files = proving.migration(Path(os.path.relpath(script)), case.settings)
        assert files is not None
        return dict(files)
    after = migrate(case.before, case.settings)
    assert after is not None
    script.write_bytes(case.before.encode())
    return {script: after.encode()}


def said(found: Proof) -> str:
    """Why nothing is proved."""
    return found.failure or "\n".join(f"{line.name}: {line.verdict.value}: {line.text}" for line in found.lines)
