"""Random programs that work with files: what is migrated leaves the same files at two ranks, whoever is behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.judge import random_files

ROOT = Path(__file__).resolve().parents[2]
#: programs of one run of the tests; ``python -m tests.judge.file_verdicts`` tries as many as one likes
COUNT = 3
#: a program at two ranks in which one of them reads what rank 0 writes, and in which no barrier stands
_RACE = """\
import os
import dpmigrate_runtime as ddp
ddp.setup()
if {late}:
    there = os.path.exists("a.txt")
if ddp.is_main():
    with open("a.txt", "w") as f:
        f.write("three")
if not {late}:
    there = os.path.exists("a.txt")
if there:
    ddp.barrier()
ddp.cleanup()
"""
#: a process that has no threads, and forks
_RUN = """\
import sys
from pathlib import Path
from tests.judge import file_runs
file_runs.PATIENCE = 20.0  # a loaded machine may leave a rank without a turn for seconds
for schedule in file_runs.SCHEDULES:
    folder = Path(sys.argv[1], schedule)
    folder.mkdir()
    Path(folder, "train.py").write_text(sys.argv[2])
    print(bool(file_runs.at_two(folder, "train.py", [[]], schedule).failure))
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="whether a process waits is read from /proc")


def _python(*arguments: str) -> str:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "runtime")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_random_programs() -> None:
    lines = _python("-m", "tests.judge.file_verdicts", "--count", str(COUNT), "--json").splitlines()
    kinds = [json.loads(line)["kind"] for line in lines[:COUNT]]
    assert set(kinds) <= {"right", "refused"}
    assert kinds.count("right") > COUNT / 2, "hardly any program is migrated, so that nothing is shown"


@pytest.mark.parametrize(("late", "fails"), [(False, ["True", "False"]), (True, ["False", "True"])], ids=["read too early", "written too early"])
def test_a_race_is_found_by_who_is_behind(late: bool, fails: list[str], tmp_path: Path) -> None:
    assert _python("-c", _RUN, str(tmp_path), _RACE.format(late=late)).split() == fails


def test_each_seed_has_its_program() -> None:
    texts = [random_files.program(seed).text for seed in range(40)]
    assert len(set(texts)) == 40
    assert texts[3] == random_files.program(3).text
    assert all(compile(t, n, "exec") for seed in range(40) for n, t in random_files.program(seed).files.items())
