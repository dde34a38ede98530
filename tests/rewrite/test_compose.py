"""compose: one plan whatever the order, contradictions named."""

from __future__ import annotations

import random

import pytest

from dpmigrate.edit import (
    AddImport,
    After,
    Before,
    Delete,
    DropArg,
    DropItem,
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
from dpmigrate.rewrite.compose import Conflict, compose

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
        pytest.param(Enclose(INNER, LATER, MAIN), Enclose(LATER, Span(6, 4, 6, 9), MAIN), id="overlapping ranges"),
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
