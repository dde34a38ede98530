"""What only ``ast`` can say: is this Python at all, and are positions inside f-strings right."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping

import libcst as cst

from dpmigrate.model import Span
from dpmigrate.rewrite.anchors import Refused, Site


def parsed(text: str) -> ast.Module:
    """The tree of the text. Deeply nested brackets are an error here, and the end of the process in libcst's parser."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise Refused(f"not valid Python: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise Refused("the code is nested too deeply to be rewritten") from error


def check_strings(tree: ast.Module, sites: Mapping[Span, Site]) -> None:
    """Before Python 3.12 ``ast`` gives wrong positions inside some f-strings: refuse where they do not name the code that is there."""
    for span, node in _inside_strings(tree):
        site = sites.get(span)
        if site is None:
            continue
        in_string = any(isinstance(outer, cst.FormattedString) for outer in site.ancestors)
        if not in_string or _dump(site.text[site.start : site.end]) != ast.dump(node):
            raise Refused(f"the position inside the f-string at line {span.line} is not reliable", span)


def _inside_strings(tree: ast.Module) -> Iterator[tuple[Span, ast.expr]]:
    for outer in ast.walk(tree):
        if isinstance(outer, ast.FormattedValue):
            for node in ast.walk(outer.value):
                if isinstance(node, ast.expr) and node.end_lineno is not None and node.end_col_offset is not None:
                    yield Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset), node


def _dump(code: str) -> str:
    try:
        return ast.dump(ast.parse(f"({code})", mode="eval").body)
    except SyntaxError:
        return ""
