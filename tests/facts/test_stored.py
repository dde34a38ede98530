"""What a statement leaves in a variable, wholly or by index."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.names import Names
from dpmigrate.facts.stored import stored


def _stored(line: str) -> list[tuple[str, list[str]]]:
    tree = ast.parse(f"import numpy as np\n{line}")
    names = Names(tree)
    return [(ast.unparse(s.holder), [ast.unparse(i) for i in s.index]) for s in stored(names, tree.body[1])]


@pytest.mark.parametrize("line", ["f(x)", "x.sum()", "print(x)", "for a in x:\n    pass", "np.sum(x)", "x == 3"])
def test_nothing_is_left(line: str) -> None:
    assert _stored(line) == []


@pytest.mark.parametrize(
    ("line", "holder", "index"),
    [
        ("x = y", "x", []),
        ("self.x = y", "self.x", []),
        ("x += y", "x", []),
        ("x.copy_(y)", "x", []),
        ("x.append(y)", "x", [":"]),
        ("x[i] = y", "x", ["i"]),
        ("x.data[i] = y", "x", ["i"]),
        ("x[i][k] = y", "x", ["k", "i"]),
        ("x.index_copy_(0, i, y)", "x", ["i"]),
        ("np.add.at(x, i, y)", "x", ["i"]),
    ],
)
def test_left_in_a_variable(line: str, holder: str, index: list[str]) -> None:
    (found,) = _stored(line)
    assert (found[0], sorted(found[1])) == (holder, sorted(index))


@pytest.mark.parametrize("line", ["(a if t else b).append(y)", "(a or b).append(y)", "(a if t else b if u else a).extend(y)"])
def test_left_in_one_of_several(line: str) -> None:
    assert {holder for holder, _ in _stored(line)} == {"a", "b"}


def test_left_in_an_entry_or_in_a_variable() -> None:
    assert _stored("(a[i] if t else self.b).append(y)") == [("a", ["i"]), ("self.b", [":"])]
