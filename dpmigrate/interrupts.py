"""SIGINT and SIGTERM: they end a command at once while it reads, and between two programs while it writes.

A signal that arrives while the files of a program are written is held until they are whole; one that comes a second time is not. What that leaves
half done is finished by the next run (``transaction``).
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

#: what a user, a scheduler or a terminal that is closed sends
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Interrupted(KeyboardInterrupt):
    """A signal has asked for the end; ``code`` is the exit code that shells give to it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


class _State:
    depth = 0
    waiting: int | None = None


def listen() -> None:
    """Turn the signals into ``Interrupted``; one that the caller ignores (nohup) stays ignored. Only the main thread may do so."""
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _received)


def _received(number: int, frame: FrameType | None) -> None:
    if _State.depth and _State.waiting is None:
        _State.waiting = number
        return
    _State.waiting = None
    raise Interrupted(number)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Within, the first signal waits; it is raised on leaving the outermost one."""
    _State.depth += 1
    try:
        yield
    finally:
        _State.depth -= 1
        if not _State.depth:
            _raise_waiting()


@contextlib.contextmanager
def released() -> Iterator[None]:
    """Within ``held``, a part that may be ended at once; a signal that has been waiting is raised first."""
    depth, _State.depth = _State.depth, 0
    try:
        _raise_waiting()
        yield
    finally:
        _State.depth = depth


def _raise_waiting() -> None:
    number, _State.waiting = _State.waiting, None
    if number is not None:
        raise Interrupted(number)
