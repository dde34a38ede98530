"""Where a rank is: the last collective of this package that it called, and the calling line.

A note costs microseconds and touches neither file nor network. ``_watch`` reads it when
something has gone wrong.
"""

from __future__ import annotations

import functools
import linecache
import os
import sys
import sysconfig
import threading
import time
import zlib
from types import FrameType, TracebackType
from typing import Final, NamedTuple

#: modules that stand between a collective and the line of the program that called it
_BETWEEN: Final = frozenset({"dpmigrate_runtime", "torch", "contextlib", "functools"})


class Place(NamedTuple):
    """A call of a collective: name, the caller's file, function and line, whether it is under way.

    ``since``: ``time.monotonic()`` when that last changed.
    """

    name: str
    file: str
    function: str
    line: int
    waiting: bool
    since: float

    @property
    def where(self) -> str:
        """``ddp.sum_all (train.py:41)``"""
        return f"{self.name} ({_short(self.file)}:{self.line})"


class _Here:
    """This rank's last place, replaced as a whole: the thread that reads it never sees half of one.

    ``depth`` counts the collectives that are under way inside each other.
    """

    def __init__(self) -> None:
        self.now: Place | None = None
        self.depth = 0


HERE: Final = _Here()


class meeting:
    """Inside the ``with`` this rank waits for the others, in the collective of that name.

    Collectives that are called inside keep the name and the line of the outer one.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        if not HERE.depth:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and _package(frame) in _BETWEEN:
                frame = frame.f_back
            where = ("?", "?", 0)
            if frame is not None:
                code = frame.f_code
                where = (code.co_filename, code.co_qualname, frame.f_lineno)
            HERE.now = Place(self.name, *where, True, time.monotonic())
        HERE.depth += 1

    def __exit__(self, *exc_info: object) -> None:
        HERE.depth -= 1
        if not HERE.depth and HERE.now is not None:
            HERE.now = Place(*HERE.now[:4], False, time.monotonic())


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


@functools.lru_cache(maxsize=4096)
def _number(text: str) -> int:
    return zlib.crc32(text.encode())


def signature() -> tuple[int, int, int]:
    """Numbers for the collective, its function and its line, alike on all ranks at one call."""
    now = HERE.now
    if now is None:
        return 0, 0, 0
    # without the folder: machines of one job may have the program in different ones
    file = os.path.basename(now.file)
    return _number(now.name), _number(f"{file}:{now.function}"), _number(f"{file}:{now.line}")


def sentence(ended: str = "") -> str:
    """What this rank does, for the others: ``waits in ddp.sum_all (train.py:41), for 5 s``.

    ``ended``: how it ended, if it has.
    """
    now = HERE.now
    last = "it has called no collective" if now is None else f"its last collective was {now.where}"
    if ended:
        return f"{ended}; {last}"
    if now is not None and now.waiting:
        return f"waits in {now.where}, for {time.monotonic() - now.since:.0f} s"
    since = "" if now is None else f", {time.monotonic() - now.since:.0f} s ago"
    return f"is at {_current()}; {last}{since}"


def _current() -> str:
    """The line of the program at which the main thread is."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return line_of(frame)


def line_of(frame: FrameType | None, trace: TracebackType | None = None) -> str:
    """The innermost line of the program in a stack or traceback: ``train.py:44: loss.backward()``.

    Where none of the lines is of the program, it is the innermost of all.
    """
    lines: list[tuple[str, int]] = []
    while frame is not None:
        lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    while trace is not None:
        lines.insert(0, (trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    if not lines:
        return "a place that is not known"
    file, line = next(((file, line) for file, line in lines if _is_program(file)), lines[0])
    text = linecache.getline(file, line).strip()
    return f"{_short(file)}:{line}" + (f": {text[:100]}" if text else "")


@functools.lru_cache(maxsize=1024)
def _is_program(file: str) -> bool:
    folders = os.path.abspath(file).split(os.sep)
    if file.startswith("<") or not {"site-packages", "dist-packages"}.isdisjoint(folders):
        return False
    others = (sysconfig.get_path("stdlib"), os.path.dirname(os.path.abspath(__file__)))
    return not any(os.path.abspath(file).startswith(os.path.join(folder, "")) for folder in others)


def _short(file: str) -> str:
    """Relative to the current folder where it lies in it."""
    inside = os.path.join(os.path.abspath(os.curdir), "")
    whole = os.path.abspath(file)
    return whole.removeprefix(inside) if whole.startswith(inside) else file
