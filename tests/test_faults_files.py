"""Files that cannot be read or written, configuration that is broken, signals: one line with the name, and nothing half done."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpmigrate import config, interrupts, reading, transaction, walk, writing
from dpmigrate.model import Problem
from dpmigrate.transaction import Change
from tests.faults import CALLS, ENVIRONMENT, IMPORTS, SAVES, TOOL, TRAINS, listing, put, run, several

#: root may read everything, unless the process gives that up
UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", *TOOL) if os.geteuid() == 0 else TOOL
needs_permissions = pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may read everything")


# ------------------------------------------------------------------ reading
@needs_permissions
def test_what_cannot_be_read_is_a_line_each_and_the_others_go_on(tmp_path: Path) -> None:
    put(tmp_path, name="closed.py").chmod(0)
    put(tmp_path, name="folder/inside.py").parent.chmod(0)
    put(tmp_path, b"from pkg.helper import x\n" + TRAINS, "hidden.py")
    put(tmp_path, b"x = 1\n", "pkg/helper.py").parent.chmod(0)
    put(tmp_path, b"from module import x\n" + TRAINS, "importing.py")
    put(tmp_path, b"x = 1\n", "module.py").chmod(0)
    put(tmp_path, b"python good.py\n", "run.sh").chmod(0)
    put(tmp_path, b"*.txt\n", ".gitignore").chmod(0)
    put(tmp_path, name="good.py")
    try:
        for command in ("check", "apply"):
            done = run(command, ".", cwd=tmp_path, tool=UNPRIVILEGED)
            assert done.returncode == 2
            for line in (
                b".gitignore: error cannot be read: Permission denied",
                b"closed.py: error cannot be read: Permission denied",
                b"folder: error Permission denied",
                b"hidden.py: error pkg/__init__.py, which it imports, cannot be read: Permission denied",
                b"importing.py: error module.py, which it imports, cannot be read: Permission denied",
                b"run.sh: error cannot be read: Permission denied: whether it starts good.py is not known",
            ):
                assert done.stdout.count(line + b"\n") == 1, (line, done.stdout)
            assert b"good.py: " + (b"apply will make" if command == "check" else b"migrated") in done.stdout
        for command in ("undo", "verify"):
            done = run(command, "closed.py", cwd=tmp_path, tool=UNPRIVILEGED)
            assert done.returncode == 2 and b"closed.py" in done.stderr
        done = run("check", "folder/inside.py", cwd=tmp_path, tool=UNPRIVILEGED)
        assert done.returncode == 2 and b"folder/inside.py: error Permission denied" in done.stdout
    finally:
        for name in ("folder", "pkg"):
            (tmp_path / name).chmod(0o755)
    assert (tmp_path / "importing.py").read_bytes() == b"from module import x\n" + TRAINS


def test_what_is_no_file_is_told_where_it_is_named_and_passed_over_in_a_walk(tmp_path: Path) -> None:
    put(tmp_path, b"x = 1\n", "good.py")
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "nowhere.py").symlink_to("missing")
    (tmp_path / "round.py").symlink_to("round.py")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(tmp_path, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/socket.py")
        os.close(here)
    assert run("check", ".", cwd=tmp_path).stdout == b"1 file: 1 with nothing to migrate.\n"
    names = ("fifo.py", "nowhere.py", "round.py", "socket.py", "missing.py")
    done = run("check", *names, "good.py", cwd=tmp_path)
    why = ("not a regular file", "No such file or directory", "Too many levels of symbolic links", "not a regular file", "No such file or directory")
    assert done.returncode == 2
    assert done.stdout.decode().splitlines() == [*(f"{n}: error {w}" for n, w in zip(names, why, strict=True)), "6 files: 5 failed, 1 with nothing to migrate."]


def test_a_file_that_vanishes_during_the_walk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", "b.py", "c/d.py", "c/e.py"):
        put(tmp_path, b"", name)
    real, seen = walk._wanted, []

    def wanted(entry: os.DirEntry[str], root: Path) -> tuple[bool, bool]:
        seen.append(entry.name)
        found = real(entry, root)
        if entry.name in ("a.py", "c"):
            shutil.rmtree(entry.path) if found[0] else os.unlink(entry.path)
        return found

    monkeypatch.setattr(walk, "_wanted", wanted)
    gone = Problem("No such file or directory")
    assert list(walk.find((str(tmp_path),))) == [(tmp_path / "a.py", gone), tmp_path / "b.py", (tmp_path / "c", gone)]
    assert seen == ["a.py", "b.py", "c"]


def test_a_file_that_vanishes_after_the_walk_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        reading.content(tmp_path / "a.py")
    with pytest.raises(IsADirectoryError):
        reading.content(tmp_path)


def test_a_file_that_becomes_a_pipe_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, b"x")
    assert (reading.content(path, 0), reading.content(path)) == (b"", b"x")
    real = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda *_, **__: real)
    with pytest.raises(OSError, match="not a regular file"):
        reading.content(path)


def test_lines_of_a_gitignore_that_are_none_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path, b"!\n\xff\nb*.py\n", ".gitignore")
    for name in ("a.py", "b.py"):
        put(tmp_path, b"", name)
    assert list(walk.find((str(tmp_path),))) == [tmp_path / "a.py"]
    (tmp_path / ".gitignore").unlink()
    (tmp_path / ".gitignore").mkdir()
    found = list(walk.find((str(tmp_path),)))
    assert found == [(tmp_path / ".gitignore", Problem("cannot be read: is a directory")), tmp_path / "a.py", tmp_path / "b.py"]


def test_a_gitignore_above_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").symlink_to(".gitignore")
    put(tmp_path, b"", "sub/a.py")
    told, path = walk.find((str(tmp_path / "sub"),))
    assert isinstance(told, tuple) and path == tmp_path / "sub" / "a.py"
    assert told[0] == tmp_path / ".gitignore" and "symbolic links" in told[1].message


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    put(tmp_path, f"import {'a' * 300}\nfrom {'b.' * 900}c import d\n".encode() + TRAINS)
    put(tmp_path, b"python x\0.py\npython train.py\n", "run.sh")
    done = run("check", "train.py", cwd=tmp_path)
    assert done.returncode == 1 and b"run.sh:2: torchrun" in done.stdout


def test_the_current_folder_is_gone(tmp_path: Path) -> None:
    done = run("-c", 'mkdir d && cd d && rmdir ../d && exec "$@"', "sh", *TOOL, "check", cwd=tmp_path, tool=("sh",))
    assert done.returncode == 2 and done.stderr == b"Error: the current folder cannot be used: No such file or directory\n"


# ------------------------------------------------------------------ configuration
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a = " + "[" * 100_000, "nested too deeply", id="brackets without end"),
        pytest.param("[tool.dpmigrate]\namp = " + "9" * 10_000, "Exceeds the limit", id="a number without end"),
        pytest.param("[tool.dpmigrate]\namp = 1e9999", "amp must be true or false, not inf", id="a number that is none"),
        pytest.param("[tool.dpmigrate.amp" + ".a" * 50_000 + "]\nx = 1", "amp must be true or false, not {'a': {'a'", id="tables without end"),
        pytest.param("tool = 3", "tool is not a table", id="tool"),
        pytest.param("[[tool.dpmigrate]]\namp = true", "[tool.dpmigrate] is not a table", id="a list of tables"),
        pytest.param("[tool.dpmigrate]\nexclude = ['../x']", "exclude: '../x' is no pattern", id="a folder above"),
        pytest.param("[tool.dpmigrate]\nexclude = ['!']", "exclude: '!' is no pattern", id="no pattern"),
        pytest.param("[tool.dpmigrate]\nper-file-ignores = { 'a/../b.py' = [] }", "per-file-ignores: 'a/../b.py'", id="a file above"),
        pytest.param("[tool.dpmigrate]\n'\\u001b[2J' = 1", "has no key", id="a key that is none"),
        pytest.param("[tool.dpmigrate]\n\"\\u001b[2J\u202e\" = 1", "has no key '\\x1b[2J\\u202e'", id="a key that drives the terminal"),
        pytest.param("[tool.dpmigrate]\nselect = [1979-05-27]", "select must be a list of codes", id="dates"),
        pytest.param("[tool.dpmigrate]\namp-dtype = ['float16']", "amp-dtype must be", id="a list for a word"),
        pytest.param(b"x = 1\n# \xff", "line 2 is not UTF-8: byte 0xff", id="not UTF-8"),
        pytest.param(b"\0", "pyproject.toml: ", id="NUL"),
        pytest.param(b"#" * 1_000_001, "larger than 1 MB", id="too large"),
    ],
)
def test_a_broken_pyproject_is_named_with_what_is_wrong(tmp_path: Path, text: str | bytes, said: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(config.ConfigError) as told:
        config.load(tmp_path)
    assert said in str(told.value) and str(tmp_path / "pyproject.toml") in str(told.value) and len(str(told.value)) < 400


def test_a_pyproject_that_is_no_file(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    for make, said in ((file.mkdir, "is a directory"), (lambda: os.mkfifo(file), "not a regular file"), (lambda: file.symlink_to(file), "Too many levels")):
        make()
        with pytest.raises(config.ConfigError, match=said):
            config.load(tmp_path)
        file.rmdir() if said == "is a directory" else file.unlink()
    file.symlink_to("missing")
    with pytest.raises(config.ConfigError, match="leads nowhere"):
        config.load(tmp_path)


def test_a_pyproject_with_a_mark_and_crlf_is_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xef\xbb\xbf[tool.dpmigrate]\r\namp = true\r\n")
    assert config.load(tmp_path / "train.py").options == {"amp": True}


def test_a_broken_pyproject_ends_the_command_and_names_the_key(tmp_path: Path) -> None:
    path = put(tmp_path)
    put(tmp_path, b"[tool.dpmigrate]\nignore = ['DPMX']\n", "pyproject.toml")
    for command in ("check", "apply", "verify"):
        done = run(command, "train.py", cwd=tmp_path)
        assert done.returncode == 2 and b"pyproject.toml: [tool.dpmigrate] ignore: no rule is called 'DPMX'" in done.stderr
    assert path.read_bytes() == TRAINS


# ------------------------------------------------------------------ writing
def test_a_file_without_write_permission_stays(tmp_path: Path) -> None:
    """Also where root could write it, and with all other files of the program."""
    files = several(tmp_path)
    (tmp_path / "saving.py").chmod(0o444)
    done = run("apply", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"train.py: error saving.py: is read-only\n")
    assert listing(tmp_path) == {p.name: data for p, data in sorted(files.items())}


def test_a_folder_without_write_permission_stays(tmp_path: Path) -> None:
    folder = put(tmp_path, name="sub/train.py").parent
    folder.chmod(0o555)
    done = run("apply", "sub/train.py", cwd=tmp_path)
    folder.chmod(0o755)
    assert (done.returncode, done.stdout) == (2, b"sub/train.py: error cannot be written: the folder sub is read-only\n")
    assert listing(folder) == {"train.py": TRAINS}


def test_a_limit_of_the_file_size_leaves_everything_as_it_was(tmp_path: Path) -> None:
    files = several(tmp_path)
    done = run("-c", 'ulimit -f 0; exec "$@"', "sh", *TOOL, "apply", "train.py", cwd=tmp_path, tool=("sh",))
    assert done.returncode == 2 and b"train.py: error " in done.stdout and b"cannot be written: File too large" in done.stdout
    assert listing(tmp_path) == {p.name: data for p, data in sorted(files.items())}
    done = run("-c", 'ulimit -f 0; exec "$@"', "sh", *TOOL, "apply", "saving.py", "-o", "new/x.py", "--vendor", cwd=tmp_path, tool=("sh",))
    assert listing(tmp_path) == {p.name: data for p, data in sorted(files.items())}


_CALLS = ("open", "mkdir", "rename", "replace", "fsync", "chmod", "write")


class _Full:
    """From the ``step``-th change of the file system on the disk is full: for one call, or for all that follow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: int, *, lasting: bool) -> None:
        self.left, self.lasting = step, lasting
        for name in _CALLS:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if real.__name__ == "open" and not (args[1] if len(args) > 1 else 0) & (os.O_WRONLY | os.O_RDWR):
                return real(*args, **kwargs)
            self.left -= 1
            if self.left == -1 or (self.lasting and self.left < 0):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*args, **kwargs)

        return call


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("before", [False, True], ids=["first apply", "second apply"])
def test_a_full_disk_at_any_step_leaves_all_or_none(tmp_path: Path, before: bool, lasting: bool) -> None:
    outcomes = set()
    for step in range(200):
        folder = tmp_path / str(step)
        folder.mkdir()
        changes = [Change(folder / f"{i}.py", b"old", b"new") for i in range(3)]
        for c in changes:
            c.path.write_bytes(b"older" if before else b"old")
        if before:
            assert transaction.write(changes[0].path, [Change(c.path, b"older", b"old") for c in changes]) is None
        was = listing(folder)
        with pytest.MonkeyPatch.context() as patched:
            _Full(patched, step, lasting=lasting)
            problem = transaction.write(changes[0].path, changes)
        now = [c.path.read_bytes() for c in changes]
        if problem is None:
            outcomes.add("new")
            assert now == [b"new"] * 3
            break
        assert "No space left" in problem.message
        if transaction.unfinished(changes[0].path):  # the disk stayed full while the old files were brought back
            outcomes.add("unfinished")
            assert lasting and "'dpmigrate apply' finishes" in problem.message
            assert isinstance(transaction.recover(changes[0].path), str) and all(c.path.read_bytes() == b"new" for c in changes)
        else:
            outcomes.add("old")
            assert now == [b"old"] * 3 and (lasting or listing(folder) == was), step
            if before:  # the record of the apply before is still there
                assert isinstance(transaction.undo(changes[0].path), list) and all(c.path.read_bytes() == b"older" for c in changes), step
            else:
                assert listing(folder) == was, step
    assert outcomes == ({"old", "new", "unfinished"} if lasting else {"old", "new"})


