"""What apply changes, as a unified diff: bytes for git and patch, lines for people."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dpmigrate.model import Outcome
from dpmigrate.report.plain import safe
from dpmigrate.report.text import Style

_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_NO_NEWLINE = "\\ No newline at end of file"


def patch(outcome: Outcome) -> bytes:
    """The diff of exactly what is written: the files' own bytes, so that ``git apply`` or ``patch -p1`` makes the same of them as ``apply``."""
    out = bytearray()
    for file in outcome.files:
        if file.after is not None and file.data is not None:
            before, after = (data.decode("latin-1") for data in file.data)  # a character a byte
            lines = [f"{line}\n" for line in _unified(before, after)]
            head = f"--- {_name('a', file.path)}\n+++ {_name('b', file.path)}\n" if lines else ""
            out += os.fsencode(head) + "".join(lines).encode("latin-1")
    return bytes(out)


def shown(outcome: Outcome, style: Style) -> Iterator[str]:
    """The same for a terminal: control characters escaped, tabs as spaces, in colour."""
    for file in outcome.files:
        if file.after is None:
            continue
        yield from (style.paint(f"{sign} {safe(_plain(side, file.path))}", code) for sign, side, code in (("---", "a", "31"), ("+++", "b", "32")))
        for line in _unified(file.before, file.after):
            code = "32" if line.startswith("+") else "31" if line.startswith("-") else "36" if line.startswith("@") else ""
            text = safe(line.removesuffix("\r").expandtabs(4))
            yield style.paint(text, code) if code else text


def _unified(before: str, after: str) -> Iterator[str]:
    """The hunks without newlines. Lines end with a newline and nothing else, as git and patch have it: a form feed or a lone CR stands within one."""
    import difflib  # here, so that a check does not pay for it

    for line in list(difflib.unified_diff(_lines(before), _lines(after)))[2:]:
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _NO_NEWLINE


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    return [f"{line}\n" for line in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _plain(side: str, path: str) -> str:
    return f"{side}/{os.path.normpath(path).lstrip('/')}"


def _name(side: str, path: str) -> str:
    """The name for a header, as git writes it: in quotes and with escapes where it could be misread, with a tab behind one that holds a space."""
    name = _plain(side, path)
    if name.isprintable() and not set(name) & {'"', "\\"}:
        return f"{name}\t" if " " in name else name
    quoted = (chr(b) if 32 <= b < 127 and b not in _ESCAPES else _ESCAPES.get(b, f"\\{b:03o}") for b in os.fsencode(name))
    return f'"{"".join(quoted)}"'
