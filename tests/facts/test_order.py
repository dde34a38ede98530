"""What runs before what."""

from __future__ import annotations

import ast

import pytest

from tests.facts.probe import all_probed

_PROGRAM = """
def early():
    probe("before")
def late():
    probe("after")
def any_time():
    probe("")
def nobody():
    probe("before")
early()
any_time()
probe("before")
x = 1
MARK = 2
probe("after")
late()
any_time()
"""


@pytest.mark.parametrize("index", [0, 1, 2, 4, 5])
def test_before_or_after_a_statement(index: int) -> None:
    found, nodes = all_probed(_PROGRAM)
    (mark,) = (n for n in found.names.nodes if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "MARK")
    assert found.values.order.when(nodes[index], mark) == nodes[index].value, nodes[index].lineno  # type: ignore[attr-defined]


_BRANCHES = """
if a:
    probe(1)
    one()
else:
    probe(2)
    two()
probe(3)
def one():
    probe(4)
def two():
    probe(5)
"""


@pytest.mark.parametrize(("one", "other", "apart"), [(0, 2, False), (0, 3, False), (3, 2, False), (0, 1, True), (0, 4, True), (3, 4, True)])
def test_only_one_of_two_runs(one: int, other: int, apart: bool) -> None:
    found, nodes = all_probed(_BRANCHES)
    assert found.values.order.apart(nodes[one], nodes[other]) is apart


def test_between_two_statements() -> None:
    found, (before, inside, called, after) = all_probed(
        "def run():\n    probe(1)\n    a = 1\n    probe(2)\n    f()\n    b = 2\nrun()\ndef f():\n    probe(3)\nprobe(4)"
    )
    first, last = (next(n for n in found.names.nodes if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == w) for w in "ab")
    assert [found.values.order.amid(n, first, last) for n in (before, inside, called, after)] == [False, True, True, False]
