"""Which files a walk finds, and how a file is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpmigrate import transaction, writing
from dpmigrate.model import Problem
from dpmigrate.walk import find


def written(path: Path, before: bytes, after: bytes) -> Problem | None:
    return transaction.write(path, [transaction.Change(path, before, after)])


def names(folder: Path) -> list[str]:
    return [str(p.relative_to(folder)) for p in find((str(folder),)) if isinstance(p, Path)]


def test_a_walk_finds_what_is_the_users_own(tmp_path: Path) -> None:
    for name in ("a.py", "b.txt", "pkg/c.py", ".hidden/d.py", "node_modules/e.py", "env/pyvenv.cfg", "env/f.py", "build/g.py", "keep/h.py", "__pycache__/i.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / ".gitignore").write_text("build/\nkeep/*\n!keep/h.py\n")
    os.symlink(tmp_path, tmp_path / "loop")
    os.mkfifo(tmp_path / "fifo.py")
    assert names(tmp_path) == ["a.py", "keep/h.py", "pkg/c.py"]


def test_a_file_is_found_once(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("")
    assert list(find((str(path), str(path), str(tmp_path)))) == [path]


def test_a_missing_path_comes_with_its_problem(tmp_path: Path) -> None:
    [(path, problem)] = find((str(tmp_path / "none.py"),))  # type: ignore[misc]
    assert (path.name, problem.message) == ("none.py", "No such file or directory")


def test_a_file_that_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"new")
    problem = written(path, b"old", b"result")
    assert problem is not None
    assert "has changed" in problem.message
    assert path.read_bytes() == b"new"


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "a.py", tmp_path / "b.py"
    target.write_bytes(b"old")
    link.symlink_to(target)
    assert written(link, b"old", b"new") is None
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_hard_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"old")
    os.link(tmp_path / "a.py", tmp_path / "b.py")
    problem = written(tmp_path / "a.py", b"old", b"new")
    assert problem is not None
    assert "hard links" in problem.message


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    problem = written(path, b"old", b"new")
    assert problem is not None
    assert "No space left" in problem.message
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]


def test_what_a_killed_run_left_is_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    (tmp_path / f".a.py.x1{writing.SUFFIX}").write_bytes(b"half")
    assert written(path, b"old", b"new") is None
    assert sorted(os.listdir(tmp_path)) == [".dpmigrate", "a.py"]


def test_vendor_does_not_overwrite_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "dpmigrate_runtime").mkdir()
    (tmp_path / "dpmigrate_runtime" / "mine.py").write_text("")
    problem = writing.vendor(tmp_path)
    assert problem is not None
    assert "not overwritten" in problem.message
