"""Whether two forms of paths may be those of one file.

A form has holes in braces for what is not known. Two of them may be one path where they agree but for
their holes, each of which may be any text without a slash; a path that begins with a hole is another
one than a path that begins with something else.
"""

from __future__ import annotations

import re
from functools import lru_cache

_HOLE = re.compile(r"\{[^{}]*\}")


def is_hole(form: str) -> bool:
    """Whether nothing of a path is known."""
    return _HOLE.fullmatch(form) is not None


@lru_cache(8192)
def overlap(one: str, other: str) -> bool:
    """Whether two forms may be those of one file."""
    if one == other:
        return True
    a, b = _pieces(one), _pieces(other)
    if len(a) != len(b):
        return False
    if (_HOLE.match(a[0]) or _HOLE.match(b[0])) and a[0] != b[0] and len(a) > 1:
        return False
    if len(a) == 1 and (is_hole(one) or is_hole(other)):
        return False  # of a path of which nothing is known nothing is said
    return all(x == y or _unify(x, y) for x, y in zip(a, b, strict=True))


@lru_cache(8192)
def within(path: str, folder: str) -> bool:
    """Whether a path may be in a folder, however deep."""
    a, b = _pieces(path), _pieces(folder)
    return len(a) > len(b) and overlap("/".join(a[: len(b)]), folder)


def _pieces(form: str) -> list[str]:
    """The parts of a path; slashes in holes are parts of these."""
    return re.sub(r"\{[^{}]*\}", lambda m: m[0].replace("/", "\0"), form).split("/")


def _unify(x: str, y: str) -> bool:
    """Whether two parts of paths may be one text, where each hole may be any."""
    return _matches(_tokens(x), _tokens(y))


def _tokens(part: str) -> tuple[str, ...]:
    return tuple("*" if t.startswith("{") else t for t in re.findall(r"\{[^{}]*\}|.", part, re.S))


@lru_cache(8192)
def _matches(x: tuple[str, ...], y: tuple[str, ...]) -> bool:
    if not x or not y:
        return all(t == "*" for t in (*x, *y))
    if x[0] == "*" or y[0] == "*":
        return (x[0] == "*" and (_matches(x[1:], y) or _matches(x, y[1:]))) or (y[0] == "*" and (_matches(x, y[1:]) or _matches(x[1:], y)))
    return x[0] == y[0] and _matches(x[1:], y[1:])
