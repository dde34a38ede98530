"""One program: the script that is started and the files of its own that it imports, as one text.

The lines of the files are counted through, in the order in which Python runs them (what is imported comes first, the script last), so that a
position says of which file it is, and what stands before what is asked as in one file.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

from dpmigrate.lines import Lines
from dpmigrate.model import Problem, Span, is_main_guard
from dpmigrate.source import Source

#: a kind of node
N = TypeVar("N", bound=ast.AST)

#: what the import statements mean: (index of the file, dotted name as it stands there) -> index of the file that it names
Links = Mapping[tuple[int, str], int]


@dataclass(frozen=True, eq=False)
class Part:
    """A file of a program: what of it runs there, with the positions of the program; ``first`` lines of the program stand before it.

    ``word`` is the last one of the module's name. ``former`` is the text that a rewritten file had before: people know the lines of that one.
    """

    source: Source
    tree: ast.Module
    first: int = 0
    word: str = ""
    former: str | None = None

    @cached_property
    def _lines(self) -> list[bytes]:
        # ast counts \n, \r and \r\n as ends of lines, and nothing else
        return self.source.text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "surrogatepass").split(b"\n")

    @property
    def end(self) -> int:
        """The lines of the program up to the end of this file."""
        return self.first + len(self._lines)

    def text(self, span: Span) -> str:
        """What stands at a span of the program that lies in this file, with plain newlines."""
        lines = self._lines[span.line - self.first - 1 : span.end_line - self.first]
        lines[-1] = lines[-1][: span.end_col]
        lines[0] = lines[0][span.col :]
        return b"\n".join(lines).decode("utf-8", "surrogatepass")

    def line(self, line: int) -> int:
        """The line of the file, as people see it, that a line of the program is in: of a rewritten file that of its former text."""
        own = line - self.first
        return own if self._moved is None else self._moved.place(own)

    @cached_property
    def _moved(self) -> Lines | None:
        return None if self.former is None else Lines(self.former, self.source.text)

    def own(self, span: Span) -> Span:
        """The span as the file alone counts."""
        return Span(span.line - self.first, span.col, span.end_line - self.first, span.end_col)


def placed(source: Source, first: int, *, main: bool, word: str = "", former: str | None = None) -> Part:
    """A file with its place in a program; where it is imported, the block of its main guard does not run and is left out.

    The statements are the source's own, moved to their new lines: a source has one place only.
    """
    tree = ast.Module([s for s in source.tree.body if main or not is_main_guard(s)], [])
    if first:
        ast.increment_lineno(tree, first)
    return Part(source, tree, first, word, former)


@dataclass(frozen=True, slots=True)
class Absent:
    """An import of the program's own that cannot be followed: ``dotted`` as the statement writes it, in the file of this index.

    ``path`` is what is missing, or the file that could not be read; ``why`` says so in words.
    """

    part: int
    dotted: str
    path: str
    why: str


@dataclass(frozen=True, eq=False)
class Program:
    """The files of a program, the script that is started last, and what their imports mean.

    ``unread`` are files that the program imports and that could not be parsed, with what is wrong; ``computed`` the words of modules that it imports
    by a computed name; ``absent`` its own modules that are not there; ``closed`` are files that it imports and that could not be read at all.
    """

    parts: tuple[Part, ...]
    links: Links = field(default_factory=dict)
    unread: tuple[tuple[str, Problem], ...] = ()
    computed: frozenset[str] = frozenset()
    absent: tuple[Absent, ...] = ()
    closed: tuple[tuple[str, Problem], ...] = ()

    @classmethod
    def of(cls, source: Source) -> Program:
        """A script by itself."""
        return cls((Part(source, source.tree),))

    @property
    def entry(self) -> Source:
        """The script that is started."""
        return self.parts[-1].source

    @property
    def imported(self) -> tuple[ast.Module, ...]:
        """The modules that the script imports, in the order in which they run."""
        return tuple(p.tree for p in self.parts[:-1])

    @cached_property
    def _by_kind(self) -> Mapping[type[ast.AST], Sequence[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for part in self.parts:
            for node in ast.walk(part.tree):
                found.setdefault(type(node), []).append(node)
        return found

    def every(self, kind: type[N]) -> Sequence[N]:
        """All nodes of one kind, file by file; of each file those first that stand in fewer others."""
        return cast("Sequence[N]", self._by_kind.get(kind, ()))

    @cached_property
    def _firsts(self) -> list[int]:
        return [p.first for p in self.parts]

    def part(self, span: Span) -> Part:
        """The file in which the span lies."""
        return self.parts[bisect_right(self._firsts, span.line - 1) - 1]

    def text(self, span: Span) -> str:
        """What stands at the span."""
        return self.part(span).text(span)

    def place(self, line: int) -> str:
        """A line of the program as editors write it: ``utils.py:12``."""
        part = self.part(Span(line, 0, line, 0))
        return f"{part.source.name}:{part.line(line)}"

    def where(self, span: Span) -> str:
        """The place for people, seen from the script: ``line 12``, or ``utils.py, line 12``."""
        part = self.part(span)
        line = f"line {part.line(span.line)}"
        return line if part is self.parts[-1] else f"{part.source.name}, {line}"
