"""The work is spread over processes, survives what goes wrong with one program, and can be stopped and gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from tests.mutation import __main__ as command
from tests.mutation import running, static, work
from tests.mutation.outcomes import Outcome, Result, Writer, read
from tests.mutation.running import CONTROL
from tests.mutation.subjects import Key

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = Key("grad_accumulation", "train.py")


class Here(Executor):
    """Does the work at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done

    def __enter__(self) -> Here:
        return self


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages in this process, with the run stage only written down; the ids that it was asked for."""
    asked: list[str] = []

    def tried(subject: Any, wanted: str, timeout: float) -> Result:
        asked.append(wanted)
        said = running.control(subject)
        if wanted != said.id:
            said = running._found(subject, wanted).described
        return Result(said, Outcome.DIFFERS, f"{Path.cwd()}/train.py after {timeout:g} s")

    monkeypatch.setattr(work, "processes", lambda count: Here())
    monkeypatch.setattr(running, "tried", tried)
    return asked


def run(out: Path, *arguments: str) -> dict[str, Result]:
    words = [*arguments, "--case", FIXTURE.case, "--out", str(out)]
    command.main([*words, "--table", str(out.with_suffix(".md"))])
    return read(out)


def test_the_static_stage_alone_runs_nothing(here: list[str], tmp_path: Path) -> None:
    got = run(tmp_path / "r.jsonl", "--static", "--kind", "seed_ranks")
    assert {r.mutant.label for r in got.values()} == {"ddp.seed_ranks"}
    assert Outcome.EQUIVALENT in {r.outcome for r in got.values()}
    assert here == []


def test_what_is_not_refused_is_run_with_a_control_before(here: list[str], tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    static_stage = run(out, "--static", "--kind", "seed_ranks: ")
    got = run(out, "--run", "--resume", "--kind", "seed_ranks: ", "--timeout", "7")
    passed = [i for i, r in static_stage.items() if r.outcome is Outcome.EQUIVALENT]
    assert here == [f"{FIXTURE}:{CONTROL}", *passed]
    assert {got[i].outcome for i in passed} == {Outcome.DIFFERS}
    assert {got[i].why for i in passed} == {"train.py after 7 s"}
    assert all(got[i].digest == static_stage[i].digest != "" for i in passed)


def test_what_is_done_is_not_done_again(here: list[str], tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    run(out, "--run", "--kind", "seed_ranks: missing")
    size = out.stat().st_size
    run(out, "--run", "--resume", "--kind", "seed_ranks: missing")
    assert len(here) == 2 and out.stat().st_size == size


def test_a_sample_of_runs_has_so_many_runs(here: list[str], tmp_path: Path) -> None:
    run(tmp_path / "r.jsonl", "--run", "--sample", "2", "--no-control", "--kind", "rank")
    assert len(here) == 2


def test_a_sample_may_be_larger_than_what_there_is(here: list[str], tmp_path: Path) -> None:
    got = run(tmp_path / "r.jsonl", "--run", "--sample", "99", "--kind", "seed_ranks: missing")
    assert len(here) == 2 and len(got) == 2


def test_one_mutant_by_its_id(
    here: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id = f"{FIXTURE}:DPM210:ddp.seed_ranks:missing:1"
    got = run(tmp_path / "r.jsonl", "--static", "--id", id, "--id", f"{FIXTURE}:none")
    assert list(got) == [id]
    assert f"no such mutant: {FIXTURE}:none" in capsys.readouterr().err


def test_an_error_in_one_program_is_a_result(
    here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> object:
        raise RuntimeError("no")

    out = tmp_path / "r.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(static, "judged", fails)
        (result,) = run(out, "--static").values()
    assert (result.outcome, result.why) == (Outcome.ERROR, "RuntimeError: no")
    run(out, "--static", "--resume", "--kind", "seed_ranks: missing")
    monkeypatch.setattr(running, "tried", fails)
    got = run(out, "--run", "--resume", "--no-control", "--kind", "seed_ranks: missing")
    assert [r.why for r in got.values() if r.outcome is Outcome.ERROR] == ["RuntimeError: no"] * 2


def test_the_program_that_is_open_is_removed() -> None:
    subject = work._kept(FIXTURE)
    folder = Path.cwd()
    assert work._kept(FIXTURE) is subject
    work.close()
    assert not folder.exists() and Path.cwd() != folder
    work.close()


def of_mark(mark: str) -> list[int]:
    """The processes that have the mark in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_it_can_be_stopped_and_leaves_nothing_behind(number: int, tmp_path: Path) -> None:
    mark = f"MUTATION_{uuid.uuid4().hex}"
    words = ["--static", "--case", FIXTURE.case, "--case", "sum_loss", "--out", "r.jsonl"]
    here = {**os.environ, mark: "1", "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.mutation", *words, "--kind", "seed_ranks", "-j", "1"],
        cwd=tmp_path, env=here, text=True, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(number)
        told = process.stderr.read()  # until the last process has closed it
    while of_mark(mark):  # one that does not end makes this a hang
        time.sleep(0.1)
    assert "results" in first
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert told.splitlines()[-1] == "stopped; --resume goes on with r.jsonl"
    assert read(tmp_path / "r.jsonl")


def test_results_of_several_shards_are_one_file(here: list[str], tmp_path: Path) -> None:
    parts = [
        run(tmp_path / f"{i}.jsonl", "--static", "--kind", "rank", "--shard", f"{i}/2")
        for i in (1, 2)
    ]
    whole = run(tmp_path / "whole.jsonl", "--static", "--kind", "rank")
    assert parts[0].keys() | parts[1].keys() == whole.keys()
    assert not parts[0].keys() & parts[1].keys()
    Writer(tmp_path / "both.jsonl").write([*parts[0].values(), *parts[1].values()])
    assert read(tmp_path / "both.jsonl").keys() == whole.keys()
