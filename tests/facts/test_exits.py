"""Where a loop or the program ends early."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.endings import exit_value, is_exit
from dpmigrate.facts.exits import exits
from tests.pipeline import script


def _exits(body: str) -> list[tuple[str, str]]:
    found = script("import sys\nfor x in data:\n    " + body.replace("\n", "\n    "))
    (loop,) = (n for n in found.names.nodes if isinstance(n, ast.For) and ast.unparse(n.iter) == "data")
    return [(ast.unparse(e.node), ast.unparse(e.test) if e.test is not None else "") for e in exits(found.names, found.roles, loop)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("f(x)", id="none"),
        pytest.param("for y in x:\n    if y > f():\n        break", id="of a loop inside"),
        pytest.param("def g():\n    if f():\n        return 1", id="of a function inside"),
        pytest.param("if 3 > 2:\n    break", id="settings decide"),
    ],
)
def test_no_early_end(body: str) -> None:
    assert _exits(body) == []


@pytest.mark.parametrize(
    ("body", "node", "test"),
    [
        ("if f(x):\n    break", "break", "f(x)"),
        ("if f(x):\n    continue", "continue", "f(x)"),
        ("if f(x):\n    sys.exit(1)", "sys.exit(1)", "f(x)"),
        ("try:\n    f(x)\nexcept ValueError:\n    continue", "continue", ""),
    ],
)
def test_early_ends(body: str, node: str, test: str) -> None:
    assert _exits(body) == [(node, test)]


@pytest.mark.parametrize(
    ("line", "ends", "value"),
    [
        ("f()", False, None),
        ("raise ValueError(3)", False, None),
        ("sys.exit()", True, "0"),
        ("sys.exit(main())", True, "main()"),
        ("exit(3)", True, "3"),
        ("raise SystemExit(2)", True, "2"),
    ],
)
def test_the_end_of_the_program(line: str, ends: bool, value: str | None) -> None:
    found = script(f"import sys\n{line}")
    stmt = found.names.tree.body[1]
    given = exit_value(found.names, stmt) if ends else None
    assert (is_exit(found.names, stmt), ast.unparse(given) if given is not None else None) == (ends, value)
