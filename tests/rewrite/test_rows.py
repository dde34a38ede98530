"""SetArg, DropArg, SetItem and DropItem in every layout."""

from __future__ import annotations

import pytest

from dpmigrate.edit import DropArg, DropItem, SetArg, SetItem, Wrap
from dpmigrate.rewrite.anchors import Refused


@pytest.mark.parametrize(
    ("marked", "edits"),
    [
        pytest.param("⟦f(a)⟧\n", lambda s: [DropArg(s[0], "k")], id="drop_arg: not there"),
        pytest.param("⟦f(a)⟧\n", lambda s: [DropArg(s[0], "k", 3)], id="drop_arg: fewer arguments than its position"),
        pytest.param("⟦f(*a, b)⟧\n", lambda s: [DropArg(s[0], "k", 1)], id="drop_arg: position behind a star is unknown"),
        pytest.param("⟦f(a, b)⟧\n", lambda s: [DropArg(s[0], "k", 0)], id="drop_arg: would shift an argument without a name"),
        pytest.param("⟦f(a, *b)⟧\n", lambda s: [DropArg(s[0], "k", 0, ("b",))], id="drop_arg: would shift a starred argument"),
        pytest.param("⟦{'a': 1}⟧\n", lambda s: [DropItem(s[0], "b")], id="drop_item: not there"),
        pytest.param("⟦f⟧\n", lambda s: [DropItem(s[0], "b")], id="drop_item: a name is no dict"),
        pytest.param("⟦f(k=⟦a⟧)⟧\n", lambda s: [SetArg(s[0], "k", "1"), Wrap(s[1], "g({})")], id="set_arg: value edited as well"),
        pytest.param("⟦{'k': ⟦a⟧}⟧\n", lambda s: [SetItem(s[0], "k", "1"), Wrap(s[1], "g({})")], id="set_item: value edited as well"),
    ],
)
def test_refused(carry, marked, edits):
    with pytest.raises(Refused):
        carry(marked, edits)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("f()", "f(new=1)", id="no argument"),
        pytest.param("f(\n)", "f(new=1)", id="no argument, on two lines"),
        pytest.param("f(  # why\n)", "f(  # why\nnew=1)", id="no argument but a comment"),
        pytest.param("f(a)", "f(a, new=1)", id="one argument"),
        pytest.param("f( a )", "f( a, new=1 )", id="spaces inside the brackets"),
        pytest.param("f(a, b,)", "f(a, b, new=1,)", id="trailing comma"),
        pytest.param("f(new=0, b=2)", "f(new=1, b=2)", id="keyword is replaced"),
        pytest.param("f(a, new = 0)", "f(a, new = 1)", id="keyword keeps its spaces"),
        pytest.param("f(a, **k)", "f(a, new=1, **k)", id="before the trailing keywords"),
        pytest.param("f(**k, b=2)", "f(**k, b=2, new=1)", id="after keywords in the middle"),
        pytest.param("f(**k)", "f(new=1, **k)", id="only trailing keywords"),
        pytest.param("f(a, *b)", "f(a, *b, new=1)", id="after a star"),
        pytest.param("f(i for i in y)", "f((i for i in y), new=1)", id="lone generator"),
        pytest.param("f(\n    a,\n    b,\n)", "f(\n    a,\n    b,\n    new=1,\n)", id="one a line"),
        pytest.param("f(\n    a,\n    b\n)", "f(\n    a,\n    b,\n    new=1\n)", id="one a line, no trailing comma"),
        pytest.param("f(\n    a\n)", "f(\n    a,\n    new=1\n)", id="the only one on its line"),
        pytest.param("f(a,\n  b)", "f(a,\n  b,\n  new=1)", id="aligned"),
        pytest.param("f(a,\n  b,)", "f(a,\n  b,\n  new=1,)", id="aligned, trailing comma"),
        pytest.param("f(\n    a, b\n)", "f(\n    a, b, new=1\n)", id="several a line"),
        pytest.param("f(a,\n  b, c)", "f(a,\n  b, c, new=1)", id="several on some lines"),
        pytest.param("f(a, b  # c\n)", "f(a, b, new=1  # c\n)", id="comment behind several"),
        pytest.param("f(\n    a,  # ca\n    b,  # cb\n)", "f(\n    a,  # ca\n    b,  # cb\n    new=1,\n)", id="comments stay with their arguments"),
        pytest.param("f(\n    a,  # ca\n    b  # cb\n)", "f(\n    a,  # ca\n    b,  # cb\n    new=1\n)", id="comment behind the last, no comma"),
        pytest.param("f(\n    a,\n    # end\n)", "f(\n    a,\n    new=1,\n    # end\n)", id="comment on its own line"),
        pytest.param("f(\n    a,\n    **k,\n)", "f(\n    a,\n    new=1,\n    **k,\n)", id="one a line, before the trailing keywords"),
        pytest.param("f(\n\ta,\n\tb,\n)", "f(\n\ta,\n\tb,\n\tnew=1,\n)", id="tabs"),
        pytest.param("g(f(\n    a,\n), b)", "g(f(\n    a,\n    new=1,\n), b)", id="inner call"),
    ],
)
def test_set_arg(check, before, after):
    marked = f"x = ⟦{before}⟧  # end\n" if not before.startswith("g(") else "x = g(⟦f(\n    a,\n)⟧, b)  # end\n"
    check(marked, lambda s: [SetArg(s[0], "new", "1")], f"x = {after}  # end\n")


