"""Migrated programs are proved against their originals, at two gloo ranks and as plain Python."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpmigrate import proving
from dpmigrate.verify.proof import Proof, Wish, prove
from tests.pipeline import Case, Several, cases, migrate, programs

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
ALL: tuple[Case | Several, ...] = (*cases(), *programs())
RUNNABLE = [c for c in ALL if c.facts["expect"] == "migrate" and c.facts.get("run")]
CHOSEN = [c for c in RUNNABLE if c.facts.get("e2e")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("--all-runs")
    runs = [pytest.param(c, 2, id=f"{c.name}-two ranks") for c in (RUNNABLE if everything else CHOSEN)]
    runs += [pytest.param(c, 0, id=f"{c.name}-plain") for c in RUNNABLE if everything or c.facts.get("plain")]
    metafunc.parametrize(("case", "ranks"), runs)


def test_migrated_program_trains_like_the_original(case: Case | Several, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script, after = _migrated(case, tmp_path)
    arguments = tuple(str(a) for a in case.facts.get("args", []))
    wish = Wish(ranks, steps=None, float64=not case.settings.amp, timeout=120, arguments=arguments)
    found = prove(script, after, wish, paths=[RUNTIME])
    assert found.holds, _said(found)


def _migrated(case: Case | Several, folder: Path) -> tuple[Path, dict[Path, bytes]]:
    """The original in the folder, and the new content of its files."""
    if isinstance(case, Several):
        script = case.copied_to(folder)
        _, files = proving.migration(Path(os.path.relpath(script)), case.settings)
        assert files is not None
        return script, dict(files)
    script, after = folder / "train.py", migrate(case.before, case.settings)
    assert after is not None
    script.write_bytes(case.before.encode())
    return script, {script: after.encode()}


def _said(found: Proof) -> str:
    return found.failure or "\n".join(f"{line.name}: {line.verdict.value}: {line.text}" for line in found.lines)
