"""compose: one plan whatever the order, contradictions named."""

from __future__ import annotations

import ast
import random
from itertools import combinations

import pytest

from dpmigrate.edit import (
    AddImport,
    After,
    Before,
    Comment,
    Delete,
    DropArg,
    DropItem,
    Edit,
    Enclose,
    First,
    Hoist,
    MainOnly,
    Replace,
    SetArg,
    SetItem,
    Wrap,
)
from dpmigrate.model import Finding, Severity, Span
from dpmigrate.rewrite.apply import apply
from dpmigrate.rewrite.compose import Conflict, Plan, compose
from dpmigrate.rewrite.verify import verify

OUTER = Span(3, 0, 9, 10)
INNER = Span(4, 4, 4, 9)
DEEPER = Span(4, 6, 4, 7)
LATER = Span(5, 4, 5, 9)
MAIN = "if ddp.is_main():"


def finding(code, *edits):
    return Finding(code, Span(1, 0, 1, 0), "message", Severity.NOTE, edits)


def composed(*edits):
    return compose([finding(f"DP{place}", edit) for place, edit in enumerate(edits)]).edits


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(Replace(INNER, "a"), Replace(INNER, "b"), id="two replacements"),
        pytest.param(Replace(INNER, "a"), Wrap(INNER, "f({})"), id="replacement and wrap of one node"),
        pytest.param(Replace(INNER, "a"), SetArg(DEEPER, "k", "1"), id="edit inside a replacement"),
        pytest.param(Replace(INNER, "a"), Delete(DEEPER), id="statement inside a replacement"),
        pytest.param(SetArg(INNER, "k", "1"), SetArg(INNER, "k", "2"), id="two values of an argument"),
        pytest.param(SetArg(INNER, "k", "1", 0), SetArg(INNER, "k", "1", 1), id="two positions of an argument"),
        pytest.param(SetArg(INNER, "k", "1", 0), SetArg(INNER, "l", "1", 0), id="two arguments of a position"),
        pytest.param(SetArg(INNER, "k", "1"), DropArg(INNER, "k"), id="argument set and dropped"),
        pytest.param(DropArg(INNER, "k", 1), DropArg(INNER, "k", 2), id="argument dropped in two ways"),
        pytest.param(SetItem(INNER, "k", "1"), SetItem(INNER, "k", "2"), id="two values of an item"),
        pytest.param(SetItem(INNER, "k", "1"), DropItem(INNER, "k"), id="item set and dropped"),
        pytest.param(Wrap(INNER, "f({})"), Wrap(INNER, "g({})"), id="two wraps"),
        pytest.param(MainOnly(INNER, "f"), MainOnly(INNER, "g"), id="two forms of a call"),
        pytest.param(Hoist(INNER, "a"), Hoist(INNER, "b"), id="two names"),
        pytest.param(Hoist(INNER, "a"), Hoist(LATER, "a"), id="one name for two expressions"),
        pytest.param(Enclose(INNER, INNER, "if a:"), Enclose(INNER, INNER, "if b:"), id="two headers"),
        pytest.param(Enclose(INNER, LATER, MAIN), Enclose(LATER, Span(6, 4, 6, 9), "if a:"), id="overlapping ranges"),
    ],
)
def test_conflict(one, other):
    for edits in ((one, other), (other, one)):
        codes = {edits[0]: "DP001", edits[1]: "DP002"}
        with pytest.raises(Conflict, match=r"DP00\d and DP00\d contradict each other at line 4") as caught:
            compose([finding("DP001", edits[0]), finding("DP002", edits[1])])
        assert {(edit, codes[edit]) for edit in edits} == {caught.value.first, caught.value.second}


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param((SetArg(INNER, "k", "1"), SetArg(INNER, "l", "1"), DropArg(INNER, "m")), id="several arguments"),
        pytest.param((SetArg(INNER, "k", "1"), SetArg(LATER, "k", "2")), id="one argument of two calls"),
        pytest.param((SetArg(INNER, "k", "1"), MainOnly(INNER, "f"), Wrap(INNER, "f({})"), Hoist(INNER, "a")), id="kinds in company"),
        pytest.param((Replace(INNER, "a"), Before(INNER, "b"), Enclose(INNER, INNER, MAIN)), id="statement of the replaced expression's span"),
        pytest.param((Replace(DEEPER, "a"), Wrap(INNER, "f({})")), id="replacement inside a wrap"),
        pytest.param((Enclose(OUTER, OUTER, "if a:"), Enclose(INNER, LATER, MAIN)), id="nested ranges"),
        pytest.param((Enclose(INNER, INNER, MAIN), Enclose(LATER, LATER, MAIN)), id="neighbouring ranges"),
        pytest.param((Before(INNER, "a"), Before(INNER, "b"), After(INNER, "a"), First(INNER, "a")), id="several insertions"),
    ],
)
def test_no_conflict(edits):
    assert set(edits) == set(composed(*edits))


