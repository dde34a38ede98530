"""Migrated programs are proved against their originals, at two gloo ranks and as plain Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.verify.proof import Proof, Wish, prove
from tests.pipeline import Case, cases, migrate

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
RUNNABLE = [c for c in cases() if c.facts["expect"] == "migrate" and c.facts.get("run")]
CHOSEN = [c for c in RUNNABLE if c.facts.get("e2e")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    everything = metafunc.config.getoption("--all-runs")
    runs = [pytest.param(c, 2, id=f"{c.name}-two ranks") for c in (RUNNABLE if everything else CHOSEN)]
    runs += [pytest.param(c, 0, id=f"{c.name}-plain") for c in RUNNABLE if everything or c.facts.get("plain")]
    metafunc.parametrize(("case", "ranks"), runs)


def test_migrated_program_trains_like_the_original(case: Case, ranks: int, tmp_path: Path) -> None:
    after = migrate(case.before, case.settings)
    assert after is not None
    (tmp_path / "train.py").write_bytes(case.before.encode())
    arguments = tuple(str(a) for a in case.facts.get("args", []))
    wish = Wish(ranks, steps=None, float64=not case.settings.amp, timeout=120, arguments=arguments)
    found = prove(tmp_path / "train.py", after.encode(), wish, paths=[RUNTIME])
    assert found.holds, _said(found)


def _said(found: Proof) -> str:
    return found.failure or "\n".join(f"{line.name}: {line.verdict.value}: {line.text}" for line in found.lines)