def test_programs_that_share_a_file_are_written_together_also_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = several(tmp_path)
    second = put(tmp_path, IMPORTS + TRAINS + CALLS, "second.py")
    from dpmigrate import engine
    from dpmigrate.settings import Settings

    real = transaction.write

    def write(script: Path, changes: Any, beside: Any = ()) -> Problem | None:
        return Problem("full") if script.name == "second.py" and len(changes) > 1 else real(script, changes, beside)

    monkeypatch.setattr(transaction, "write", write)
    monkeypatch.chdir(tmp_path)
    first, other = engine.apply([Path("train.py"), Path("second.py")], Settings(), engine.Writing())
    assert other.problem == Problem("full") and "shares files with second.py, which could not be written" in first.reason
    assert {p: p.read_bytes() for p in files} == files and second.read_bytes() == IMPORTS + TRAINS + CALLS
    monkeypatch.setattr(transaction, "undo", lambda script: Problem("changed"))
    first, other = engine.apply([Path("train.py"), Path("second.py")], Settings(), engine.Writing())
    assert "this one cannot be taken back: changed" in first.notes[-1]


def test_our_folder_in_another_form_is_not_written_through(tmp_path: Path) -> None:
    path = put(tmp_path, b"old")
    (tmp_path / "elsewhere").mkdir()
    ours = tmp_path / transaction.FOLDER
    ours.symlink_to("elsewhere")
    assert transaction.write(path, [Change(path, b"old", b"new")]) == Problem(f"cannot be written: {ours}: is a symbolic link")
    ours.unlink()
    ours.write_text("")
    assert transaction.write(path, [Change(path, b"old", b"new")]) == Problem(f"cannot be written: {ours}: File exists")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("plan", ['{"files": [{"path": "../../.profile", "old": "x", "new": "x"}]}', '{"files": [3]}', "[" * 100_000, "3", '{"files": [], "shared": 3}'])
