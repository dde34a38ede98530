"""How jobs end: well, with threads gone; badly, soon and with the cause shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.runtime.launching import HERE, alone, environment, ranks, torchrun

#: what the kernel calls the only thread: the interpreter's file name
MAIN_THREAD = f'["{Path(sys.executable).name[:15]}"]'

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")


@needs_proc
@pytest.mark.parametrize("attempt", range(3))
def test_only_the_main_thread_is_left(attempt: int) -> None:
    end = ranks(2, str(HERE / "exit_proof.py"))
    assert end.codes == [0, 0], end.err
    assert [err.strip() for err in end.err] == [MAIN_THREAD] * 2


@needs_proc
def test_the_same_file_runs_alone() -> None:
    end = alone(str(HERE / "exit_proof.py"))
    assert end.codes == [0], end.err
    assert end.err[0].strip() == MAIN_THREAD


def test_failing_rank_ends_the_job() -> None:
    """At once: the limit of the job is far below the timeout of its collectives."""
    end = torchrun(2, str(HERE / "failing.py"))
    assert end.codes[0] != 0
    # the traceback itself, and torchrun's summary with the cause in it
    assert end.err[0].count("ValueError: the cause of it all") >= 2, end.err[0]


def test_cleanup_in_finally_does_not_wait() -> None:
    end = ranks(2, str(HERE / "failing.py"), "finally")
    assert 0 not in end.codes
    assert "the cause of it all" in end.err[1]


def test_kill_during_save_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    target = tmp_path / "state.pt"
    command = [sys.executable, str(HERE / "saving.py"), str(target)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        for _ in range(3):
            last = int(job.stdout.readline())
        while not list(tmp_path.glob(".state.pt.partial-*")):
            assert job.poll() is None
        job.kill()
    state = torch.load(target)
    assert state["number"] >= last
    assert state["weights"].unique().item() == state["number"]


def test_a_rank_at_work_is_waited_for_beyond_the_timeout() -> None:
    end = ranks(2, str(HERE / "late.py"), "works")
    assert end.codes == [0, 0], end.err
    assert "ended" in end.out[0]


@pytest.mark.parametrize(("case", "words"), [("waits", "different collectives"), ("gone", "")])
def test_a_rank_that_will_not_come_is_not_waited_for(case: str, words: str) -> None:
    """At once, or after the timeout where it says nothing; the limit of the job is far above both."""
    end = ranks(2, str(HERE / "late.py"), case)
    assert end.codes[1] != 0
    assert words in end.err[1]
