"""Output that nobody takes, streams that are closed, and what stands in names and lines."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmigrate import terminal
from dpmigrate.model import File, Outcome, Status
from dpmigrate.report import changes
from dpmigrate.report.text import Style
from tests.faults import ENVIRONMENT, TOOL, TRAINS, put, run

COMMANDS = [
    pytest.param(("check", "train.py"), id="text"),
    pytest.param(("check", "--output-format", "json", "train.py"), id="json"),
    pytest.param(("apply", "--diff", "train.py"), id="diff"),
    pytest.param(("--help",), id="help"),
    pytest.param(("rules", "--markdown"), id="rules"),
    pytest.param(("explain", "DPM301"), id="explain"),
]


# ------------------------------------------------------------------ full, closed
@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_stdout_is_told(tmp_path: Path, words: tuple[str, ...]) -> None:
    put(tmp_path)
    with open("/dev/full", "wb") as full:
        done = run(*words, cwd=tmp_path, stdout=full)
    assert (done.returncode, done.stderr) == (2, b"dpmigrate: cannot write to stdout: No space left on device\n")


@pytest.mark.parametrize("words", COMMANDS)
def test_a_pipe_that_is_closed_ends_it_as_other_filters(tmp_path: Path, words: tuple[str, ...]) -> None:
    put(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    done = run(*words, cwd=tmp_path, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr.strip()) == (141, b"")


@pytest.mark.parametrize(("closed", "told"), [(">&-", b"dpmigrate: cannot write to stdout: it is closed\n"), (">&- 2>&-", b""), (">&- <&- 2>/dev/full", b"")])
def test_a_closed_stdout_is_told(tmp_path: Path, closed: str, told: bytes) -> None:
    put(tmp_path)
    done = run("-c", f'exec "$@" {closed}', "sh", *TOOL, "check", "train.py", cwd=tmp_path, tool=("sh",))
    assert (done.returncode, done.stderr) == (2, told)


def test_what_is_written_is_not_lost_with_the_report_of_it(tmp_path: Path) -> None:
    """The files are whole, none has taken the place of a closed stream, and their names are told."""
    path = put(tmp_path)
    done = run("-c", 'exec "$@" >&- <&-', "sh", *TOOL, "apply", "train.py", cwd=tmp_path, tool=("sh",))
    assert done.returncode == 2 and b"dpmigrate: train.py was written\n" in done.stderr
    assert b"ddp.wrap(" in path.read_bytes()
    assert run("undo", "train.py", cwd=tmp_path).returncode == 0 and path.read_bytes() == TRAINS
    with open("/dev/full", "wb") as full:
        assert b"was written" not in run("apply", "--diff", "train.py", cwd=tmp_path, stdout=full).stderr


def test_a_closed_stdin_holds_no_program(tmp_path: Path) -> None:
    done = run("-c", 'exec "$@" <&-', "sh", *TOOL, "check", "-", cwd=tmp_path, tool=("sh",))
    assert done.returncode == 2 and b"<stdin>: error standard input is closed" in done.stdout


def test_a_pipe_that_does_not_wait_gets_everything(tmp_path: Path) -> None:
    """As a JavaScript parent hands out: what does not fit at once must neither be lost nor wrapped."""
    for i in range(2):
        put(tmp_path, name=f"train{i}.py")
    whole = run("check", "--output-format", "json", ".", cwd=tmp_path).stdout
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    with subprocess.Popen([*TOOL, "check", "--output-format", "json", "."], cwd=tmp_path, env=ENVIRONMENT, stdout=writer) as process:
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            got = pipe.read()
    assert process.returncode == 1 and len(got) > 4096 and got == whole and json.loads(got)


def test_a_filter_gives_back_what_it_leaves_alone(tmp_path: Path) -> None:
    for data in (b"print(1)\r\n", b"\xef\xbb\xbfx = 1", b"import torch\nloss.backward(\n", b""):
        assert run("apply", "-", cwd=tmp_path, input=data).stdout == data


def test_a_filter_writes_the_encoding_of_the_program(tmp_path: Path) -> None:
    data = "# -*- coding: latin-1 -*-\n# é\n".encode("latin-1") + TRAINS
    put(tmp_path, data)
    filtered = run("apply", "-", cwd=tmp_path, input=data).stdout
    assert run("apply", "train.py", cwd=tmp_path).returncode == 0
    assert filtered == (tmp_path / "train.py").read_bytes() and b"# \xe9\n" in filtered


def test_declared_encodings_are_kept(tmp_path: Path) -> None:
    words = {"euc-jp": "学習", "latin-1": "é", "cp1252": "é…", "shift_jis": "学習", "koi8-r": "обучение", "utf-8": "é学"}
    given = {name: f"# -*- coding: {name} -*-\n".encode() + TRAINS.replace(b", TensorDataset\n", f", TensorDataset  # {word}\n".encode(name)) for name, word in words.items()}
    for name, data in given.items():
        put(tmp_path, data, f"{name}.py")
    diff = run("apply", "--diff", ".", cwd=tmp_path).stdout
    assert run("apply", ".", cwd=tmp_path).returncode in (0, 1)
    for name, word in words.items():
        now = (tmp_path / f"{name}.py").read_bytes()
        if now == given[name] and name in ("euc-jp", "shift_jis"):
            continue  # refused: it stays as it is
        assert now.splitlines()[:5] == given[name].splitlines()[:5] and b"ddp.wrap(" in now, name
        assert b", TensorDataset  # " + word.encode(name) + b"\n" in diff, name


# ------------------------------------------------------------------ diffs that git and patch take
NAMES = ["models[oops].py", ":smile:.py", "my train.py", 'a"b\\c.py', "zz\x1b[2J.py", "a\nb.py", "tab\t.py", "tüt.py", "a\u202eb.py", "[/red].py"]
PATCHERS = [how for how in ("git", "patch") if shutil.which(how)]
TEXTS = {
    "plain": TRAINS,
    "no newline at the end": TRAINS.rstrip(b"\n"),
    "CRLF": TRAINS.replace(b"\n", b"\r\n"),
    "BOM": b"\xef\xbb\xbf" + TRAINS,
    "odd ends of lines": TRAINS.replace(b"import torch.nn as nn\n", b'import torch.nn as nn\nx = "\x0c \x1c \xc2\x85 \xe2\x80\xa8"  # \x1b[31m \xe2\x80\xae\n'),
    "tabs": TRAINS.replace(b"    ", b"\t"),
    "latin-1": b"# coding: latin-1\nnames = ['\xe9[/bold]']\n" + TRAINS,
}


def _patched(folder: Path, diff: bytes, how: str) -> None:
    command = ["git", "apply", "-"] if how == "git" else ["patch", "-p1", "--binary", "--silent"]
    done = subprocess.run(command, cwd=folder, input=diff, capture_output=True)
    assert done.returncode == 0, (done.stdout, done.stderr)


@pytest.mark.skipif(not PATCHERS, reason="needs git or patch")
def test_the_diff_is_what_apply_writes_byte_for_byte(tmp_path: Path) -> None:
    files = {put(tmp_path, data, f"{name}.py"): data for name, data in TEXTS.items()}
    diff = run("apply", "--diff", ".", cwd=tmp_path).stdout
    assert run("apply", ".", cwd=tmp_path).returncode == 0
    wanted = {path: path.read_bytes() for path in files}
    assert all(b"ddp.wrap(" in data for data in wanted.values())
    for how in PATCHERS:
        for path, data in files.items():
            path.write_bytes(data)
        _patched(tmp_path, diff, how)
        for path in files:
            assert path.read_bytes() == wanted[path], (how, path.name)


@pytest.mark.parametrize("how", PATCHERS)
def test_the_diff_finds_files_of_any_name(tmp_path: Path, how: str) -> None:
    for name in NAMES:
        put(tmp_path, name=name)
    diff = run("apply", "--diff", *NAMES, cwd=tmp_path).stdout
    assert b"\x1b" not in diff.replace(TRAINS, b"") and b"+++" in diff
    _patched(tmp_path, diff, how)
    for name in NAMES:
        assert b"ddp.wrap(" in (tmp_path / name).read_bytes(), name


def test_a_name_that_is_no_text_is_processed_and_told_escaped(tmp_path: Path) -> None:
    os.close(os.open(os.fsencode(tmp_path) + b"/a\xff.py", os.O_CREAT))
    (tmp_path / "a\udcff.py").write_bytes(TRAINS)
    assert b"a\\udcff.py:6:7: DPM101" in run("check", ".", cwd=tmp_path).stdout
    assert json.loads(run("check", "--output-format", "json", ".", cwd=tmp_path).stdout)["files"][0]["path"] == "a\udcff.py"
    done = run("apply", ".", cwd=tmp_path)
    assert done.returncode == 0 and b"ddp.wrap(" in (tmp_path / "a\udcff.py").read_bytes()


def _outcome(before: str, after: str, name: str = "a.py") -> Outcome:
    return Outcome(name, Status.CHANGED, (File(name, (), before, after, True, (before.encode(), after.encode())),))


def test_on_a_terminal_nothing_drives_it_and_nothing_is_lost() -> None:
    outcome = _outcome("x = '[/red] \x1b[2J'\r\n", "x = '\u202e:smile: \x9b'\r\n", "zz\x1b]0;t\x07[b].py")
    lines = list(changes.shown(outcome, Style(False)))
    assert lines == ["--- a/zz\\x1b]0;t\\x07[b].py", "+++ b/zz\\x1b]0;t\\x07[b].py", "@@ -1 +1 @@", "-x = '[/red] \\x1b[2J'", "+x = '\\u202e:smile: \\x9b'"]
    assert changes.patch(outcome).splitlines()[-1] == "+x = '\u202e:smile: \x9b'".encode()
    assert next(iter(changes.shown(outcome, Style(True)))).startswith("\x1b[31m--- a/zz\\x1b")


def test_a_terminal_gets_the_safe_form(tmp_path: Path) -> None:
    """Whether colours are wanted or not."""
    put(tmp_path, TRAINS.replace(b"import torch.nn as nn\n", b"import torch.nn as nn  # \x1b[2J\n"))
    for environment in ({}, {"NO_COLOR": "1"}):
        ours, theirs = pty.openpty()
        with subprocess.Popen([*TOOL, "apply", "--diff", "train.py"], cwd=tmp_path, env=ENVIRONMENT | environment, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            shown = b""
            try:
                while data := os.read(ours, 65536):
                    shown += data
            except OSError:  # the end of a pseudo-terminal, on Linux
                pass
        os.close(ours)
        assert process.returncode == 0 and b"# \\x1b[2J" in shown and b"\x1b[2J" not in shown


def test_nothing_that_changes_is_no_diff() -> None:
    assert changes.patch(_outcome("x = 1\n", "x = 1\n")) == b""
    assert changes.patch(Outcome("a.py", Status.REFUSED, (File("a.py", (), "x"),))) == b""
    assert list(changes.shown(Outcome("a.py", Status.REFUSED, (File("a.py", (), "x"),)), Style(False))) == []


# ------------------------------------------------------------------ the pieces, in this process
def _fails(error: OSError) -> Callable[..., int]:
    def write(*_: object) -> int:
        raise error

    return write


def test_streams_without_bytes_are_written_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    terminal.raw("é".encode())
    terminal.flush()
    terminal.abandon()  # it has no number: nothing to point elsewhere
    assert stream.getvalue() == "é"
    stream.write = _fails(OSError(28, "full"))  # type: ignore[method-assign]
    with pytest.raises(terminal.Unwritable, match="full") as told:
        terminal.raw(b"x")
    assert told.value.code == 2


def test_a_flush_waits_for_a_pipe_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [BlockingIOError(11, "full"), None]

    class Stream:
        def flush(self) -> None:
            if (error := left.pop(0)) is not None:
                raise error

    monkeypatch.setattr(sys, "stdout", Stream())
    monkeypatch.setattr(select, "select", lambda *_: None)
    terminal.flush()
    assert left == []
    left.append(BrokenPipeError(32, "gone"))  # type: ignore[arg-type]
    with pytest.raises(terminal.Unwritable) as told:
        terminal.flush()
    assert told.value.code == 141
