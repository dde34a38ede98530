"""One way to write a rewriting test: source with its anchors marked as ⟦…⟧, the edits on them, the expected text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from textwrap import dedent
from typing import Any

import pytest

from dpmigrate.edit import AddImport, Edit
from dpmigrate.model import Span
from dpmigrate.rewrite.apply import apply
from dpmigrate.rewrite.compose import Plan
from dpmigrate.rewrite.verify import verify

MakeEdits = Callable[[list[Span]], Sequence[Edit]]


def unmark(marked: str) -> tuple[str, list[Span]]:
    """The source without the marks, and the marked spans in the order in which they open."""
    text = ""
    spans: list[Span | None] = []
    opened: list[tuple[int, int, int]] = []
    for char in dedent(marked.removeprefix("\n")):
        line, col = text.count("\n") + 1, len(text[text.rfind("\n") + 1 :].encode())
        if char == "⟦":
            opened.append((len(spans), line, col))
            spans.append(None)
        elif char == "⟧":
            place, start_line, start_col = opened.pop()
            spans[place] = Span(start_line, start_col, line, col)
        else:
            text += char
    assert not opened
    return text, [span for span in spans if span is not None]


@pytest.fixture
def carry() -> Callable[[str, MakeEdits], str]:
    """Carries out edits on marked source."""

    def run(marked: str, make: MakeEdits) -> str:
        text, spans = unmark(marked)
        return apply(text, Plan(tuple(make(spans))))

    return run


#: letters of two, three and four bytes in UTF-8, which is how ``ast`` counts columns; libcst counts characters
_BEYOND = dict(zip("abcdefghijklmnopqrstuvwxyz", "äßçđéφğħíјκłмñöπθřşтüνшχý𠀀", strict=True))


def _beyond_ascii(text: str) -> str:
    """The text with other one-letter names."""
    return re.sub(r"(?<![\w\"'!])[a-z](?![\w\"'])", lambda name: _BEYOND[name[0]], text)


def _translated(edit: Edit) -> Edit:
    """The edit with its code in such names, but for the text of strings."""
    changed: dict[str, Any] = {}
    for field in fields(edit):
        value = getattr(edit, field.name)
        if isinstance(value, str) and field.name != "key":
            changed[field.name] = _beyond_ascii(value)
        elif isinstance(value, tuple):
            changed[field.name] = tuple(map(_beyond_ascii, value))
    return replace(edit, **changed)


@pytest.fixture
def check() -> Callable[[str, MakeEdits, str], None]:
    """Compares the result, also with other newlines and without the last one, and runs the self-checks on it."""

    def run(marked: str, make: MakeEdits, expected: str) -> None:
        text, spans = unmark(marked)
        plan = Plan(tuple(make(spans)))
        wanted = dedent(expected.removeprefix("\n"))

        result = apply(text, plan)

        assert wanted == result
        ast.parse(result)
        assert () == verify(text, result, plan)
        if text:  # an empty file has no newline of its own
            assert wanted.replace("\n", "\r\n") == apply(text.replace("\n", "\r\n"), plan)
            assert wanted.removesuffix("\n") == apply(text.removesuffix("\n"), plan)
        if not any(isinstance(edit, AddImport) for edit in plan.edits):  # these are sorted by their names
            foreign, places = unmark(_beyond_ascii(marked))
            assert _beyond_ascii(wanted) == apply(foreign, Plan(tuple(map(_translated, make(places)))))

    return run
