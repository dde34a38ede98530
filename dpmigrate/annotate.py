"""What is left to the user, as comments in the program: ``# TODO(DPM305): …`` above the statement that it is about."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpmigrate.edit import Comment
from dpmigrate.model import Finding, Span
from dpmigrate.program import Program

#: characters of a comment's line, its indentation not counted
WIDTH = 100


def annotated(program: Program, left: Sequence[Finding]) -> Iterator[Finding]:
    """The findings, each with a comment as its edit; none for what a comment of the file says already."""
    for part in program.parts:
        own = [f for f in left if program.part(f.span) is part]
        lines = re.split(r"\r\n|\r|\n", part.source.text)
        places = [(_first_line(node), node) for node in ast.walk(part.tree) if isinstance(node, ast.stmt)] if own else []
        places = [(line, node) for line, node in places if _begins_its_line(lines[line - part.first - 1], node)]
        for finding in own:
            line, statement = _innermost(places, finding.span.line)
            comment = _comment(finding)
            if "\n".join(comment) not in _above(lines, line - part.first):
                yield replace(finding, edits=(Comment(Span.of(statement), comment),))


def _comment(finding: Finding) -> tuple[str, ...]:
    text = f"TODO({finding.code}): {finding.message}" + (f"; {finding.advice}" if finding.advice else "")
    return tuple(textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False))


def _above(lines: Sequence[str], line: int) -> str:
    """The comments directly above a line, without their indentation."""
    first = line - 1
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return "\n".join(text.strip() for text in lines[first : line - 1])


def _innermost(places: Sequence[tuple[int, ast.stmt]], line: int) -> tuple[int, ast.stmt]:
    around = [(first, node) for first, node in places if first <= line <= (node.end_lineno or first)]
    return max(around, key=lambda place: (place[0], place[1].col_offset))


def _begins_its_line(line: str, node: ast.stmt) -> bool:
    """Whether a comment can stand above the statement: nothing may come before it in its line, and it may be no ``elif``."""
    return not line.encode()[: node.col_offset].strip() and not line.lstrip().startswith("elif")


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])