def test_a_record_that_apply_has_not_written_is_damaged(tmp_path: Path, plan: str) -> None:
    """It may have come with a repository: it reaches neither beyond modules nor into a traceback."""
    path = put(tmp_path)
    place = tmp_path / transaction.FOLDER / path.name
    place.mkdir(parents=True)
    (place / "plan.json").write_text(plan)
    for which in ("0.old", "0.new"):
        (place / which).write_bytes(b"")
    assert "is damaged" in transaction.undo(path).message  # type: ignore[union-attr]
    assert "is damaged" in transaction.recover(path).message  # type: ignore[union-attr]


def test_long_names_have_room_for_what_is_put_round_them(tmp_path: Path) -> None:
    path = put(tmp_path, b"old", "ü" * 120 + ".py")
    other = put(tmp_path, b"old", "a.py.b.py")
    assert transaction.write(path, [Change(path, b"old", b"new"), Change(other, b"old", b"new"), Change(put(tmp_path, b"old", "a.py"), b"old", b"new")]) is None
    assert transaction.undo(path) and path.read_bytes() == b"old"
    assert sorted(listing(tmp_path)) == sorted([path.name, "a.py", "a.py.b.py"])


# ------------------------------------------------------------------ the runtime beside the script
def _foreign(folder: Path, what: str) -> Path:
    """Something of the runtime's name that is not ours; what has to be named."""
    target = folder / writing.RUNTIME
    if what == "file":
        target.write_text("mine\n")
    elif what == "folder":
        put(target, b"mine\n", "__init__.py")
    elif what == "link":
        put(folder / "elsewhere", b"mine\n", "__init__.py")
        target.symlink_to("elsewhere")
    elif what == "link to nothing":
        target.symlink_to("nowhere")
    else:
        assert writing.vendor(folder) is None
        path = target / "_state.py"
        if what == "link inside":
            path.unlink()
            path.symlink_to(put(folder, b"mine\n", "mine.txt"))
        else:
            path.write_text("# changed\n")
        return path
    return target


