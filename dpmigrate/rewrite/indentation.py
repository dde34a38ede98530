"""Statements that move into a block or out of one.

libcst writes the indentation of most lines anew, so a statement under a new header moves to the right by itself. Three things
it gets wrong or leaves behind: lines of white space only, which would change although nothing stands on them; the lines after a
backslash, which would stay where they were; line breaks in the braces of an f-string, which may be part of its value (``{x = }``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from dpmigrate.rewrite.anchors import Site
from dpmigrate.rewrite.lines import Statement

_CONTINUED = re.compile(r"(\\(?:\r\n|\r|\n))([ \t\f]*)")


@dataclass(frozen=True, slots=True)
class Level:
    """What the lines of a block begin with, and the indentation of blocks that have none of their own."""

    text: str
    default: str

    @classmethod
    def of(cls, site: Site) -> Level:
        """The level of the block in which a node stands."""
        module = site.ancestors[0]
        assert isinstance(module, cst.Module)
        return cls(site.indentation, module.default_indent)


def moved_in(statement: Statement, level: Level, step: str | None) -> Statement:
    """A statement of a block of this level, prepared for a new block in it that is indented by ``step``."""
    width, more = len(level.text), level.default if step is None else step
    return _moved(statement, level, lambda space: level.text + more + space[width:])


def moved_out(statement: Statement, level: Level, step: str | None) -> Statement:
    """What ``moved_in`` has prepared, for its old block again."""
    width, more = len(level.text), len(level.default if step is None else step)
    return _moved(statement, level, lambda space: level.text + space[width + more :])


def of_new_code(statement: Statement) -> Statement:
    """A statement that no file holds yet: its blank lines stay empty wherever it goes."""
    return _moved(statement, Level("", ""), lambda space: space)


def _moved(statement: Statement, level: Level, shifted: Callable[[str], str]) -> Statement:
    moved = statement.visit(_Move(level, shifted))
    assert isinstance(moved, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return moved


class _Move(cst.CSTTransformer):
    """Keeps what must not move; ``shifted`` gives what begins a line after a backslash, of those that begin as the block does."""

    def __init__(self, level: Level, shifted: Callable[[str], str]) -> None:
        super().__init__()
        self.levels = [level.text]
        self.default = level.default
        self.shifted = shifted
        self.strings = 0

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._into(node)

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        self.levels.pop()
        return updated_node

    def visit_Match_cases(self, node: cst.Match) -> None:  # the lines above a match are not indented by it
        self._into(node)

    def leave_Match_cases(self, node: cst.Match) -> None:
        self.levels.pop()

    def visit_Match_footer(self, node: cst.Match) -> None:
        self._into(node)

    def leave_Match_footer(self, node: cst.Match) -> None:
        self.levels.pop()

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        self.strings += 1

    def leave_FormattedString(self, original_node: cst.FormattedString, updated_node: cst.FormattedString) -> cst.FormattedString:
        self.strings -= 1
        return updated_node

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:
        if not updated_node.indent or (updated_node.comment is not None and not self.strings):
            return updated_node
        return updated_node.with_changes(indent=False, whitespace=self._written(updated_node.whitespace))

    def leave_ParenthesizedWhitespace(
        self, original_node: cst.ParenthesizedWhitespace, updated_node: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        if not self.strings or not updated_node.indent:
            return updated_node
        return updated_node.with_changes(indent=False, last_line=self._written(updated_node.last_line))

    def leave_SimpleWhitespace(self, original_node: cst.SimpleWhitespace, updated_node: cst.SimpleWhitespace) -> cst.SimpleWhitespace:
        if self.strings or "\\" not in updated_node.value:
            return updated_node
        return updated_node.with_changes(value=_CONTINUED.sub(self._continued, updated_node.value))

    def _into(self, block: cst.IndentedBlock | cst.Match) -> None:
        self.levels.append(self.levels[-1] + (self.default if block.indent is None else block.indent))

    def _written(self, space: cst.SimpleWhitespace) -> cst.SimpleWhitespace:
        """The whole beginning of the line, where libcst would put the current indentation before it."""
        return space.with_changes(value=self.levels[-1] + space.value)

    def _continued(self, match: re.Match[str]) -> str:
        newline, space = match.groups()
        return newline + (self.shifted(space) if space.startswith(self.levels[0]) else space)