def test_imports_of_one_name_for_two_things():
    with pytest.raises(Conflict, match="DP001 and DP002 contradict each other: they import two things as c"):
        compose([finding("DP001", AddImport("from a import b as c")), finding("DP002", AddImport("import c"))])


def test_nothing():
    assert () == compose([finding("DP001")]).edits


@pytest.mark.parametrize(
    ("edits", "left"),
    [
        pytest.param((AddImport("import a"), AddImport("import a")), (AddImport("import a"),), id="equal edits merge"),
        pytest.param((Replace(INNER, "a"), Replace(INNER, "a")), (Replace(INNER, "a"),), id="equal replacements merge"),
        pytest.param((SetArg(INNER, "k", "1"), SetArg(INNER, "k", "1", 2)), (SetArg(INNER, "k", "1", 2),), id="the value that knows its position"),
        pytest.param((Delete(OUTER), Wrap(INNER, "f({})"), Delete(LATER)), (Delete(OUTER),), id="deleted code needs no edits"),
        pytest.param((Delete(OUTER), First(OUTER, "a"), Enclose(OUTER, OUTER, MAIN)), (Delete(OUTER),), id="nor does the deleted statement"),
        pytest.param(
            (Delete(OUTER), Before(OUTER, "a"), After(OUTER, "b")),
            (Before(OUTER, "a"), After(OUTER, "b"), Delete(OUTER)),
            id="but what goes beside it stays",
        ),
        pytest.param((Enclose(OUTER, OUTER, MAIN), Enclose(INNER, INNER, MAIN)), (Enclose(OUTER, OUTER, MAIN),), id="equal guard under a guard"),
        pytest.param((Delete(INNER), Enclose(INNER, LATER, MAIN)), (Delete(INNER), Enclose(INNER, LATER, MAIN)), id="deleted within a guard"),
    ],
)
def test_what_is_left(edits, left):
    assert left == composed(*edits)


def test_insertions_at_one_place_go_by_code_then_text():
    findings = [
        finding("DP2", Before(INNER, "a")),
        finding("DP1", Before(INNER, "c"), Before(INNER, "b")),
        finding("DP0", Before(INNER, "a")),
    ]

    assert (Before(INNER, "a"), Before(INNER, "b"), Before(INNER, "c")) == compose(findings).edits


def test_the_order_of_the_findings_does_not_matter():
    findings = [
        finding("DP1", SetArg(INNER, "k", "1"), AddImport("import a"), Hoist(DEEPER, "a")),
        finding("DP2", Wrap(INNER, "f({})"), SetArg(INNER, "k", "1", 1), Before(OUTER, "z")),
        finding("DP3", Enclose(OUTER, OUTER, MAIN), Before(OUTER, "a"), AddImport("import a")),
        finding("DP4", Enclose(LATER, LATER, MAIN), After(LATER, "a"), Delete(Span(8, 0, 8, 1)), Wrap(Span(8, 0, 8, 1), "{}")),
    ]
    plans = set()
    for seed in range(50):
        random.Random(seed).shuffle(findings)
        plans.add(compose(findings))

    assert 1 == len(plans)


TEXT = """\
def f(a):
    g(a, k=h(1), l={'i': h(a), 'j': 2})
    x
    y
"""
CALL, KEYWORD, DISPLAY, ITEM = Span(2, 4, 2, 39), Span(2, 11, 2, 15), Span(2, 19, 2, 38), Span(2, 25, 2, 29)
NEXT, LAST, DEF = Span(3, 4, 3, 5), Span(4, 4, 4, 5), Span(1, 0, 4, 5)

