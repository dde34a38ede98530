"""What goes to the terminal: lines, JSON, progress, and a pipe that is closed early.

Imports of the reports stand inside the functions, so that a command starts in a few times the time of Python itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmigrate.model import Outcome

#: from this many files on, a terminal gets a progress bar
MANY = 50


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
    """Raw to stdout, in its encoding; a character that it lacks is escaped, never an error."""
    stream = sys.stdout
    stream.write(text.encode(stream.encoding or "utf-8", "backslashreplace").decode(stream.encoding or "utf-8"))


def document(outcomes: Sequence[Outcome]) -> None:
    """The outcomes as JSON."""
    from dpmigrate.report import machine

    out(machine.document(outcomes))


def closed_pipe(code: int = 0) -> int:
    """Point stdout at nothing, so that Python's own flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
