"""Statements: what a block looks like after insertions before and after, guards around, hoists and deletions.

A block is taken apart into pieces (one statement each, also where several share a line), put together again level by level
(each ``Enclose`` is a level), and lines that still can be shared are shared again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import libcst as cst

from dpmigrate.rewrite.anchors import Refused
from dpmigrate.rewrite.indentation import Level, moved_in, of_new_code
from dpmigrate.rewrite.lines import (
    Lines,
    Statement,
    blanks_below,
    has_comment,
    leading,
    merged,
    split_attached,
    with_leading,
)


@lru_cache(maxsize=512)
def parse_statements(code: str) -> tuple[Statement, ...]:
    """The statements that an edit gives as code; blank lines keep no indentation wherever they go."""
    try:
        module = cst.parse_module(code)
    except cst.ParserSyntaxError as error:
        raise Refused(f"the inserted code {code!r} does not parse") from error
    if not module.body:
        raise Refused(f"the inserted code {code!r} holds no statement")
    first = with_leading(module.body[0], (*module.header, *leading(module.body[0])))
    return tuple(of_new_code(statement) for statement in (first, *module.body[1:]))


def opened(header: str) -> Statement:
    """The statement that a header (``if …:``, ``with …:``) opens, always the same one."""
    (statement,) = parse_statements(f"{header}\n    pass\n")
    return statement


@dataclass(frozen=True)
class Hoisted:
    """Statements that compute what was taken out of the one below them, under a header if there is one."""

    statements: tuple[Statement, ...]
    header: str = ""


@dataclass
class Around:
    """What is to happen around one statement."""

    before: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    hoisted: list[Hoisted] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    delete: bool = False


@dataclass(frozen=True)
class Range:
    """Sibling statements that go under one header."""

    first: cst.CSTNode
    last: cst.CSTNode
    header: str


@dataclass
class _Piece:
    """One statement of a block: the node that anchors name, and the statement as it is now, on a line of its own."""

    anchor: cst.CSTNode
    statement: Statement
    line: cst.CSTNode | None = None  # the line that it shares
    semicolon: cst.Semicolon | cst.MaybeSentinel = cst.MaybeSentinel.DEFAULT


@dataclass
class _Out:
    """One statement of the new block, or a header with what stands under it."""

    leading: Lines
    piece: _Piece | None = None  # set where the statement is the file's own
    statement: Statement | None = None
    header: str = ""
    body: list[_Out] = field(default_factory=list)


Container = cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite


class Block:
    """Rebuilds the statements of one block."""

    def __init__(
        self,
        original: Container,
        updated: Container,
        around: dict[cst.CSTNode, Around],
        ranges: Sequence[Range],
        dead: set[cst.CSTNode],
        level: Level | None,
    ) -> None:
        self._around = around
        self._dead = dead
        self._indent = updated.indent if isinstance(updated, cst.IndentedBlock) else None
        self._level = level
        self._at_top = isinstance(updated, cst.Module)
        wanted = {*around, *(node for one in ranges for node in (one.first, one.last))}
        self._pieces = list(_pieces(original, updated, wanted))
        self._ranges = self._placed(ranges)
        self._pending: Lines | None = None  # the lines above deleted statements
        self._fresh = True  # nothing placed yet
        self._keep_last_comments()
        self._outs = self._arranged(0, len(self._pieces), self._ranges, nested=False)
        #: comment lines that stood above a deleted statement, with nothing left below them
        left = self._left_above()
        self.footer: Lines = left if left and has_comment(left) else ()

    def _left_above(self) -> Lines | None:
        return self._pending

    def statements(self) -> list[Statement]:
        """The new statements, each on a line of its own unless it shared one and still can."""
        return self._finished(self._outs)

    def on_one_line(self) -> list[cst.BaseSmallStatement] | None:
        """The statements of a one-line suite where they can stay on that line."""
        if any(out.piece is None for out in self._outs):
            return None
        return _joined([out.piece for out in self._outs if out.piece is not None])

    def _placed(self, ranges: Sequence[Range]) -> list[tuple[int, int, str]]:
        places = {piece.anchor: place for place, piece in enumerate(self._pieces)}
        found = []
        for one in ranges:
            first, last = places.get(one.first), places.get(one.last)
            if first is None or last is None or last < first:
                raise Refused("the statements to enclose are not siblings in order")
            found.append((first, last, one.header))
        return sorted(found, key=lambda place: (place[0], -place[1]))

    def _arranged(self, low: int, high: int, ranges: list[tuple[int, int, str]], *, nested: bool) -> list[_Out]:
        """The pieces from ``low`` to ``high``. What goes before the first and after the last of a level belongs outside its header."""
        outs: list[_Out] = []
        place = low
        while place < high:
            inside = [one for one in ranges if one[0] >= place]
            if inside and inside[0][0] == place:
                _, last, header = inside[0]
                core = self._arranged(place, last + 1, [one for one in inside[1:] if one[1] <= last], nested=True)
            else:
                last, header, core = place, "", self._piece(self._pieces[place])
            before = [] if nested and place == low else self._around_of(self._pieces[place]).before
            after = [] if nested and last == high - 1 else self._around_of(self._pieces[last]).after
            self._add(outs, before, core, header)
            outs += self._inserted(after, spaced=self._spacing(last))
            place = last + 1
        return outs

    def _around_of(self, piece: _Piece) -> Around:
        return self._around.get(piece.anchor) or Around()

    def _goes(self, piece: _Piece) -> bool:
        return self._around_of(piece).delete or piece.statement in self._dead

    def _keep_last_comments(self) -> None:
        """The comment at the end of a shared line stays when only the last statement of the line goes."""
        for place in range(len(self._pieces) - 1, 0, -1):
            piece, left = self._pieces[place], self._pieces[place - 1]
            if piece.line is not None and piece.line is left.line and self._goes(piece):
                assert isinstance(piece.statement, cst.SimpleStatementLine)
                left.statement = left.statement.with_changes(trailing_whitespace=piece.statement.trailing_whitespace)

    def _piece(self, piece: _Piece) -> list[_Out]:
        """The statement with what was hoisted out of it, or nothing where it goes."""
        lines = leading(piece.statement)
        if self._goes(piece):
            self._pending = lines if self._pending is None else merged(self._pending, lines, at_start=self._fresh)
            return []
        lines = self._with_pending(lines)
        outs = []
        for one in self._around_of(piece).hoisted:
            new = [_Out((), statement=statement) for statement in one.statements]
            new = [_Out((), header=one.header, body=new)] if one.header else new
            new[0].leading, lines = lines, ()
            outs += new
        comments = [cst.EmptyLine(comment=cst.Comment(text)) for text in self._around_of(piece).comments]
        return [*outs, _Out((*lines, *comments), piece=piece)]

    def _add(self, outs: list[_Out], before: Sequence[str], core: list[_Out], header: str) -> None:
        if not core:
            outs += self._inserted(before)
            return
        upper, attached = split_attached(core[0].leading)
        if before:
            repeated = [cst.EmptyLine(indent=False)] * len(blanks_below(upper)) if _is_definition(core[0]) else []
            core[0].leading = (*repeated, *attached)
            inserted = self._inserted(before)
            inserted[0].leading = (*upper, *inserted[0].leading)
            outs += inserted
        if not header:
            if core[0].header and outs and outs[-1].header == core[0].header and not before and not has_comment(core[0].leading):
                outs[-1].body += core.pop(0).body
            outs += core
        elif outs and outs[-1].header == header and not before and not has_comment(core[0].leading):
            outs[-1].body += core
        else:
            lines, core[0].leading = core[0].leading, ()
            outs.append(_Out(lines, header=header, body=core))

    def _inserted(self, codes: Sequence[str], spaced: int = 0) -> list[_Out]:
        outs = []
        for code in codes:
            for statement in parse_statements(code):
                lines = self._with_pending(leading(statement))
                outs.append(_Out((*[cst.EmptyLine(indent=False)] * spaced, *lines), statement=statement))
                spaced = 0
        return outs

    def _spacing(self, place: int) -> int:
        """How many blank lines stand below a definition."""
        if not isinstance(self._pieces[place].anchor, (cst.FunctionDef, cst.ClassDef)):
            return 0
        return 2 if self._at_top else 1

    def _with_pending(self, lines: Lines) -> Lines:
        pending, fresh = self._pending, self._fresh
        self._pending, self._fresh = None, False
        return lines if pending is None else merged(pending, lines, at_start=fresh)

    def _finished(self, outs: list[_Out]) -> list[Statement]:
        done: list[Statement] = []
        place = 0
        while place < len(outs):
            out = outs[place]
            run = [out]
            if out.piece is not None and out.piece.line is not None:
                while place + len(run) < len(outs) and _shares_line(outs[place + len(run)], out):
                    run.append(outs[place + len(run)])
            done.append(with_leading(self._statement(run), out.leading))
            place += len(run)
        return done

    def _statement(self, run: list[_Out]) -> Statement:
        out = run[0]
        if out.header:
            return self._headed(out)
        if out.piece is None:
            assert out.statement is not None
            return out.statement
        last = run[-1].piece
        assert last is not None
        if not isinstance(last.statement, cst.SimpleStatementLine) or out.piece.line is None:
            return out.piece.statement
        return last.statement.with_changes(body=_joined([one.piece for one in run if one.piece is not None]))

    def _headed(self, out: _Out) -> Statement:
        header = opened(out.header)
        statements = self._finished(out.body)
        assert self._level is not None, "whoever asks for a header says where the block stands"
        statements = [moved_in(statement, self._level, self._indent) for statement in statements]
        return header.with_changes(body=cst.IndentedBlock(statements, indent=self._indent))


def _pieces(original: Container, updated: Container, wanted: set[cst.CSTNode]) -> Iterator[_Piece]:
    """The statements one by one; a shared line of which nothing is ``wanted`` stays whole."""
    if isinstance(original, cst.SimpleStatementSuite) and isinstance(updated, cst.SimpleStatementSuite):
        yield from _apart(original, updated)
        return
    for old, new in zip(original.body, updated.body, strict=True):
        assert isinstance(new, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        if not isinstance(old, cst.SimpleStatementLine) or not isinstance(new, cst.SimpleStatementLine):
            yield _Piece(old, new)
        elif len(old.body) == 1:
            yield _Piece(old.body[0], new)
        elif wanted.isdisjoint(old.body):
            yield _Piece(old, new)
        else:
            yield from _apart(old, new)


_Shared = cst.SimpleStatementLine | cst.SimpleStatementSuite


def _apart(old: _Shared, new: _Shared) -> Iterator[_Piece]:
    """The statements of a shared line; the last one keeps the comment at its end."""
    for place, (anchor, small) in enumerate(zip(old.body, new.body, strict=True)):
        lines = new.leading_lines if place == 0 and isinstance(new, cst.SimpleStatementLine) else ()
        last = place == len(old.body) - 1
        trailing = new.trailing_whitespace if last else cst.TrailingWhitespace()
        bare = small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        yield _Piece(anchor, cst.SimpleStatementLine([bare], lines, trailing), old, small.semicolon)


def _joined(pieces: Sequence[_Piece]) -> list[cst.BaseSmallStatement]:
    """Statements that shared a line, for one line: a semicolon at its end stays only where the file had it there."""
    smalls = []
    for piece in pieces:
        assert isinstance(piece.statement, cst.SimpleStatementLine)
        assert isinstance(piece.line, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
        keep = piece is not pieces[-1] or piece.anchor is piece.line.body[-1]
        smalls.append(piece.statement.body[0].with_changes(semicolon=piece.semicolon if keep else cst.MaybeSentinel.DEFAULT))
    return smalls


def _shares_line(out: _Out, first: _Out) -> bool:
    return out.piece is not None and first.piece is not None and out.piece.line is first.piece.line


def _is_definition(out: _Out) -> bool:
    return out.piece is not None and isinstance(out.piece.anchor, (cst.FunctionDef, cst.ClassDef))
