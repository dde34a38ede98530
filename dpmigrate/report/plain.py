"""The user's text made safe for a terminal and a log."""

from __future__ import annotations

import unicodedata

_BREAKING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def safe(text: str) -> str:
    """Control characters, bidirectional overrides and line breaks escaped; tabs become spaces so that carets stay in place."""
    return "".join(
        c if c == " " or unicodedata.category(c) not in _BREAKING else " " if c == "\t" else c.encode("unicode_escape").decode() for c in _printable(text)
    )


def _printable(text: str) -> str:
    """File names may hold bytes that are no text: they come as lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
