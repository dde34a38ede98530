"""The goldens that can run, and one of them observed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.oracle.claims import claims
from tests.oracle.compare import Seen, seen
from tests.oracle.runs import Subject, migrated, ran
from tests.oracle.sites import Sites
from tests.pipeline import Case, Several, cases, programs


def _scripts(case: Case | Several) -> Sequence[str]:
    return case.facts.get("paths", [case.entry]) if isinstance(case, Several) else ["train.py"]


def _runnable(case: Case | Several) -> bool:
    expected = case.facts["expect"]
    return bool(case.facts.get("run")) and set(
        expected if isinstance(expected, list) else [expected]
    ) == {"migrate"}


EVERY: tuple[Case | Several, ...] = (*cases(), *programs())
#: every golden that can run, with each script that starts it
CASES: list[tuple[Case | Several, str]] = [
    (c, s) for c in EVERY if _runnable(c) for s in _scripts(c)
]


def observed(case: Case | Several, script: str, folder: Path) -> list[Seen]:
    """A golden at two ranks, beside what the engine says of it."""
    (folder / "program").mkdir()
    return laid_beside(migrated(case, script, folder / "program"), folder)


def laid_beside(case: Subject, folder: Path) -> list[Seen]:
    """A program at two ranks, beside what the engine says of it."""
    sites = Sites.of(case.program, case.folder)
    logs = ran(case, sites, folder)
    return list(seen(sites.every, logs, claims(case.program, sites)))
