"""All files of a program or none: after an interruption at any moment the next run finds, or makes, one of the two."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dpmigrate import transaction, writing
from dpmigrate.model import Problem
from dpmigrate.transaction import Change

FILES = 10


def program(folder: Path) -> list[Change]:
    """Ten files, as they are and as they will be."""
    changes = []
    for i in range(FILES):
        path = folder / ("pkg" if i % 2 else ".") / f"m{i}.py"
        path.parent.mkdir(exist_ok=True)
        old, new = f"old {i}\n".encode() * 200, f"new {i}\n".encode() * 300
        path.write_bytes(old)
        changes.append(Change(path, old, new))
    return changes


def contents(changes: list[Change]) -> str:
    """``old``, ``new`` or ``half``."""
    now = [c.path.read_bytes() for c in changes]
    return "old" if now == [c.before for c in changes] else "new" if now == [c.after for c in changes] else "half"


def leftovers(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and p.name.endswith(writing.SUFFIX)]


def in_child(run: Callable[[], object], line: int | None = None) -> bool:
    """Run in a process of its own, which is killed before the Python line of this number that it runs; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            if line is not None:
                sys.settrace(_killing(line))
            run()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _killing(line: int) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that kills its process at a line, counted from 0 through all functions."""
    numbers = count()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and next(numbers) == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


# ------------------------------------------------------------------ no-op cases
def test_nothing_is_written_over_a_file_that_changed(tmp_path: Path) -> None:
    changes = program(tmp_path)
    changes[7].path.write_bytes(b"mine\n")
    problem = transaction.write(tmp_path / "m0.py", changes)
    assert problem == Problem(f"{changes[7].path}: has changed since it was read: not written")
    assert [c.path.read_bytes() == c.before for c in changes].count(False) == 1
    assert not (tmp_path / transaction.FOLDER).exists()


def test_nothing_is_written_where_one_file_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = program(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "m3.py")
    assert transaction.write(tmp_path / "m0.py", changes) == Problem(f"{changes[3].path}: is read-only")
    assert contents(changes) == "old"


def test_a_script_without_an_apply_has_nothing_to_undo_or_to_finish(tmp_path: Path) -> None:
    script = tmp_path / "m0.py"
    assert not transaction.unfinished(script)
    assert isinstance(transaction.undo(script), Problem)


def test_undo_leaves_everything_alone_where_a_file_was_changed_since(tmp_path: Path) -> None:
    changes = program(tmp_path)
    assert transaction.write(tmp_path / "m0.py", changes) is None
    changes[2].path.write_bytes(b"mine\n")
    problem = transaction.undo(tmp_path / "m0.py")
    assert isinstance(problem, Problem) and "changed since the last apply" in problem.message and "m2.py" in problem.message
    assert changes[2].path.read_bytes() == b"mine\n" and changes[3].path.read_bytes() == changes[3].after


def test_recovery_leaves_everything_alone_where_a_file_was_changed_since(tmp_path: Path) -> None:
    changes = program(tmp_path)
    assert transaction.write(tmp_path / "m0.py", changes) is None
    (tmp_path / transaction.FOLDER / "m0.py" / "done").unlink()
    changes[2].path.write_bytes(b"mine\n")
    problem = transaction.recover(tmp_path / "m0.py")
    assert isinstance(problem, Problem) and "m2.py changed since" in problem.message
    assert changes[2].path.read_bytes() == b"mine\n"


@pytest.mark.parametrize("damage", ["plan", "content"])
def test_a_damaged_record_is_said_and_nothing_is_written(tmp_path: Path, damage: str) -> None:
    changes = program(tmp_path)
    assert transaction.write(tmp_path / "m0.py", changes) is None
    place = tmp_path / transaction.FOLDER / "m0.py"
    (place / ("plan.json" if damage == "plan" else "4.old")).write_text("{")
    assert isinstance(transaction.undo(tmp_path / "m0.py"), Problem)
    (place / "done").unlink()
    assert isinstance(transaction.recover(tmp_path / "m0.py"), Problem)
    assert contents(changes) == "new"


# ------------------------------------------------------------------ whole
def test_all_files_are_written_and_come_back(tmp_path: Path) -> None:
    changes = program(tmp_path)
    os.chmod(changes[1].path, 0o750)
    assert transaction.write(tmp_path / "m0.py", changes) is None
    assert contents(changes) == "new"
    assert changes[1].path.stat().st_mode & 0o777 == 0o750
    assert (tmp_path / transaction.FOLDER / ".gitignore").read_text() == "*\n"
    assert transaction.undo(tmp_path / "m0.py") == [c.path for c in changes]
    assert contents(changes) == "old"
    assert isinstance(transaction.undo(tmp_path / "m0.py"), Problem)


def test_only_the_last_apply_is_kept(tmp_path: Path) -> None:
    changes = program(tmp_path)
    assert transaction.write(tmp_path / "m0.py", changes) is None
    again = [Change(c.path, c.after, b"third\n") for c in changes[:2]]
    assert transaction.write(tmp_path / "m0.py", again) is None
    assert transaction.undo(tmp_path / "m0.py") == [c.path for c in again]
    assert contents(changes) == "new"


def test_a_program_that_was_moved_can_be_undone(tmp_path: Path) -> None:
    before = tmp_path / "here"
    before.mkdir()
    changes = program(before)
    assert transaction.write(before / "m0.py", changes) is None
    before.rename(tmp_path / "there")
    assert isinstance(transaction.undo(tmp_path / "there" / "m0.py"), list)
    assert (tmp_path / "there" / "m0.py").read_bytes() == changes[0].before


# ------------------------------------------------------------------ interrupted
@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it has written; only a power cut does."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


_STEPS = ("open", "mkdir", "rename", "replace", "unlink", "rmdir", "fsync")


def _dies_at(step: int) -> None:
    """From here on the process dies at its ``step``-th change of the file system."""
    left = step

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                os._exit(1)
            return real(*args, **kwargs)

        return call

    for name in _STEPS:
        setattr(os, name, counted(getattr(os, name)))


@pytest.mark.usefixtures("quick")
def test_interrupted_at_any_step_it_is_wholly_old_or_wholly_new(tmp_path: Path) -> None:
    seen = set()
    for step in range(0, 400, 3):
        folder = tmp_path / str(step)
        folder.mkdir()
        changes = program(folder)

        def run(step: int = step, folder: Path = folder, changes: list[Change] = changes) -> None:
            _dies_at(step)
            transaction.write(folder / "m0.py", changes)

        in_child(run)
        state = _after_recovery(folder, changes)
        seen.add(state)
        if state == ("new", False):
            break
    assert seen == {("old", False), ("new", True), ("new", False)}


@pytest.mark.usefixtures("quick")
def test_killed_anywhere_it_is_wholly_old_or_wholly_new(tmp_path: Path) -> None:
    """Also inside functions of the library: about 200 of its 25,000 lines, spread over the whole."""
    seen = set()
    for line in count(0, 125):
        folder = tmp_path / str(line)
        folder.mkdir()
        mine = program(folder)
        killed = in_child(lambda folder=folder, mine=mine: transaction.write(folder / "m0.py", mine), line)  # type: ignore[misc]
        seen.add((*_after_recovery(folder, mine), killed))
        if not killed:
            break
    assert seen >= {("old", False, True), ("new", True, True), ("new", False, False)}
    assert not [state for state, _, _ in seen if state == "half"]


def _after_recovery(folder: Path, changes: list[Change]) -> tuple[str, bool]:
    """What the next run finds or makes, and whether it had something to finish."""
    script = folder / "m0.py"
    unfinished = transaction.unfinished(script)
    if unfinished:
        assert isinstance(transaction.recover(script), str)
        assert not transaction.unfinished(script)
    state = contents(changes)
    if state == "new":
        assert transaction.undo(script) == [c.path for c in changes]
        assert contents(changes) == "old"
    else:
        assert transaction.write(script, changes) is None
        assert contents(changes) == "new"
    assert leftovers(folder) == []
    return state, unfinished


def test_the_plan_names_files_from_the_scripts_folder(tmp_path: Path) -> None:
    changes = program(tmp_path)
    assert transaction.write(tmp_path / "m0.py", changes) is None
    plan = json.loads((tmp_path / transaction.FOLDER / "m0.py" / "plan.json").read_text())
    assert [f["path"] for f in plan["files"]][:2] == ["m0.py", "pkg/m1.py"]


def test_the_originals_are_those_of_the_last_apply(tmp_path: Path) -> None:
    script = tmp_path / "m0.py"
    assert transaction.originals(script) == {}
    changes = program(tmp_path)
    assert transaction.write(script, changes) is None

    changes[1].path.write_bytes(b"changed since")

    found = transaction.originals(script)
    assert found == {c.path: c.before for c in changes}


def test_the_original_of_a_shared_file_is_found_in_the_record_of_the_other_script(tmp_path: Path) -> None:
    one, other, module = (tmp_path / name for name in ("one.py", "other.py", "module.py"))
    for path in (one, other, module):
        path.write_bytes(b"old")
    shared = Change(module, b"old", b"new")
    assert transaction.write(one, [Change(one, b"old", b"new"), shared], [other]) is None
    assert transaction.write(other, [Change(other, b"old", b"new"), shared], [one]) is None

    assert transaction.originals(other) == {other: b"old", module: b"old"}

    for file in (tmp_path / transaction.FOLDER / "one.py").iterdir():
        file.unlink()
    found = transaction.originals(other)
    assert isinstance(found, Problem) and "module.py was rewritten with another script" in found.message


def test_originals_in_a_damaged_record_are_not_trusted(tmp_path: Path) -> None:
    changes = program(tmp_path)
    transaction.write(tmp_path / "m0.py", changes)
    (tmp_path / transaction.FOLDER / "m0.py" / "0.old").write_bytes(b"?")

    found = transaction.originals(tmp_path / "m0.py")

    assert isinstance(found, Problem) and "is damaged" in found.message