@pytest.mark.parametrize("what", ["file", "folder", "link", "link to nothing", "link inside", "changed"])
def test_vendor_over_what_is_not_ours_writes_nothing(tmp_path: Path, what: str) -> None:
    put(tmp_path)
    named = _foreign(tmp_path, what)
    before = listing(tmp_path)
    done = run("apply", "--vendor", "train.py", cwd=tmp_path)
    assert done.returncode == 2 and named.relative_to(tmp_path).as_posix().encode() in done.stdout.splitlines()[0]
    assert listing(tmp_path) == before


def test_vendor_over_our_own(tmp_path: Path) -> None:
    """A copy that is whole stays; one of another version is brought up to date."""
    assert writing.vendor(tmp_path / "new" / "folder") is None
    package = writing.vendored(tmp_path / "new" / "folder")
    whole = listing(package)
    assert writing.vendor(package.parent) is None and listing(package) == whole
    (package / "__init__.py").write_text((package / "__init__.py").read_text().replace('__version__ = "', '__version__ = "0.0.'))
    (package / "_state.py").write_text("# of an older version\n")
    (package / "_hash.py").unlink()
    assert writing.vendor(package.parent) is None and listing(package) == whole
    assert package.stat().st_mode & 0o777 == 0o777 & ~writing._mask()


