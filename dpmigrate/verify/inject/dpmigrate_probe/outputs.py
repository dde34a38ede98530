"""Files and lines: who writes what; and nothing of the user's is ever written.

The copy that a program runs in links to large files and folders of data. Before a write, a deletion or a renaming in such a place the link becomes a
folder of links, or a file of the copy's own. Places outside the copy and the usual caches are refused.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from dpmigrate_probe.places import note
from dpmigrate_probe.state import CONFIG, PID, RECORD, STATE, when, where

#: before ``guard`` puts its own in the place
_real = os.path.realpath


def guard() -> None:
    """Install the audit hook: in every Python process of the run, those that the script starts included."""
    STATE["allowed"] = [_real(p) for p in _allowed()]
    os.path.realpath = _within_copy  # type: ignore[assignment]
    sys.addaudithook(audit)


def _within_copy(path: Any, **how: Any) -> Any:
    """``os.path.realpath`` for which the links of the copy are files and folders: who asks where a link leads, to write there, has to come to the copy."""
    real, full = _real(path, **how), os.path.abspath(path)
    root = CONFIG["root"] if isinstance(full, str) else os.fsencode(CONFIG["root"])
    inside, led_out = (os.path.commonpath([root, p]) == root if os.path.isabs(p) else False for p in (full, real))
    return full if inside and not led_out else real


def watch() -> None:
    """Record what the script itself writes and prints."""
    STATE["recording"] = True
    sys.stdout, sys.stderr = Lines(sys.stdout, "stdout"), Lines(sys.stderr, "stderr")


def _allowed() -> list[str]:
    """Where programs keep what belongs to nobody's work: temporary files and caches."""
    home = os.path.expanduser("~")
    variables = ("XDG_CACHE_HOME", "TORCH_HOME", "HF_HOME", "MPLCONFIGDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    named = [os.environ[n] for n in variables if os.environ.get(n)]
    usual = [os.path.join(home, name) for name in (".cache", ".config", ".triton", ".nv", ".keras", ".matplotlib")]
    return [CONFIG["out"], tempfile.gettempdir(), "/dev", "/proc", "/sys", sys.prefix, sys.base_prefix, *named, *usual]


def settle() -> None:
    """At the end it is known which passes have trained."""
    RECORD["lines"] = [(when(place) == "training", text, kind) for place, text, kind in RECORD["lines"]]
    RECORD["places"] = sorted(STATE["places"])
    RECORD["writes"] = {name: sorted({when(place) for place in places}) for name, places in RECORD["writes"].items()}


# ---------------------------------------------------------------- files
_CREATES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_COPY, _DROP, _LEAVE = "copy", "drop", "leave"  # what becomes of a link in the last place of a path


def audit(event: str, arguments: Any) -> None:
    """What Python reports before it does something: see the table of audit events in its documentation."""
    if event == "open":
        path, mode, flags = arguments
        if isinstance(mode, str) and set(mode) & set("wax+"):
            own(path, _DROP if "w" in mode else _COPY)
            _wrote(path)
        elif mode is None and isinstance(flags, int) and flags & _CREATES:
            own(path, _COPY)
    elif event in ("shutil.rmtree", "os.truncate", "sqlite3.connect"):
        own(arguments[0], _COPY)
    elif event in ("os.remove", "os.rmdir", "os.mkdir"):
        own(arguments[0], _LEAVE)
    elif event == "os.rename":
        own(arguments[0], _LEAVE)
        own(arguments[1], _LEAVE)
        _wrote(arguments[1])


def own(path: Any, link: str) -> None:
    """Make sure that ``path`` is the copy's own to write, or raise PermissionError."""
    if STATE["owning"] or STATE["leaving"] or not isinstance(path, str | bytes | os.PathLike):
        return
    full, root = os.path.abspath(os.fsdecode(path)), CONFIG["root"]
    if not _within(full, root):
        _refuse_outside(full)
        return
    place = root
    for part in os.path.relpath(full, root).split(os.sep):
        place = os.path.join(place, part)
        if os.path.islink(place) and not _within(_real(place), root):
            if place != full or link == _COPY:
                _replace(place)
            elif link == _DROP:
                with _alone():
                    if os.path.islink(place):
                        os.unlink(place)


def _refuse_outside(full: str) -> None:
    real, origin = _real(full), CONFIG["origin"]
    places = [place for place in STATE["allowed"] if _within(real, place)]
    mine = _within(real, origin) and not any(_within(place, origin) for place in places)  # TMPDIR may lie in the user's folder, and it in /tmp
    if mine or not places:
        raise PermissionError(f"dpmigrate verify: the program wants to write {full}, which lies outside the scratch copy: pass another place for its output")


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _replace(link: str) -> None:
    """Put a folder of links, or a copy, in the place of a link."""
    with _alone():
        if not os.path.islink(link):
            return  # another process was first
        target, fresh = _real(link), f"{link}.dpmigrate-{PID}"
        if os.path.isdir(target):
            os.mkdir(fresh)
            for entry in os.scandir(target):
                os.symlink(entry.path, os.path.join(fresh, entry.name))
            os.unlink(link)
        elif os.path.exists(target):
            shutil.copyfile(target, fresh)
        else:
            return
        os.rename(fresh, link)


@contextmanager
def _alone() -> Iterator[None]:
    """One process at a time, and not looked at by the hook."""
    STATE["owning"] = True
    try:
        with open(os.path.join(CONFIG["out"], "lock"), "w") as lock:
            try:
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            except ImportError:
                pass
            yield
    finally:
        STATE["owning"] = False


def _wrote(path: Any) -> None:
    if not STATE["recording"] or os.getpid() != PID or STATE["owning"] or STATE["leaving"] or not isinstance(path, str | bytes | os.PathLike):
        return
    full = os.path.abspath(os.fsdecode(path))
    if _within(full, CONFIG["root"]) and "__pycache__" not in full:
        note("write")
        places = RECORD["writes"].setdefault(_named(full), [])
        if where() not in places:
            places.append(where())


def _named(full: str) -> str:
    """As the program would name it: beside the script, or seen from where it runs. Two programs in different folders name alike."""
    beside = os.path.dirname(CONFIG["script"])
    return os.path.relpath(full, beside if _within(full, beside) else CONFIG["folder"])


def plain_save(torch: Any) -> Any:
    """``torch.save`` as torch has it."""
    return getattr(torch.save, "__wrapped__", torch.save)


def record_saves(torch: Any) -> None:
    """torch's own writer opens files unseen by Python."""
    save = torch.save

    def saved(value: Any, target: Any, *a: Any, **k: Any) -> Any:
        path = target if isinstance(target, str | os.PathLike) else getattr(target, "name", None)
        if isinstance(path, str | os.PathLike):
            note("save")
            if path is target:
                own(path, _DROP)
                _wrote(path)
            full = os.path.abspath(path)
            RECORD["saves"][_named(full)] = full
        return save(value, target, *a, **k)

    saved.__wrapped__ = save  # type: ignore[attr-defined]
    torch.save = torch.serialization.save = saved


# ---------------------------------------------------------------- lines
class Lines:
    """A stream, with each line kept beside where it goes."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name, self._rest = stream, name, ""

    def write(self, text: str) -> int:
        self._rest += text
        *lines, self._rest = self._rest.split("\n")
        for line in lines:
            if line.strip() and os.getpid() == PID:
                shown = line.rstrip("\r")
                kind = "bar" if "\r" in shown else self._name  # a progress bar writes over itself
                note("bar" if kind == "bar" else "print")
                RECORD["lines"].append([where(), shown.rsplit("\r", 1)[-1][:400], kind])
        if self._rest.count("\r") > 1:
            self._rest = "\r" + self._rest.rsplit("\r", 1)[-1]
        written: int = self._stream.write(text)
        return written

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
