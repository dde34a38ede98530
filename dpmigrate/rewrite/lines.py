"""The blank lines and comments above a statement, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import libcst as cst

Lines = tuple[cst.EmptyLine, ...]
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_S = TypeVar("_S", cst.SimpleStatementLine, cst.BaseCompoundStatement, Statement)


def split_lines(text: str) -> list[str]:
    """The lines with their ends, as Python counts them: a form feed or a Unicode separator ends none."""
    return _LINE.findall(text)


def leading(statement: Statement) -> Lines:
    """The lines above the statement that belong to it."""
    return tuple(statement.leading_lines)


def with_leading(statement: _S, lines: Sequence[cst.EmptyLine]) -> _S:
    """The statement with other lines above it; the same object where nothing changes."""
    if tuple(statement.leading_lines) == tuple(lines):
        return statement
    return statement.with_changes(leading_lines=tuple(lines))


def has_comment(lines: Lines) -> bool:
    """Whether any of the lines is a comment."""
    return any(line.comment is not None for line in lines)


def split_attached(lines: Sequence[cst.EmptyLine]) -> tuple[Lines, Lines]:
    """The lines, and below them the comments that stand directly above the statement."""
    place = len(lines)
    while place and lines[place - 1].comment is not None:
        place -= 1
    return tuple(lines[:place]), tuple(lines[place:])


def blanks_below(lines: Lines) -> Lines:
    """The blank lines at the end."""
    place = len(lines)
    while place and lines[place - 1].comment is None:
        place -= 1
    return lines[place:]


def merged(above: Lines, own: Lines, *, at_start: bool = False) -> Lines:
    """The lines above a deleted statement and those of the next one: every comment, and blank lines once."""
    if has_comment(above):
        return (*above, *own)
    place = 0
    while place < len(own) and own[place].comment is None:
        place += 1
    blank = above if at_start or len(above) > place else own[:place]
    return (*blank, *own[place:])


def split_header(header: Sequence[cst.EmptyLine]) -> tuple[Lines, Lines]:
    """The top of the file, and the comments of its first statement: those after a blank line (libcst gives all to the module)."""
    top, attached = split_attached(header)
    return (top, attached) if top else (attached, ())