def test_vendor_is_taken_back_with_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path).chmod(0o444)
    assert run("apply", "--vendor", "train.py", cwd=tmp_path).returncode == 2
    assert listing(tmp_path) == {"train.py": TRAINS}
    (tmp_path / f".{writing.RUNTIME}.old{writing.SUFFIX}").mkdir()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        problem = writing.vendor(tmp_path / "new")
    assert problem == Problem(f"{tmp_path / 'new' / writing.RUNTIME} cannot be written: No space left on device")
    assert writing.vendor(tmp_path) is None and sorted(os.listdir(tmp_path)) == [writing.RUNTIME, "train.py"]


def test_vendor_into_a_folder_without_write_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    assert writing.vendor(tmp_path) == Problem(f"{tmp_path / writing.RUNTIME} cannot be written: the folder {tmp_path} is read-only")
    tmp_path.chmod(0o755)


# ------------------------------------------------------------------ signals
@pytest.fixture
def listening() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in interrupts._SIGNALS}
    # a job in the background may have been started with SIGINT ignored, which is respected
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.listen()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("listening")
def test_a_signal_ends_at_once_what_is_not_held() -> None:
    with pytest.raises(interrupts.Interrupted, match="SIGTERM") as told:
        signal.raise_signal(signal.SIGTERM)
    assert told.value.code == 143


@pytest.mark.usefixtures("listening")
def test_a_signal_waits_where_it_is_held_and_the_second_does_not() -> None:
    steps = []
    with pytest.raises(interrupts.Interrupted) as told, interrupts.held():
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            steps.append(1)
        steps.append(2)
    assert (steps, told.value.code) == ([1, 2], 130)
    with pytest.raises(interrupts.Interrupted), interrupts.held():
        signal.raise_signal(signal.SIGINT)
        steps.append(3)
        signal.raise_signal(signal.SIGINT)
        steps.append(4)
    assert steps == [1, 2, 3]
    with interrupts.held():
        pass  # nothing is left of it


