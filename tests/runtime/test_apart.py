"""Ranks that wait in different places: each is told where all of them are."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dpmigrate_runtime import _places, _watch
from dpmigrate_runtime._state import STATE
from torch._C._distributed_c10d import HashStore

from tests.runtime.launching import HERE, Ended, alone, free_port

PROGRAM = HERE / "apart.py"


def line(case: str, place: str) -> str:
    """``apart.py:41`` of the line that is marked so in the case."""
    inside = False
    for number, text in enumerate(PROGRAM.read_text().splitlines(), 1):
        if "if CASE ==" in text:
            inside = f'"{case}"' in text
        elif inside and text.endswith(f"# place {place}"):
            return f"apart.py:{number}"
    raise AssertionError(f"no place {place} in {case}")


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what the jobs of ``apart.py`` have left: they run once, for all processes of
    the tests, since twice as many ranks at a time would wait for the processors until they give up.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "apart"
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            folder.mkdir()
            cases = dict.fromkeys(re.findall(r'if CASE == "(.*)"', PROGRAM.read_text()))
            end = alone(str(PROGRAM), str(folder), *(f"{case}:{free_port()}" for case in cases), limit=600)
            assert end.codes == [0], end.err
    return folder


def job(case: str, folder: Path) -> Ended:
    codes = [int((folder / case / f"{rank}.code").read_text()) for rank in range(2)]
    return Ended(codes, [], [(folder / case / str(rank)).read_text() for rank in range(2)])


@pytest.mark.parametrize("case", ["right", "right lines", "right losses", "caught", "main_first, long"])
def test_nothing_is_said_when_all_is_right(case: str, jobs: Path) -> None:
    end = job(case, jobs)
    assert end.codes == [0, 0], end.err
    assert end.err == ["", ""]


@pytest.mark.parametrize(
    ("case", "first", "second"),
    [
        ("collectives", "ddp.sum_all", "ddp.any_rank"),
        ("lines", "ddp.sum_all", "ddp.sum_all"),
        ("losses", "ddp.mean_count", "ddp.mean_count"),
        ("loop of decisions", "ddp.mean_all", "ddp.any_rank"),
    ],
)
def test_ranks_in_different_collectives(case: str, first: str, second: str, jobs: Path) -> None:
    end = job(case, jobs)
    assert end.codes == [1, 1]
    for err in end.err:
        assert f"\n[rank{end.err.index(err)}]:   rank 0 in {first} (" in err
        assert line(case, "A") in err
        assert case == "losses" or line(case, "B") in err
        assert f"  rank 1 in {second} (" in err
        assert "Timed out" not in err


@pytest.mark.parametrize("case", ["loop", "rank 0 alone"])
def test_one_rank_trains_while_the_other_adds_up(case: str, jobs: Path) -> None:
    end = job(case, jobs)
    assert end.codes == [1, 1]
    assert "LostRankError: ddp.sum_all (" in end.err[0]
    assert line(case, "A") in end.err[0] and "rank 0 waits in ddp.sum_all (" in end.err[0]
    # the other one is in its backward pass, or has found its own time up
    (other,) = [text for text in end.err[0].splitlines() if "  rank 1 " in text]
    assert ".backward()" in other or "self.reducer" in other or "model(torch" in other
    assert "apart.py:" in other and "its last collective was " in other


def test_a_rank_that_raises(jobs: Path) -> None:
    end = job("raises", jobs)
    assert end.codes == [1, 1]
    assert "dpmigrate" not in end.err[1] and "ValueError: the cause of it all" in end.err[1]
    (other,) = [text for text in end.err[0].splitlines() if "  rank 1 " in text]
    assert "has ended by ValueError: the cause of it all, at " in other
    assert line("raises", "C") in other and line("raises", "B") in other
    assert line("raises", "A") in end.err[0]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("raises, caught by cleanup", "has left by ddp.cleanup() because of an exception; "),
        ("exits", "has ended; its last collective was ddp.any_rank ("),
        ("killed", "does not answer: it is gone, or "),
        ("computes", "is at "),
        ("main_first", ""),
    ],
)
def test_what_the_other_rank_did(case: str, words: str, jobs: Path) -> None:
    end = job(case, jobs)
    assert end.codes[0] == 1
    (other,) = [text for text in end.err[0].splitlines() if "  rank 1 " in text]
    assert f"rank 1 {words}" in other
    if case == "main_first":
        # it waits there, or its own time is up
        assert "ddp.main_first (" in other and line(case, "A") in other
    if case == "computes":
        assert f"{line(case, 'C')}: until(" in other or "time.sleep(0.05)" in other
        assert "its last collective was ddp.any_rank (" in other and line(case, "B") in other


def test_a_rank_that_exits_from_a_step(jobs: Path) -> None:
    end = job("exits from a step", jobs)
    assert end.codes == [1, 0]
    assert "dpmigrate: another rank is gone, or did not come. The ranks:" in end.err[0]
    assert "rank 1 has ended; its last collective was ddp.any_rank (" in end.err[0]


def test_it_can_be_switched_off(jobs: Path) -> None:
    end = job("unwatched", jobs)
    assert end.codes == [1, 0]
    assert "LostRankError: ddp.sum_all (" in end.err[0] and "The ranks" not in end.err[0]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[_watch.Watch]]:
    """The watches of two ranks in this process, as if NCCL ended it after an hour."""
    store, watches = HashStore(), []
    monkeypatch.setattr(_watch, "TICK", 0.01)
    monkeypatch.setattr(_watch, "world_size", lambda: 2)
    for number in range(2):
        monkeypatch.setattr(_watch, "rank", lambda number=number: number)
        watches.append(_watch.Watch(store, 3600, aborts=True))
    yield watches
    for one in watches:
        one.stop()
        assert not one.thread.is_alive()


def test_a_long_wait_is_said_before_the_process_is_ended(two: list[_watch.Watch], monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr(_places.HERE, "now", _places.Place("ddp.sum_all", "train.py", "main", 41, True, -1e9))
    while not all(one.warned for one in two):
        pass
    for one in two:
        one.stop()
    err = capfd.readouterr().err
    for number in (0, 1):
        assert f"dpmigrate: rank {number} has waited long in ddp.sum_all (train.py:41). The ranks:" in err
        assert f"\n  rank {number} waits in ddp.sum_all (train.py:41), for " in err


def test_last_words(two: list[_watch.Watch]) -> None:
    two[1].leave("has ended")
    two[1].leave("has ended again")
    assert "rank 1 has ended; " in two[0].places()


def test_whether_a_rank_is_at_work(two: list[_watch.Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STATE, "watch", two[0])
    assert _watch.is_at_work(1)
    two[1].leave("has ended")
    assert not _watch.is_at_work(1)
    two[1].stop()
    assert not _watch.is_at_work(1)  # it says nothing
    monkeypatch.setattr(STATE, "watch", None)
    assert not _watch.is_at_work(1)


def test_a_store_that_is_gone(two: list[_watch.Watch]) -> None:
    class Gone:
        def check(self, *asked: object) -> bool:
            raise RuntimeError("Broken pipe")

        set = get = check

    two[0].store = Gone()
    two[0].thread.join()
    two[0].leave("has ended")
    assert "\n  rank 1 cannot be asked: " in two[0].places()
    assert not two[0].is_at_work(1)


def test_a_forked_process_leaves_it_alone(two: list[_watch.Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STATE, "watch", two[0])
    two[0].process = -1
    assert _watch.where_all_are() == ""
    _watch.end("has ended")
    assert not two[0].last_word and two[0].thread.is_alive()


def test_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_places.HERE, "now", None)
    assert _places.signature() == (0, 0, 0)
    assert _places.sentence("has ended") == "has ended; it has called no collective"
    assert _places.sentence().startswith("is at tests/runtime/test_apart.py:")
    assert _places.line_of(None) == "a place that is not known"
    program = compile("import json\njson.loads('{')", str(tmp_path / "train.py"), "exec")
    try:
        exec(program, {})
    except ValueError as error:
        assert _places.line_of(None, error.__traceback__).startswith("tests/runtime/test_apart.py:") is False
        assert _places.line_of(None, error.__traceback__) == f"{tmp_path / 'train.py'}:2"
    exec(compile("with meeting('ddp.x'):\n with meeting('ddp.y'): pass", "train.py", "exec"), {"meeting": _places.meeting, "__name__": "__main__"})
    assert _places.HERE.now is not None and _places.HERE.now.where == "ddp.x (train.py:1)"
    assert not _places.HERE.now.waiting and _places.sentence().endswith(" s ago")


def test_what_counts_as_a_lost_rank() -> None:
    assert _watch.is_lost(RuntimeError("[/gloo/transport/tcp/pair.cc:553] Connection closed by peer"))
    assert _watch.is_lost(RuntimeError("Application timeout caused pair closure"))
    assert not _watch.is_lost(RuntimeError("the weights of the ranks have parted"))
    assert not _watch.is_lost(_watch.LostRankError("Timed out waiting"))
    assert not _watch.is_lost(ValueError("Connection closed"))
