"""What apply keeps, what it refuses, and how anchors are found."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmigrate.edit import After, Before, Replace, SetArg, Wrap
from dpmigrate.model import Span
from dpmigrate.rewrite.anchors import Offsets
from dpmigrate.rewrite.apply import Refused, apply
from dpmigrate.rewrite.compose import Plan

apply_module = sys.modules["dpmigrate.rewrite.apply"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("\n\n", id="blank lines"),
        pytest.param("# only a comment", id="comment"),
        pytest.param("x", id="no final newline"),
        pytest.param("x\r\ny\nz\r\n", id="mixed newlines"),
        pytest.param("x = 1\n\n  \n", id="last line of white space"),
        pytest.param("x = 1\r\n \r\n\r\n\t", id="last lines of white space, CRLF"),
        pytest.param("x = 1\n\n # odd\n", id="odd comment at the end"),
        pytest.param("x = 1;  # c\r\n \r\n  # odd\r\n# c\r\n    # deep", id="odd comments at the end, CRLF"),
        pytest.param("if a:\n    b\n\x0c\n    c \x0c\n\x0c\n", id="form feeds between lines"),
        pytest.param("  \n", id="nothing but white space"),
        pytest.param("x = 1   ", id="space at the end"),
        pytest.param("if a:\n\tb\n\n\t# c\n", id="tabs"),
        pytest.param("x = \\\n  1;\n", id="backslash, semicolon"),
    ],
)
def test_an_empty_plan_changes_nothing(text):
    assert text == apply(text, Plan(()))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("x = ", "not valid Python", id="syntax error"),
        pytest.param("print 'a'\n", "not valid Python", id="Python 2"),
        pytest.param("x = 1\x00\n", "not valid Python", id="NUL"),
        pytest.param("(" * 1500 + ")" * 1500, "not valid Python", id="nested brackets that would end libcst"),
        pytest.param("a\n\x0cb\n", "line 2 would not stay byte for byte", id="form feed"),
        pytest.param("a\rb\r", "would not stay byte for byte", id="lone carriage return"),
        pytest.param("x = a" + ".b" * 500 + "\n", "nested too deeply", id="long chain"),
        pytest.param("x = " + "+".join(["a"] * 500) + "\n", "nested too deeply", id="long sum"),
        pytest.param("x = " + "+".join(["a"] * 5000) + "\n", "nested too deeply", id="sum too long even for ast"),
    ],
)
def test_refused_text(text, reason):
    with pytest.raises(Refused, match=reason):
        apply(text, Plan(()))


def test_syntax_newer_than_libcst_is_refused(monkeypatch):
    def fail(text):
        raise apply_module.cst.ParserSyntaxError("no", lines=[text], raw_line=1, raw_column=0)

    monkeypatch.setattr(apply_module.cst, "parse_module", fail)
    with pytest.raises(Refused, match="unsupported syntax"):
        apply("x\n", Plan(()))


def test_an_edit_that_libcst_does_not_allow_is_refused(carry):
    with pytest.raises(Refused, match="does not fit"):
        carry("⟦f()⟧\n", lambda s: [SetArg(s[0], "", "1")])


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(Replace(Span(1, 0, 1, 4), "x"), id="no node has this end"),
        pytest.param(Replace(Span(1, 1, 1, 2), "x"), id="no node starts here"),
        pytest.param(Replace(Span(9, 0, 9, 1), "x"), id="no such line"),
        pytest.param(Replace(Span(1, 0, 9, 1), "x"), id="no such last line"),
        pytest.param(Replace(Span(0, 0, 1, 1), "x"), id="line zero"),
        pytest.param(Before(Span(1, 0, 1, 3), "x"), id="no statement has this end"),
        pytest.param(Before(Span(1, 2, 1, 3), "x"), id="no statement starts here"),
        pytest.param(Before(Span(9, 2, 9, 3), "x"), id="no statement on a line that is not there"),
        pytest.param(Before(Span(1, 0, 9, 3), "x"), id="no statement with such a last line"),
    ],
)
def test_an_anchor_that_is_not_there_is_refused(edit):
    with pytest.raises(Refused) as caught:
        apply("a.b()\nc\n", Plan((edit,)))

    assert caught.value.span is not None


def test_chained_calls_are_told_apart_by_their_end(check):
    check(
        "⟦⟦⟦a⟧.b()⟧.c()⟧\n",
        lambda s: [SetArg(s[0], "k", "1"), SetArg(s[1], "l", "2"), Wrap(s[2], "f({})")],
        "f(a).b(l=2).c(k=1)\n",
    )


def test_columns_count_bytes(check):
    check("x = 'äöü😀', ⟦f(⟦'é'⟧)⟧  # ß\n", lambda s: [SetArg(s[0], "k", "1"), Wrap(s[1], "g({})")], "x = 'äöü😀', f(g('é'), k=1)  # ß\n")


def test_a_last_line_of_white_space_is_kept_below_the_edits():
    assert "x\nnew\n\n  " == apply("x\n\n  ", Plan((After(Span(1, 0, 1, 1), "new"),)))


@pytest.mark.parametrize(
    ("text", "other", "span"),
    [
        pytest.param("x = f'{a} {b}'\n", "x = f'{q} {b}'\n", Span(1, 7, 1, 8), id="another name"),
        pytest.param("zzzz; a\n", "w; f'{a}'\n", Span(1, 6, 1, 7), id="the same name outside"),
        pytest.param("x = f'{[*ab]}'\n", "x = f'{[abc]}'\n", Span(1, 8, 1, 11), id="a star"),
    ],
)
def test_positions_inside_an_f_string_that_are_wrong_are_refused(monkeypatch, text, other, span):
    """Before Python 3.12 ``ast`` gives some wrong ones; here they are those of another text."""
    wrong = apply_module.parsed(other)
    monkeypatch.setattr(apply_module, "parsed", lambda _: wrong)

    with pytest.raises(Refused, match="not reliable"):
        apply(text, Plan((Replace(span, "z"),)))


@given(st.lists(st.sampled_from(["a", "é", "😀", "\t", "\x0c", "\n", "\r\n", "\r"])).map("".join))
def test_offsets_agree_with_bytes(text):
    offsets = Offsets(text)
    line, col = 1, 0
    for place, char in enumerate(text):
        if char == "\n" and text[place - 1 : place] == "\r":
            continue  # inside a line end there is no column
        assert place == offsets.of(line, col)
        line, col = (line + 1, 0) if char in "\r\n" else (line, col + len(char.encode()))