@pytest.mark.usefixtures("listening")
def test_within_what_is_held_a_part_may_be_ended_at_once() -> None:
    with pytest.raises(interrupts.Interrupted), interrupts.held(), interrupts.released():
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it was not ended")
    with pytest.raises(interrupts.Interrupted), interrupts.held():
        signal.raise_signal(signal.SIGINT)
        with interrupts.released():
            pytest.fail("a signal was waiting")


def test_a_signal_that_the_caller_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        interrupts.listen()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


#: stops at one call for the test's word, so that a signal comes exactly there
_STOPPING = """
import sys
from dpmigrate import {room}
real, left = {room}.{name}, {calls}

def stopping(*args, **kwargs):
    global left
    left -= 1
    if left == 0:
        print("here", file=sys.stderr, flush=True)
        sys.stdin.readline()
    return real(*args, **kwargs)

{room}.{name} = stopping
from dpmigrate.cli import main
main()
"""


def _interrupted(folder: Path, room: str, name: str, calls: int, *words: str, number: int = signal.SIGINT) -> tuple[int, str, str]:
    """The command with a signal at the beginning of the n-th call of a function; exit code, stdout, stderr."""
    code = _STOPPING.format(room=room, name=name, calls=calls)
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=folder, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a job in the background starts with it ignored
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stderr is not None
        assert process.stderr.readline() == "here\n"
        process.send_signal(number)
        out, err = process.communicate("\n")
    assert "Traceback" not in err, err
    return process.returncode, out, err


def test_a_signal_while_files_are_read_lists_what_is_done(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        put(tmp_path, name=name)
    before = listing(tmp_path)
    code, out, err = _interrupted(tmp_path, "engine", "_check", 3, "check", ".")
    assert code == 130 and "a.py: apply will make" in out and "b.py: apply will make" in out and "c.py" not in out
    assert err == "dpmigrate: interrupted: 2 of 3 done, the others are as they were\n"
    code, out, err = _interrupted(tmp_path, "engine", "_plan", 2, "apply", ".", number=signal.SIGTERM)
    assert (code, out, err) == (143, "", "dpmigrate: interrupted: 0 of 3 done, the others are as they were\n")
    assert listing(tmp_path) == before


@pytest.mark.parametrize(("room", "name", "calls"), [("writing", "stage", 3), ("transaction", "_store", 7), ("transaction", "_renamed", 2), ("transaction", "_finish", 2)])
def test_a_signal_while_files_are_written_waits_for_the_program(tmp_path: Path, room: str, name: str, calls: int) -> None:
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        several(tmp_path / folder)
    code, out, err = _interrupted(tmp_path, room, name, calls, "apply", "a/train.py", "b/train.py", "c/train.py")
    written = [f for f in ("a", "b", "c") if b"ddp.wrap(" in (tmp_path / f / "train.py").read_bytes()]
    assert code == 130 and written in (["a"], ["a", "b"])
    for folder in ("a", "b", "c"):
        assert (f"{folder}/train.py: migrated" in out) == (folder in written)
        assert (b"ddp.save(" in (tmp_path / folder / "saving.py").read_bytes()) == (folder in written)
    assert f"dpmigrate: interrupted: {len(written)} of 3 done" in err
    left = [name for name in listing(tmp_path) if ".new-" in name or name.endswith(writing.SUFFIX)]
    assert [name for name in left if not name.endswith(transaction.FOLDER)] == []
    assert run("undo", "a/train.py", cwd=tmp_path).returncode == 0


def test_a_signal_during_undo_waits(tmp_path: Path) -> None:
    files = several(tmp_path)
    assert run("apply", "train.py", cwd=tmp_path).returncode == 0
    code, out, err = _interrupted(tmp_path, "transaction", "_renamed", 1, "undo", "train.py")
    assert code == 130 and "train.py: as it was before" in out and "interrupted" in err
    assert listing(tmp_path) == {p.name: data for p, data in sorted(files.items())}


def test_saves_are_of_the_program(tmp_path: Path) -> None:
    """What the tests above rest on: both files change."""
    assert SAVES in several(tmp_path).values()
    assert run("apply", "train.py", cwd=tmp_path).returncode == 0
    assert b"ddp.save(" in (tmp_path / "saving.py").read_bytes() and b"ddp.wrap(" in (tmp_path / "train.py").read_bytes()