#: for each kind two spellings of one wish, and another wish at the same place (None: every other one is allowed beside it)
KINDS: dict[type, tuple[Edit, Edit, Edit | None]] = {
    SetArg: (SetArg(CALL, "m", "f(1)"), SetArg(CALL, "m", "f( 1 )", 3), SetArg(CALL, "m", "2")),
    DropArg: (DropArg(CALL, "k"), DropArg(CALL, "k", 1, ("l",)), SetArg(CALL, "k", "2")),
    SetItem: (SetItem(DISPLAY, "n", "'1'"), SetItem(DISPLAY, "n", '"1"'), SetItem(DISPLAY, "n", "2")),
    DropItem: (DropItem(DISPLAY, "j"), DropItem(DISPLAY, "j"), SetItem(DISPLAY, "j", "2")),
    Replace: (Replace(CALL, "z(1,2)"), Replace(CALL, "z(1, 2)"), Replace(CALL, "z(1)")),
    Wrap: (Wrap(CALL, "f({}, 1)"), Wrap(CALL, "f( {},1 )"), Wrap(CALL, "f({}, 2)")),
    MainOnly: (MainOnly(CALL, "d.main_only"), MainOnly(CALL, "d . main_only"), MainOnly(CALL, "d.others")),
    Hoist: (Hoist(CALL, "n", "u(n)", "with h(1,2):"), Hoist(CALL, "n", "u( n )", "with h(1, 2):"), Hoist(CALL, "m")),
    Before: (Before(CALL, "u(1,2)"), Before(CALL, "u(1, 2)"), None),
    After: (After(CALL, "if a: u()"), After(CALL, "if a:\n    u()"), None),
    Comment: (Comment(CALL, ("# a",)), Comment(CALL, ("# a",)), None),
    First: (First(DEF, "u = 'a'"), First(DEF, 'u = "a"'), None),
    Enclose: (Enclose(CALL, CALL, "with a(1,2):"), Enclose(CALL, CALL, "with a(1, 2):"), Enclose(CALL, CALL, "with b:")),
    Delete: (Delete(CALL), Delete(CALL), None),
    AddImport: (AddImport("from a import b"), AddImport("from  a  import (b)"), AddImport("from c import b")),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_meaning_is_one_edit_and_two_are_named(kind):
    one, alike, other = KINDS[kind]
    for first, second in ((one, alike), (alike, one)):
        (left,) = compose([finding("DP001", first), finding("DP002", second)], TEXT).edits
        better = alike if kind in (SetArg, DropArg) else first  # it knows the position
        assert ast.dump(ast.parse(apply(TEXT, Plan((left,))))) == ast.dump(ast.parse(apply(TEXT, Plan((better,)))))
    for first, second in ((one, other), (other, one)) if other is not None else ():
        with pytest.raises(Conflict, match=r"DP00[12] and DP00[12] contradict each other"):
            compose([finding("DP001", first), finding("DP002", second)], TEXT)


_REPLACED = {SetArg, DropArg, SetItem, DropItem, Wrap, MainOnly, Hoist}  # a Replace of the call would lose them


@pytest.mark.parametrize(("one", "other"), list(combinations(KINDS, 2)), ids=lambda kind: kind.__name__)
def test_edits_of_two_kinds_at_one_place_go_together_or_are_named(one, other):
    edits = (KINDS[one][0], KINDS[other][0])
    kinds = {one, other}
    plans: list[Plan | None] = []
    for first, second in (edits, edits[::-1]):
        try:
            plans.append(compose([finding("DP001", first), finding("DP002", second)], TEXT))
        except Conflict:
            plans.append(None)

    plan, again = plans
    assert plan == again
    assert (plan is None) == (Replace in kinds and bool(kinds & _REPLACED))
    if plan is not None:
        lost = Delete in kinds and not kinds & {Before, After, First, AddImport}
        assert set(plan.edits) == ({Delete(CALL)} if lost else set(edits))
        assert verify(TEXT, apply(TEXT, plan), plan) == ()


@pytest.mark.parametrize(
    ("edits", "left"),
    [
        pytest.param((Replace(CALL, "w(g(a, k=h(1), l={'i': h(a), 'j': 2}))"), Wrap(CALL, "w({})")), Wrap(CALL, "w({})"), id="replacement, wrap"),
        pytest.param((Replace(KEYWORD, "o(h, 1)"), MainOnly(KEYWORD, "o")), MainOnly(KEYWORD, "o"), id="replacement, main only"),
        pytest.param((SetArg(CALL, "k", "w(h(1))"), Wrap(KEYWORD, "w({})")), Wrap(KEYWORD, "w({})"), id="argument, wrap of its value"),
        pytest.param((SetArg(CALL, "a", "b", 0), Replace(Span(2, 6, 2, 7), "b")), Replace(Span(2, 6, 2, 7), "b"), id="positional argument, its value"),
        pytest.param((SetItem(DISPLAY, "i", "w(h(a))"), Wrap(ITEM, "w({})")), Wrap(ITEM, "w({})"), id="item, wrap of its value"),
        pytest.param((DropArg(CALL, "k"), Wrap(KEYWORD, "w({})")), DropArg(CALL, "k"), id="nothing goes into a dropped argument"),
        pytest.param((DropItem(DISPLAY, "i"), Hoist(ITEM, "n")), DropItem(DISPLAY, "i"), id="nothing is hoisted out of a dropped item"),
        pytest.param((Enclose(CALL, NEXT, MAIN), Enclose(NEXT, LAST, MAIN)), Enclose(CALL, LAST, MAIN), id="overlapping ranges of one header"),
        pytest.param((Enclose(CALL, LAST, MAIN), Enclose(NEXT, NEXT, "if ddp.is_main() :")), Enclose(CALL, LAST, MAIN), id="nested ranges of one header"),
        pytest.param((AddImport("from a import b"), AddImport("from a import b, c")), AddImport("from a import b, c"), id="imports of more and less"),
        pytest.param((Delete(DEF), Delete(CALL)), Delete(DEF), id="deletion inside a deletion"),
    ],
)
def test_the_same_in_two_ways(edits, left):
    for first, second in (edits, edits[::-1]):
        assert (left,) == compose([finding("DP001", first), finding("DP002", second)], TEXT).edits


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param((SetArg(CALL, "k", "2"), Wrap(KEYWORD, "w({})")), id="argument, wrap of its old value"),
        pytest.param((SetArg(CALL, "a", "b", 0), Replace(Span(2, 6, 2, 7), "c")), id="positional argument, its old value"),
        pytest.param((SetItem(DISPLAY, "i", "2"), Hoist(ITEM, "n")), id="item, hoist of its old value"),
        pytest.param((SetArg(CALL, "k", "2"), SetArg(KEYWORD, "k", "2")), id="argument, call in its old value"),
    ],
)
def test_two_values_at_two_anchors(edits):
    for first, second in (edits, edits[::-1]):
        with pytest.raises(Conflict, match=r"DP00[12] and DP00[12] contradict each other at line 2"):
            compose([finding("DP001", first), finding("DP002", second)], TEXT)


