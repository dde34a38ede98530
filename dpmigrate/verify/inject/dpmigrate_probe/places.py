"""Where in the program's own files something happens.

What a library does belongs to the line of the program that called it.
"""

from __future__ import annotations

import os
import sys
from types import FrameType

from dpmigrate_probe.state import CONFIG, PID, STATE

#: code file -> its name seen from the script's folder, None for what is not the program's
_NAMES: dict[str, str | None] = {}


def note(kind: str) -> None:
    """Record that an event of this kind happens here, with file and line.

    Nothing is recorded where no line of the program is under way (a hook of the interpreter's end)
    and in processes that the program has started.
    """
    place = here(sys._getframe(1))
    if place is not None and os.getpid() == PID:
        STATE["places"].add((kind, *place))


def here(frame: FrameType | None) -> tuple[str, int] | None:
    """File and line of the innermost frame that is the program's own."""
    while frame is not None:
        name = named(frame)
        if name is not None:
            return name, frame.f_lineno
        frame = frame.f_back
    return None


def named(frame: FrameType) -> str | None:
    """The program's file that a frame runs, seen from the script's folder; None for other code."""
    code = frame.f_code.co_filename
    if code not in _NAMES:
        _NAMES[code] = _name(code)
    return _NAMES[code]


def _name(code: str) -> str | None:
    full, root = os.path.abspath(code), CONFIG["root"]
    if not os.path.isfile(full) or os.path.commonpath([full, root]) != root:
        return None
    return os.path.relpath(full, os.path.dirname(CONFIG["script"]))