@pytest.mark.parametrize(
    ("before", "index", "after"),
    [
        pytest.param("f(a, b)", 1, "f(a, 1)", id="positional"),
        pytest.param("f(a)", 1, "f(a, new=1)", id="position not taken"),
        pytest.param("f(a, new=b)", 0, "f(a, new=1)", id="keyword before position"),
        pytest.param("f(*a, b)", 1, "f(*a, b, new=1)", id="position behind a star is unknown"),
    ],
)
def test_set_arg_with_its_position(check, before, index, after):
    check(f"⟦{before}⟧\n", lambda s: [SetArg(s[0], "new", "1", index)], after + "\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("f(k=1)", "f()", id="the only one"),
        pytest.param("f(\n    k=1,\n)", "f()", id="the only one, on its line"),
        pytest.param("f(  # why\n    k=1,\n)", "f(  # why\n)", id="the only one, with a comment above"),
        pytest.param("f(a, k=1)", "f(a)", id="the last"),
        pytest.param("f(a, k=1,)", "f(a,)", id="the last, trailing comma"),
        pytest.param("f(k=1, a=2)", "f(a=2)", id="the first"),
        pytest.param("f(a, k=1, b=2)", "f(a, b=2)", id="in the middle"),
        pytest.param("f(a, k=1, **b)", "f(a, **b)", id="before keywords"),
        pytest.param("f(\n    a,\n    k=1,\n    b=2,\n)", "f(\n    a,\n    b=2,\n)", id="one a line, in the middle"),
        pytest.param("f(\n    a,\n    k=1,\n)", "f(\n    a,\n)", id="one a line, the last"),
        pytest.param("f(\n    a,\n    k=1\n)", "f(\n    a\n)", id="one a line, the last without comma"),
        pytest.param("f(\n    k=1,\n    a=2,\n)", "f(\n    a=2,\n)", id="one a line, the first"),
        pytest.param("f(a,\n  k=1)", "f(a)", id="aligned, the last"),
        pytest.param("f(a,  # ca\n  k=1)", "f(a  # ca\n  )", id="aligned, the last, comment above"),
        pytest.param("f(k=1,\n  a=2)", "f(a=2)", id="aligned, the first"),
        pytest.param("f(k=1,  # ck\n  a=2)", "f(  # ck\n  a=2)", id="aligned, the first, comment of the line"),
        pytest.param("f(a, k=1,\n  b=2)", "f(a,\n  b=2)", id="at the end of a line of several"),
        pytest.param("f(a,\n  k=1, b=2)", "f(a,\n  b=2)", id="at the start of a line of several"),
        pytest.param("f(\n    a, k=1\n)", "f(\n    a\n)", id="the last of a line of several"),
        pytest.param("f(\n    a,  # ca\n    k=1,  # ck\n    b=2,  # cb\n)", "f(\n    a,  # ca\n    b=2,  # cb\n)", id="its comment goes, others stay"),
        pytest.param("f(\n    a,\n    # ck\n    k=1,\n    # cb\n    b=2,\n)", "f(\n    a,\n    # ck\n    # cb\n    b=2,\n)", id="comment lines stay"),
    ],
)
def test_drop_arg(check, before, after):
    check(f"x = ⟦{before}⟧  # end\n", lambda s: [DropArg(s[0], "k")], f"x = {after}  # end\n")


