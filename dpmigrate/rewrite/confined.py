"""Lines of the file that no edit names must all be there, unchanged and in order, with nothing new between them.

Not a diff: a diff may align equal lines (blank ones, a lone bracket) at the wrong place and so accuse a right result. Here the lines
of the old text that must stay are looked up in the new one, run by run; between two runs anything may stand, within one nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from dpmigrate.edit import AddImport, After, Before, Comment, Delete, Edit, Enclose, First, Hoist
from dpmigrate.model import Span
from dpmigrate.rewrite.compose import Plan, span_of
from dpmigrate.rewrite.lines import split_lines


def strayed(before: str, after: str, plan: Plan) -> tuple[str, ...]:
    """One sentence for the first line that changed though no edit names it."""
    old, new = _lines(before), _lines(after)
    deleted = [edit.stmt for edit in plan.edits if isinstance(edit, Delete)]
    freedom = _Freedom(old, ast.parse(before), deleted)
    for edit in plan.edits:
        freedom.grant(edit)
    freedom.grant_deleted()
    cursor = 0
    for start, end in freedom.kept_runs():
        place = _find(new, old[start:end], cursor, fixed_start=start == 0 and not freedom.gaps[0], fixed_end=end == len(old) and not freedom.gaps[end])
        if place is None:
            return (f"line {start + 1}{f' to {end}' if end > start + 1 else ''}: changed, or something new stands beside it, though no edit names it",)
        cursor = place + end - start
    return ()


def _lines(text: str) -> list[str]:
    """The lines with their ends; a last line without one counts as if it had."""
    lines = split_lines(text)
    if lines and not lines[-1].endswith(("\r", "\n")):
        lines[-1] += lines[0][len(lines[0].rstrip("\r\n")) :] if len(lines) > 1 else "\n"
    return lines


def _find(lines: Sequence[str], run: Sequence[str], cursor: int, *, fixed_start: bool, fixed_end: bool) -> int | None:
    """Where the run stands, at the cursor or below it."""
    last = len(lines) - len(run)
    first = last if fixed_end else cursor
    for place in range(first, (cursor if fixed_start else last) + 1):
        if place >= cursor and lines[place : place + len(run)] == run:
            return place
    return None


class _Freedom:
    """Which lines may change, and before which ones something new may stand (indices from 0)."""

    def __init__(self, lines: Sequence[str], tree: ast.Module, deleted: Iterable[Span]) -> None:
        self._lines = lines
        self._tree = tree
        self._statements = {(node.lineno, node.col_offset): node for node in ast.walk(tree) if isinstance(node, ast.stmt)}
        self._deleted = {self._statements[span.line, span.col] for span in deleted}
        self.touched = [False] * len(lines)
        self.gaps = [False] * (len(lines) + 1)

    def kept_runs(self) -> Iterator[tuple[int, int]]:
        """Runs of lines that stay and stay together."""
        start = 0
        for place in range(1, len(self._lines) + 1):
            if place == len(self._lines) or self.gaps[place] or self.touched[place] or self.touched[start]:
                if not self.touched[start]:
                    yield start, place
                start = place

    def grant(self, edit: Edit) -> None:
        """Open what an edit may change."""
        match edit:
            case AddImport():
                self._open_imports()
            case Before() | After() | Comment():
                self._open_around(self._statements[edit.stmt.line, edit.stmt.col])
            case First():
                body: Sequence[ast.stmt] = self._statements[edit.stmt.line, edit.stmt.col].body  # type: ignore[attr-defined]
                self._open_around(body[0])  # below it where it is a docstring
            case Enclose():
                self._touch_test_above(edit.first)
                self._touch_statement(self._statements[edit.first.line, edit.first.col])
                self._touch(span_of(edit).line, span_of(edit).end_line)
                self._touch_statement(self._statements[edit.last.line, edit.last.col])
            case Delete():
                pass  # see grant_deleted
            case _:
                self._touch(span_of(edit).line, span_of(edit).end_line)
                if isinstance(edit, Hoist):
                    self._open_around(self._holder(edit.node), touch=True)

    def grant_deleted(self) -> None:
        """Open the deleted statements and every ``if`` and ``else`` that goes with them."""
        gone: set[ast.AST] = {*self._deleted}
        if gone:
            self._mark_gone(self._tree.body, gone)
        for node in gone:
            assert isinstance(node, ast.stmt)
            self._touch_statement(node)
            self._open_around(node, blanks=True)

    def _mark_gone(self, body: Sequence[ast.stmt], gone: set[ast.AST]) -> None:
        for node in body:
            for field in ("body", "handlers", "cases", "orelse", "finalbody"):
                for inner in getattr(node, field, None) or ():
                    self._mark_gone(inner.body if isinstance(inner, (ast.ExceptHandler, ast.match_case)) else [inner], gone)
            orelse = getattr(node, "orelse", [])
            if orelse and gone.issuperset(orelse):
                self._touch_else(orelse[0].lineno)
            if isinstance(node, ast.If) and gone.issuperset([*node.body, *orelse]):
                gone.add(node)

    def _touch_else(self, line: int) -> None:
        while not self._lines[line - 1].lstrip().startswith(("else", "elif")):
            self._touch(line, line)
            line -= 1
        self._touch(line, line)

    def _holder(self, span: Span) -> ast.stmt:
        """The innermost statement around an expression."""
        around = [node for node in self._statements.values() if (node.lineno, node.col_offset) <= (span.line, span.col)]
        return max(around, key=lambda node: (node.lineno, node.col_offset))

    def _touch_test_above(self, first: Span) -> None:
        """The ``if`` whose branch begins here: a guard of the whole branch goes into its test."""
        for node in self._statements.values():
            if isinstance(node, ast.If) and (node.body[0].lineno, node.body[0].col_offset) == (first.line, first.col):
                self._touch(node.lineno, node.test.end_lineno or node.lineno)

    def _touch(self, line: int, end_line: int) -> None:
        self.touched[line - 1 : end_line] = [True] * (end_line - line + 1)

    def _touch_statement(self, node: ast.stmt) -> None:
        """The lines of a statement with its decorators, and comments inside its last block."""
        end = _end(node)
        self._touch(_start(node), end)
        for place in range(end, len(self._lines)):
            line = self._lines[place]
            inner = line.lstrip(" \t\f")
            if inner.strip() and not inner.startswith("#"):
                break
            deeper = len(line) - len(inner) > node.col_offset
            self.touched[place] = self.touched[place] or (deeper and inner.startswith("#"))

    def _open_around(self, node: ast.stmt, *, touch: bool = False, blanks: bool = False) -> None:
        """Something new may stand above and below a statement, also beyond comments and blank lines; a line that it shares changes."""
        start, end = _start(node), _end(node)
        if touch:
            self._touch(start, start)
        if self._lines[node.lineno - 1].encode()[: node.col_offset].strip():
            self._touch(start, start)
            self._touch(end, end)
        elif self._lines[end - 1].encode()[node.end_col_offset or 0 :].strip()[:1] == b";":
            self._touch(end, end)
        self._open(start - 1, -1, blanks=blanks)
        self._open(end, 1, blanks=blanks)

    def _open(self, place: int, step: int, *, blanks: bool = False) -> None:
        """Open the gap above the line at ``place``, and the next ones up or down as far as comments and blank lines go."""
        self.gaps[place] = True
        for index in range(place, len(self._lines)) if step > 0 else range(place - 1, -1, -1):
            line = self._lines[index].strip()
            if line and not line.startswith("#"):
                return
            self.touched[index] = self.touched[index] or (blanks and not line)
            self.gaps[index + 1 if step > 0 else index] = True

    def _open_imports(self) -> None:
        self._open(_start(self._tree.body[0]) - 1 if self._tree.body else 0, -1)
        self._open(0, 1)
        for place, node in enumerate(self._tree.body):
            docstring = place == 0 and isinstance(node, ast.Expr)
            among = isinstance(node, (ast.Import, ast.ImportFrom, ast.Try, ast.If)) or _of_environment(node) or node in self._deleted
            if not docstring and not among:
                break
            self._open(_end(node), 1)


def _of_environment(node: ast.stmt) -> bool:
    """``os.environ["A"] = "1"``, ``os.environ.setdefault("A", "1")``: may stand between imports."""
    return isinstance(node, ast.Assign | ast.Expr) and ast.unparse(node).startswith(("os.environ", "environ"))


def _start(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _end(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno
