"""The nouns that travel between the rooms: where something stands, what was found, what will be done, what came of it."""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpmigrate.edit import Edit


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A piece of source as ``ast`` counts: lines from 1, columns from 0 in UTF-8 bytes, end exclusive."""

    line: int
    col: int
    end_line: int
    end_col: int

    def covers(self, other: Span) -> bool:
        """Whether the other piece lies in this one, or is the same."""
        return (self.line, self.col) <= (other.line, other.col) and (other.end_line, other.end_col) <= (self.end_line, self.end_col)

    @classmethod
    def of(cls, node: ast.AST) -> Span:
        """The exact span that ``ast`` gives for the node."""
        return cls(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


class Severity(enum.Enum):
    """How bad it is to run the program under DDP as it stands."""

    BLOCKER = "blocker"  # the program is not migrated at all
    ERROR = "error"  # wrong numbers, a hang or a crash
    WARNING = "warning"  # may be wrong, depends on something the tool cannot see
    NOTE = "note"  # right, but the user should know


class Fix(enum.Enum):
    """What ``apply`` does about a finding."""

    SAFE = "safe"  # applied
    NONE = "none"  # told, never touched


def is_main_guard(node: ast.AST) -> bool:
    """``if __name__ == "__main__":``"""
    return isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a rule has to say about one place of one file."""

    code: str
    span: Span
    message: str
    severity: Severity
    edits: tuple[Edit, ...] = ()
    fix: Fix = Fix.NONE
    advice: str = ""  # what the user can do, or must know of a change
    of_means: bool = False  # it says nothing where the result is shown to be right, and every loss to be a mean over the samples


def left(found: Sequence[Finding]) -> list[Finding]:
    """What apply leaves to the user."""
    return [f for f in found if not f.edits and f.severity in (Severity.ERROR, Severity.WARNING)]


def blockers(found: Sequence[Finding]) -> list[Finding]:
    """What stands in the way of a migration."""
    return [f for f in found if f.severity is Severity.BLOCKER]


def alone(found: Sequence[Finding]) -> list[Finding]:
    """What keeps several ranks from starting, whatever else is mended: a batch size that they do not divide."""
    return [f for f in found if f.code == "DPM202" and f.severity is Severity.WARNING]


class Status(enum.Enum):
    """What became of one file."""

    CLEAN = "clean"  # nothing to say
    FINDINGS = "findings"  # check: something was found
    CHANGED = "changed"  # apply: rewritten (or would be, with --diff)
    UNCHANGED = "unchanged"  # apply: nothing to do, the reason says why
    REFUSED = "refused"  # left byte-identical, the findings or the reason say why; check: where that is known without any finding
    FAILED = "failed"  # unreadable, unparsable or unwritable


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file could not be read, parsed or written; ``line`` and ``col`` where known (from 1)."""

    message: str
    line: int | None = None
    col: int | None = None


@dataclass(frozen=True, slots=True)
class File:
    """One file in a result: what is said of it (lines are the file's own), its text with the newlines as they are, and its new text where it changes.

    ``edited``: what was found in the program brings edits to the file, also where none are carried out. ``data`` are both texts as the bytes of the file,
    in its encoding, where it changes.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    before: str = ""
    after: str | None = None
    edited: bool = False
    data: tuple[bytes, bytes] | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """A line of a file beside the program that starts it as it was started so far, and the command that takes its place."""

    path: str
    line: int
    command: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one program, by the path of the script that starts it; everything a report needs.

    ``files`` are those of which something is said or that change, the script among them, first.
    """

    path: str
    status: Status
    files: tuple[File, ...] = ()
    reason: str = ""
    problem: Problem | None = None
    notes: tuple[str, ...] = field(default=())  # what changed in meaning, for the end of the report
    starts: tuple[Start, ...] = ()  # where the program is started, with the new commands
    module: str = ""  # what python -m calls the script, where it is started as a module of its package
    folder: str = ""  # from where, if that is not the current one
    unread: tuple[tuple[str, Problem], ...] = ()  # files beside the program that could not be read: whether they start it is not known

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in all files."""
        return tuple(f for file in self.files for f in file.findings)

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that change, or that apply would change after a check; the script first where it is one."""
        if self.status is Status.FINDINGS:
            return () if blockers(self.findings) else tuple(file.path for file in self.files if file.edited)
        return tuple(file.path for file in self.files if file.after is not None)

    @property
    def before(self) -> str:
        """The script as it is; '' where it could not be read, or holds nothing for us."""
        return self.files[0].before if self.files else ""

    @property
    def after(self) -> str | None:
        """The new text of the script; None where it stays."""
        return self.files[0].after if self.files else None
