"""Each way to spoil an edit does what its name says, and finds its edits in the recorded programs."""

from __future__ import annotations

import ast
from pathlib import Path

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
from dpmigrate.model import Span
from dpmigrate.rewrite.apply import apply
from dpmigrate.rewrite.compose import Plan
from tests.mutation.labels import code_of, label
from tests.mutation.mutants import WAYS
from tests.mutation.operators import OPERATORS
from tests.mutation.places import Places

HERE = Span(1, 0, 1, 1)
PROGRAM = """\
import os
def main():
    model = make()
    for epoch in range(3):
        for x in loader:
            total += model(x)
        print(total)
    return total
"""


def spans(text: str) -> dict[str, Span]:
    """The statements and expressions of a text by their first line of code."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt | ast.expr)]
    found: dict[str, Span] = {}
    for node in nodes:
        kind = "" if isinstance(node, ast.expr) else "!"
        found.setdefault(kind + ast.unparse(node).splitlines()[0], Span.of(node))
    return found


AT = spans(PROGRAM)


def spoiled(way: str, edit: Edit, text: str = PROGRAM) -> list[str]:
    """The texts that an operator makes of a text with one edit."""
    places = Places([ast.parse(text)])
    return [apply(text, Plan(instead)) for instead in OPERATORS[way](edit, places)]


def added(way: str, edit: Edit) -> list[list[str]]:
    """The lines round ``CODE`` of each text that the operator makes: the one above, and the one below."""
    out = []
    for text in spoiled(way, edit):
        lines = ["", *text.splitlines(), ""]
        at = next(i for i, line in enumerate(lines) if "ddp.code()" in line)
        out.append([lines[at - 1], lines[at], lines[at + 1]])
    return out


def test_an_edit_that_is_missing_leaves_nothing() -> None:
    assert spoiled("missing", Before(AT["!for x in loader:"], "ddp.code()")) == [PROGRAM]
    assert spoiled("missing", Comment(AT["!import os"], ("# words",))) == []


LOOP = "    for epoch in range(3):"


@pytest.mark.parametrize(
    ("way", "edit", "want"),
    [
        (
            "other side",
            After(AT["!for x in loader:"], "ddp.code()"),
            [LOOP, "        ddp.code()", "        for x in loader:"],
        ),
        (
            "other side",
            Before(AT["!print(total)"], "ddp.code()"),
            ["        print(total)", "        ddp.code()", "    return total"],
        ),
        (
            "too early",
            After(AT["!print(total)"], "ddp.code()"),
            [LOOP, "        ddp.code()", "        for x in loader:"],
        ),
        (
            "too late",
            Before(AT["!for epoch in range(3):"], "ddp.code()"),
            ["        print(total)", "    ddp.code()", "    return total"],
        ),
        (
            "too late",
            First(AT["!for epoch in range(3):"], "ddp.code()"),
            ["        print(total)", "        ddp.code()", "    return total"],
        ),
        (
            "one level out",
            First(AT["!for epoch in range(3):"], "ddp.code()"),
            ["    model = make()", "    ddp.code()", LOOP],
        ),
        (
            "one level out",
            After(AT["!for x in loader:"], "ddp.code()"),
            ["        print(total)", "    ddp.code()", "    return total"],
        ),
        (
            "one level in",
            After(AT["!for x in loader:"], "ddp.code()"),
            ["            total += model(x)", "            ddp.code()", "        print(total)"],
        ),
        (
            "one level in",
            Before(AT["!for epoch in range(3):"], "ddp.code()"),
            [LOOP, "        ddp.code()", "        for x in loader:"],
        ),
        (
            "one level in",
            First(AT["!for epoch in range(3):"], "ddp.code()"),
            ["        for x in loader:", "            ddp.code()", "            total += model(x)"],
        ),
        (
            "on rank 0 alone",
            Before(AT["!return total"], "ddp.code()"),
            ["    if ddp.is_main():", "        ddp.code()", "    return total"],
        ),
    ],
)
def test_code_stands_elsewhere(way: str, edit: Edit, want: list[str]) -> None:
    assert added(way, edit) == [want]


def test_code_stands_before_the_name_that_it_reads_is_bound() -> None:
    (text,) = spoiled("too early", Before(AT["!return total"], "model = ddp.wrap(model)"))
    assert text.splitlines()[2:4] == ["    model = ddp.wrap(model)", "    model = make()"]


def test_code_never_goes_above_imports_or_docstring() -> None:
    text = '"""What."""\nimport os\na()\nb()\n'
    (got,) = spoiled("too early", Before(spans(text)["!b()"], "ddp.code()"), text)
    assert got == '"""What."""\nimport os\nddp.code()\na()\nb()\n'


def test_nothing_is_outside_a_function() -> None:
    assert spoiled("one level out", First(AT["!def main():"], "ddp.code()")) == []
    assert spoiled("one level out", Before(AT["!model = make()"], "ddp.code()")) == []
    assert spoiled("one level out", Before(AT["!import os"], "ddp.code()")) == []


def test_code_in_a_handler_goes_beside_the_try() -> None:
    text = "try:\n    a()\nexcept E:\n    b()\n"
    (got,) = spoiled("one level out", Before(spans(text)["!b()"], "ddp.code()"), text)
    assert got == "ddp.code()\n" + text


def test_code_that_is_where_it_would_go_makes_no_mutant() -> None:
    assert spoiled("too early", First(AT["!for epoch in range(3):"], "ddp.code()")) == []
    assert spoiled("too late", Before(AT["!return total"], "ddp.code()")) == []
    assert spoiled("one level in", Before(AT["!print(total)"], "ddp.code()")) == []
    assert spoiled("one level in", First(AT["!for x in loader:"], "ddp.code()")) == []
    assert spoiled("on rank 0 alone", Before(AT["!print(total)"], "scaler.update()")) == []


@pytest.mark.parametrize(
    ("way", "first", "last", "want"),
    [
        ("a statement more", "!for x in loader:", "!for x in loader:", "!print(total)"),
        ("a statement less", "!for x in loader:", "!print(total)", "!for x in loader:"),
    ],
)
def test_a_header_holds_another_number_of_statements(
    way: str, first: str, last: str, want: str
) -> None:
    places = Places([ast.parse(PROGRAM)])
    edit = Enclose(AT[first], AT[last], "if ddp.is_main():")
    assert list(OPERATORS[way](edit, places)) == [(Enclose(AT[first], AT[want], edit.header),)]


def test_a_header_at_the_end_of_a_block_holds_no_more_and_one_over_one_statement_no_less() -> None:
    edit = Enclose(AT["!print(total)"], AT["!print(total)"], "if ddp.is_main():")
    assert spoiled("a statement more", edit) == []
    assert spoiled("a statement less", edit) == []


def test_a_header_stands_a_level_out_or_in() -> None:
    places = Places([ast.parse(PROGRAM)])
    edit = Enclose(AT["!for x in loader:"], AT["!for x in loader:"], "if ddp.is_main():")
    outer, inner = AT["!for epoch in range(3):"], AT["!total += model(x)"]
    ((out,),) = OPERATORS["one level out"](edit, places)
    ((into,),) = OPERATORS["one level in"](edit, places)
    assert (out, into) == (Enclose(outer, outer, edit.header), Enclose(inner, inner, edit.header))
    assert spoiled("one level out", Enclose(AT["!model = make()"], AT["!model = make()"], "x")) == []
    assert spoiled("one level in", Enclose(AT["!print(total)"], AT["!print(total)"], "x")) == []


@pytest.mark.parametrize(
    ("text", "at", "outside", "inside"),
    [
        ("x = f(g(a.b) + 1)", "g(a.b)", ["x = f(W(g(a.b) + 1))"], ["x = f(g(W(a.b)) + 1)"]),
        ("x = net().to(d)", "net().to(d)", [], ["x = W(net()).to(d)"]),
        ("x = make(size=n * 2)", "n * 2", ["x = W(make(size=n * 2))"], ["x = make(size=W(n) * 2)"]),
        ("if a < b: pass", "a < b", [], ["if W(a) < b: pass"]),
        ("if not a: pass", "not a", [], ["if not W(a): pass"]),
        ("x = a or b", "a or b", [], ["x = W(a) or b"]),
        ("x = a", "a", [], []),
        ("f(*a)", "a", [], []),
        ("x[a] = 1", "a", [], []),
    ],
)
def test_a_wrapping_goes_round_the_next_expression_or_a_part(
    text: str, at: str, outside: list[str], inside: list[str]
) -> None:
    edit = Wrap(spans(text)[at], "W({})")
    assert spoiled("one level out", edit, text) == outside
    assert spoiled("one level in", edit, text) == inside


def test_a_wrapping_goes_to_the_loop_outside_or_inside() -> None:
    text = "for e in outer:\n    for x in mid(inner):\n        for y in x:\n            pass\n"
    edit = Wrap(spans(text)["inner"], "W({})")
    out = spoiled("one level out", edit, text)
    assert [t.splitlines()[:2] for t in out] == [
        ["for e in outer:", "    for x in W(mid(inner)):"],
        ["for e in W(outer):", "    for x in mid(inner):"],
    ]
    (into,) = spoiled("one level in", edit, text)
    assert into.splitlines()[2] == "        for y in W(x):"


def test_what_stands_in_an_f_string_is_not_moved() -> None:
    text = 'print(f"{a}")\n'
    assert spoiled("one level out", Wrap(Span(1, 9, 1, 10), "W({})"), text) == []
    assert spoiled("one level in", Wrap(Span(1, 9, 1, 10), "W({})"), text) == []


@pytest.mark.parametrize(
    ("edit", "want"),
    [
        (
            Wrap(HERE, "ddp.wrap({}, find_unused=True)"),
            [Wrap(HERE, "ddp.wrap({})")],
        ),
        (
            SetArg(HERE, "sampler", "Sampler(a, shuffle=False, seed=3)"),
            [
                SetArg(HERE, "sampler", "Sampler(a, seed=3)"),
                SetArg(HERE, "sampler", "Sampler(a, shuffle=False)"),
            ],
        ),
        (
            After(HERE, "a, b, c = ddp.sum_all(a, b, c)"),
            [
                After(HERE, "b, c = ddp.sum_all(b, c)"),
                After(HERE, "a, c = ddp.sum_all(a, c)"),
                After(HERE, "a, b = ddp.sum_all(a, b)"),
            ],
        ),
        (
            First(HERE, "a, b = ddp.sum_all(a, b)\nc = a / b"),
            [
                First(HERE, "c = a / b"),
                First(HERE, "a, b = ddp.sum_all(a, b)"),
                First(HERE, "b = ddp.sum_all(b)\nc = a / b"),
                First(HERE, "a = ddp.sum_all(a)\nc = a / b"),
            ],
        ),
        (
            Enclose(HERE, HERE, "with ddp.accumulate(model, sync=last):"),
            [Enclose(HERE, HERE, "with ddp.accumulate(model):")],
        ),
        (Replace(HERE, "f(a, b=c)"), [Replace(HERE, "f(a)")]),
        (SetItem(HERE, "k", "f(a=1)"), [SetItem(HERE, "k", "f()")]),
        (Hoist(HERE, "n", "a()\nb()"), [Hoist(HERE, "n", "b()"), Hoist(HERE, "n", "a()")]),
        (Before(HERE, "ddp.barrier()"), []),
        (Before(HERE, "a, b = f(c)"), []),
        (MainOnly(HERE, "ddp.main_only"), []),
        (DropArg(HERE, "shuffle"), []),
        (AddImport("import os"), []),
        (Delete(HERE), []),
    ],
)
def test_parts_are_left_out_one_by_one(edit: Edit, want: list[Edit]) -> None:
    got = [one for instead in OPERATORS["part missing"](edit, Places([])) for one in instead]
    assert got == want


@pytest.mark.parametrize(
    ("edit", "want"),
    [
        (AddImport("import dpmigrate_runtime as ddp"), "import"),
        (SetArg(HERE, "sampler", "DistributedSampler(a, seed=ddp.common_seed())"), "sampler="),
        (DropArg(HERE, "shuffle"), "without shuffle="),
        (SetItem(HERE, "scaler", "scaler.state_dict()"), "['scaler']="),
        (DropItem(HERE, "shuffle"), "without ['shuffle']"),
        (Wrap(HERE, "{}.module"), ".module"),
        (Wrap(HERE, "{}.to(ddp.device())"), ".to()"),
        (Wrap(HERE, "{} * ddp.world_size()"), "ddp.world_size"),
        (Wrap(HERE, "not ddp.any_rank(not {})"), "ddp.any_rank"),
        (Wrap(HERE, "dpmigrate_runtime.local_batch({})"), "ddp.local_batch"),
        (Wrap(HERE, "scaler.scale(ddp.sum_loss({}))"), ".scale()"),
        (Wrap(HERE, "len({})"), "Wrap"),
        (Wrap(HERE, "ddp.weighted_mean({}, ddp.weight_of(y))"), "ddp.weighted_mean"),
        (MainOnly(HERE, "ddp.main_only"), "ddp.main_only"),
        (Enclose(HERE, HERE, "if ddp.is_main():"), "ddp.is_main"),
        (Enclose(HERE, HERE, "with torch.autocast(ddp.device().type):"), ".autocast()"),
        (Before(HERE, "if ddp.world_size() > 1:\n    raise"), "raise"),
        (Before(HERE, "model = ddp.wrap(model.to(device))"), "ddp.wrap"),
        (First(HERE, "loader.sampler.set_epoch(epoch)"), ".set_epoch()"),
        (Replace(HERE, "ddp.save"), "ddp.save"),
        (Replace(HERE, "self.main(noise)"), "Replace"),
        (Hoist(HERE, "status", "ddp.cleanup()"), "ddp.cleanup"),
        (Hoist(HERE, "train_set"), "Hoist"),
        (Delete(HERE), "Delete"),
        (Comment(HERE, ("# a",)), "Comment"),
    ],
)
def test_an_edit_is_called_by_what_it_brings(edit: Edit, want: str) -> None:
    assert label(edit) == want


def test_the_code_of_an_edit_is_python() -> None:
    for edit in (Wrap(HERE, "{}.module"), Enclose(HERE, HERE, "with a:"), MainOnly(HERE, "f")):
        ast.parse(code_of(edit))


def test_every_way_is_known_to_the_reader() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mutation.md").read_text(encoding="utf-8")
    assert [way for way in WAYS if f"| {way} |" not in page] == []
