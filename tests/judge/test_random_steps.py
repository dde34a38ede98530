"""Random programs whose steps move a state: what is migrated trains as before, or a word says that it does not."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: programs of one run; ``python -m tests.judge.step_runs`` runs as many as one likes
SEEDS = (0, 4, 6, 17, 21)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the ranks are forks")


def _counted(*arguments: str) -> tuple[int, dict[str, int], str]:
    """The status of a run in a process of its own, which forks the ranks; how many programs ended how; and its words."""
    command = [sys.executable, "-m", "tests.judge.step_runs", *arguments]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert made.stdout, made.stderr
    return made.returncode, ast.literal_eval(made.stdout.splitlines()[-1]), made.stdout


def test_random_steps() -> None:
    status, counts, words = _counted("--seeds", *map(str, SEEDS))
    assert status == 0, words
    assert counts.get("right", 0) > len(SEEDS) - 2, words


def test_what_is_wrong_is_found() -> None:
    """The comparison itself: without what makes the states whole the ranks part, or train otherwise."""
    status, counts, words = _counted("--seeds", "0", "17", "--without", "mean_all")
    assert status == 1, words
    assert "right" not in counts, words
