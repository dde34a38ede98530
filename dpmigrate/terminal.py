"""What goes to the terminal: lines, JSON, diffs, progress; and what becomes of output that nobody takes.

Imports of the reports stand inside the functions, so that a command starts in a few times the time of Python itself.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmigrate.model import Outcome

#: from this many files on, a terminal gets a progress bar
MANY = 50
#: what shells say of a program that a closed pipe has ended (128 + SIGPIPE)
CLOSED_PIPE = 141


class Unwritable(Exception):
    """Standard output takes no more; ``code`` is the exit code for that."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.code = CLOSED_PIPE if error.errno == errno.EPIPE else 2


class _Missing(io.StringIO):
    """In the place of a standard output that the caller has closed."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


def prepare() -> None:
    """Make sure that there are three standard streams.

    In the place of one that the caller has closed, the next file that is opened would get its number, and what is meant for the terminal would go into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    sys.stdout = sys.stdout or _Missing()
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def progress(outcomes: Iterator[Outcome], total: int) -> Iterator[Outcome]:
    """The outcomes as they come, with a bar on stderr where a person waits for many."""
    if total < MANY or not sys.stderr.isatty():
        yield from outcomes
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(outcomes, "Reading", total, console=Console(stderr=True), transient=True)


def style() -> tuple[Any, bool]:
    """Colours, and whether a person is looking at a terminal."""
    from dpmigrate.report import text

    watched = sys.stdout.isatty()
    return text.Style(watched and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"), watched


def lines(texts: Iterable[str]) -> None:
    """Each text on a line of its own."""
    for line in texts:
        out(line + "\n")


def out(text: str) -> None:
    """Raw to stdout, in its encoding; a character that it lacks is escaped, never an error. Unwritable where that fails."""
    raw(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def raw(data: bytes) -> None:
    """Bytes to stdout as they are. Unwritable where that fails."""
    try:
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            sys.stdout.write(data.decode(sys.stdout.encoding or "utf-8", "replace"))
        else:
            sys.stdout.flush()
            _whole(buffer, data)
    except OSError as e:
        raise Unwritable(e) from e


def _whole(buffer: IO[bytes], data: bytes) -> None:
    """Write everything, also into a pipe that does not block and is full for the moment."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[buffer.write(rest) :]
        except BlockingIOError as e:
            rest = rest[e.characters_written :]
            select.select([], [buffer], [])


def note(*texts: str) -> None:
    """Lines to stderr. Where that takes none, there is nobody left to tell."""
    with contextlib.suppress(OSError):
        print(*texts, sep="\n", file=sys.stderr, flush=True)


def document(outcomes: Sequence[Outcome]) -> None:
    """The outcomes as JSON."""
    from dpmigrate.report import machine

    out(machine.document(outcomes))


def diff(outcome: Outcome) -> None:
    """What is written, as a diff: for a program that reads it the files' own bytes, on a terminal made safe to look at."""
    from dpmigrate.report import changes

    if sys.stdout.isatty():
        lines(changes.shown(outcome, style()[0]))
    else:
        raw(changes.patch(outcome))


def flush() -> None:
    """Write what is still held. Unwritable where that fails."""
    while True:
        try:
            sys.stdout.flush()
            return
        except BlockingIOError:
            select.select([], [sys.stdout], [])
        except OSError as e:
            raise Unwritable(e) from e


def abandon() -> None:
    """Point stdout at nothing, so that Python's own flush at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