@pytest.mark.parametrize(
    ("before", "drops", "after"),
    [
        pytest.param("f(a, b)", [("k", 1, ())], "f(a)", id="the last"),
        pytest.param("f(a, b, c, d)", [("k", 1, ("c", "d"))], "f(a, c=c, d=d)", id="those behind get names"),
        pytest.param("f(a, b, c, z=d, **e)", [("k", 1, ("c", "d"))], "f(a, c=c, z=d, **e)", id="keywords keep theirs"),
        pytest.param("f(a, b, c, d)", [("k", 1, ("l", "m")), ("l", 2, ("m",))], "f(a, m=d)", id="two neighbours"),
        pytest.param("f(a, b, c, d)", [("l", 2, ("m",)), ("k", 1, ("l", "m"))], "f(a, m=d)", id="two neighbours, given the other way round"),
    ],
)
def test_drop_arg_with_its_position(check, before, drops, after):
    check(f"⟦{before}⟧\n", lambda s: [DropArg(s[0], *drop) for drop in drops], after + "\n")


def test_an_argument_is_dropped_before_another_is_set(check):
    check(
        "⟦DataLoader(d, 8, True,\n    num_workers=2)⟧\n",
        lambda s: [SetArg(s[0], "sampler", "s", 3), DropArg(s[0], "shuffle", 2, ("sampler",))],
        "DataLoader(d, 8,\n    num_workers=2, sampler=s)\n",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("{}", '{"new": 1}', id="empty"),
        pytest.param("{\n}", '{"new": 1}', id="empty, on two lines"),
        pytest.param("{'a': 2}", "{'a': 2, 'new': 1}", id="quotes of the others"),
        pytest.param('{"a": 2}', '{"a": 2, "new": 1}', id="double quotes"),
        pytest.param("{ 'a': 2 }", "{ 'a': 2, 'new': 1 }", id="spaces inside the brackets"),
        pytest.param("{b: 2, **c}", '{b: 2, **c, "new": 1}', id="behind what could override it"),
        pytest.param("{'new': 2, 'a': 3}", "{'new': 1, 'a': 3}", id="replaced"),
        pytest.param("{'new': 2, 'n' 'ew': 3}", "{'new': 2, 'n' 'ew': 1}", id="the last of its kind is replaced"),
        pytest.param("{\n    'a': 2,\n}", "{\n    'a': 2,\n    'new': 1,\n}", id="one a line"),
        pytest.param("{\n    'a': 2  # c\n}", "{\n    'a': 2,  # c\n    'new': 1\n}", id="one a line, no trailing comma, comment"),
        pytest.param("{\n    'a': 2,\n    'b': 3,  # c\n}", "{\n    'a': 2,\n    'b': 3,  # c\n    'new': 1,\n}", id="one a line, comment"),
        pytest.param("{'a': 2,\n 'b': 3}", "{'a': 2,\n 'b': 3,\n 'new': 1}", id="aligned"),
    ],
)
def test_set_item(check, before, after):
    check(f"x = ⟦{before}⟧\n", lambda s: [SetItem(s[0], "new", "1")], f"x = {after}\n")


def test_set_item_with_a_quote_in_its_key(check):
    check("x = ⟦{}⟧\n", lambda s: [SetItem(s[0], 'a"b', "1")], "x = {'a\"b': 1}\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("{'k': 1}", "{}", id="the only one"),
        pytest.param("{'k': 1, 'a': 2}", "{'a': 2}", id="the first"),
        pytest.param("{'a': 2, 'k': 1}", "{'a': 2}", id="the last"),
        pytest.param("{ 'a': 2, 'k': 1 }", "{ 'a': 2 }", id="the last, spaces inside the brackets"),
        pytest.param("{'k': 1, 'a': 2, 'k': 3}", "{'a': 2}", id="twice"),
        pytest.param("{\n    'a': 2,\n    'k': 1,  # c\n}", "{\n    'a': 2,\n}", id="one a line, the last"),
        pytest.param("{\n    'a': 2,\n    'k': 1,\n    **b\n}", "{\n    'a': 2,\n    **b\n}", id="one a line, in the middle"),
    ],
)
def test_drop_item(check, before, after):
    check(f"x = ⟦{before}⟧\n", lambda s: [DropItem(s[0], "k")], f"x = {after}\n")