def test_a_header_is_kept_where_another_one_stands_between():
    """``autocast(True)`` inside ``autocast(False)`` inside ``autocast(True)``."""
    edits = (Enclose(DEF, DEF, MAIN), Enclose(CALL, LAST, "with a:"), Enclose(NEXT, NEXT, MAIN))

    assert set(edits) == set(composed(*edits))


def test_what_is_hoisted_under_a_guard_needs_no_equal_header():
    edits = composed(Enclose(CALL, LAST, "with a:"), Hoist(KEYWORD, "n", header="with  a:"), Wrap(KEYWORD, "w({})"))

    assert set(edits) == {Enclose(CALL, LAST, "with a:"), Hoist(KEYWORD, "n"), Wrap(KEYWORD, "w({})")}
    assert "    with a:\n        n = w(h(1))\n        g(a, k=n" in apply(TEXT, Plan(edits))


def test_code_that_does_not_parse_means_itself():
    assert composed(Before(NEXT, "x ="), Before(NEXT, "x =")) == (Before(NEXT, "x ="),)
    assert composed(Replace(KEYWORD, "1 +"), Wrap(CALL, "f({}")) == (Wrap(CALL, "f({}"), Replace(KEYWORD, "1 +"))
    with pytest.raises(Conflict):
        compose([finding("DP001", Replace(KEYWORD, "1 +"), Wrap(KEYWORD, "{} +"), MainOnly(KEYWORD, "a b"))], TEXT)


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param((AddImport("from a import b, c"), AddImport("from a import b, d")), id="imports that have a name in common"),
        pytest.param((AddImport("from a import b"), AddImport("import c.d")), id="imports that have none"),
        pytest.param((SetArg(NEXT, "k", "2"), Wrap(NEXT, "w({})")), id="an argument of what is no call"),
        pytest.param((SetItem(NEXT, "k", "2"), Wrap(NEXT, "w({})")), id="an item of what is no dict"),
        pytest.param((SetArg(CALL, "z", "b", 4), Wrap(KEYWORD, "w({})")), id="a position that is not taken"),
    ],
)
def test_edits_that_leave_each_other_alone(edits):
    assert set(edits) == set(compose([finding("DP001", *edits)], TEXT).edits)


@pytest.mark.parametrize("other", [Wrap(Span(9, 0, 9, 1), "b"), MainOnly(Span(9, 0, 9, 1), "b")])
def test_what_stands_nowhere_comes_to_nothing(other):
    with pytest.raises(Conflict):
        compose([finding("DP001", Replace(Span(9, 0, 9, 1), "b"), other)], TEXT)
