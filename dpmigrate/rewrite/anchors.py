"""Where the anchors of a plan stand in the libcst tree.

``ast`` gave the anchors, libcst carries the edits: the two meet here, by position. One code generation gives both the text (for
the round trip check) and the position of every node that starts where an anchor starts, so that no metadata provider is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import libcst as cst
from libcst._nodes.internal import CodegenState

from dpmigrate.model import Span

_NEWLINE = re.compile(r"\r\n|\r|\n")  # what ast counts as a line end; a form feed is none


class Refused(Exception):
    """The edits cannot be carried out on this text; ``span`` names the anchor where one is to blame."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A node with its offsets in the text as ``ast`` would count them, and what stands around it (outermost first)."""

    node: cst.CSTNode
    start: int
    end: int
    outer_start: int  # with all its parentheses
    outer_end: int
    ancestors: tuple[cst.CSTNode, ...]
    text: str  # of the whole module

    @property
    def parent(self) -> cst.CSTNode:
        return self.ancestors[-1]

    @property
    def indentation(self) -> str:
        """What the lines of the innermost block around the node begin with."""
        module = self.ancestors[0]
        assert isinstance(module, cst.Module)
        blocks = (node for node in self.ancestors if isinstance(node, (cst.IndentedBlock, cst.Match)))
        return "".join(module.default_indent if block.indent is None else block.indent for block in blocks)


class Offsets:
    """Turns the lines and UTF-8 columns of ``ast`` into offsets in the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]

    def of(self, line: int, col: int) -> int | None:
        """The offset, or None where the text has no such line."""
        if not 0 < line <= len(self._starts):
            return None
        start = self._starts[line - 1]
        end = self._starts[line] if line < len(self._starts) else len(self._text)
        piece = self._text[start:end]
        return start + (col if piece.isascii() else len(piece.encode()[:col].decode(errors="ignore")))


class _Recorder(CodegenState):
    """Generates the text of a module and notes on the way which nodes start at a wanted offset."""

    def __init__(self, module: cst.Module, text: str, wanted: frozenset[int]) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.text = text
        self.wanted = wanted
        self.offset = 0
        self.stack: list[cst.CSTNode] = []
        self.expressions: dict[tuple[int, int], Site] = {}
        self.statements: dict[int, Site] = {}

    def add_indent_tokens(self) -> None:
        self.tokens.extend(self.indent_tokens)
        self.offset += sum(map(len, self.indent_tokens))

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.offset += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.stack.append(node)

    def after_codegen(self, node: cst.CSTNode) -> None:
        self.stack.pop()

    @contextmanager
    def record_syntactic_position(self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None) -> Iterator[None]:
        start = self.offset
        if isinstance(node, (cst.Tuple, cst.GeneratorExp)):
            yield
            self._note_with_parentheses(node, start)
        elif start in self.wanted:
            yield
            self._note(node, start, self.offset, start, self.offset)
        else:
            yield

    def _note(self, node: cst.CSTNode, start: int, end: int, inner_start: int, inner_end: int) -> None:
        ancestors = tuple(self.stack[:-1])
        if isinstance(node, cst.BaseExpression):
            outer = inner_start - self._width(node.lpar), inner_end + self._width(node.rpar)
            self.expressions.setdefault((start, end), Site(node, start, end, *outer, ancestors, self.text))
        elif isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            self.statements[start] = Site(node, start, end, start, end, ancestors, self.text)

    def _note_with_parentheses(self, node: cst.Tuple | cst.GeneratorExp, inner: int) -> None:
        """``ast`` counts the innermost parentheses into a tuple and a generator, even those of a call; libcst does not."""
        start, end = inner, self.offset
        if node.lpar:
            start, end = start - self._width(node.lpar[-1:]), end + self._width(node.rpar[:1])
        elif isinstance(node, cst.GeneratorExp):
            start, end = _skip_space(self.text, start - 1, -1), _skip_space(self.text, end, 1) + 1
        if start in self.wanted:
            self._note(node, start, end, inner, self.offset)

    def _width(self, nodes: Sequence[cst.CSTNode]) -> int:
        state = CodegenState(self.default_indent, self.default_newline, indent_tokens=self.indent_tokens)
        for node in nodes:
            node._codegen(state)
        return sum(map(len, state.tokens))


def _skip_space(text: str, offset: int, step: int) -> int:
    while 0 <= offset < len(text) and text[offset].isspace():
        offset += step
    return offset


class Anchors:
    """The sites of all wanted spans of a module, and the text that libcst generates for it."""

    def __init__(self, module: cst.Module, text: str, spans: Iterable[Span]) -> None:
        self._text = text
        self._offsets = Offsets(text)
        starts = {self._offsets.of(span.line, span.col) for span in spans}
        recorder = _Recorder(module, text, frozenset(start for start in starts if start is not None))
        module._codegen(recorder)
        self.generated = "".join(recorder.tokens)
        self._expressions = recorder.expressions
        self._statements = recorder.statements

    def expression(self, span: Span) -> Site:
        """The expression that takes exactly this span (chained calls start together, so the end counts)."""
        start, end = self._offsets.of(span.line, span.col), self._offsets.of(span.end_line, span.end_col)
        if start is not None and end is not None and (start, end) in self._expressions:
            return self._expressions[start, end]
        raise Refused(f"no expression found at line {span.line}, column {span.col + 1}", span)

    def statement(self, span: Span) -> Site:
        """The statement that starts here. To its end libcst may count the comment behind it, and ``ast`` a semicolon."""
        start, end = self._offsets.of(span.line, span.col), self._offsets.of(span.end_line, span.end_col)
        site = None if start is None else self._statements.get(start)
        if site is None or end is None or not _is_trivia(self._text[min(site.end, end) : max(site.end, end)]):
            raise Refused(f"no statement found at line {span.line}, column {span.col + 1}", span)
        return site


def _is_trivia(text: str) -> bool:
    lines = (line.strip("; \t\f") for line in _NEWLINE.split(text))
    return all(not line or line.startswith("#") for line in lines)


def code_of(nodes: Sequence[cst.CSTNode]) -> str:
    """The code of some nodes, one after the other."""
    return "".join(cst.Module([]).code_for_node(node) for node in nodes)
