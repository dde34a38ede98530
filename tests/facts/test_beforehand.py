"""What a test will say, as it reads before the forward pass."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.beforehand import early, plain, stores
from dpmigrate.facts.names import position
from tests.facts.probe import all_probed

_PROGRAM = """
n, k = 4, 0
for i, x in enumerate(loader):
    probe(0)
    {between}
    probe({test})
def touch():
    global k
    k = 3
"""


def _early(test: str, between: str = "pass") -> str | None:
    found, (start, asked) = all_probed(_PROGRAM.format(test=test, between=between))
    (loop,) = (s for s in found.names.nodes if isinstance(s, ast.For))
    said = early(found, loop, asked, position(start), position(asked))
    return ast.unparse(said) if said is not None else None


@pytest.mark.parametrize(
    ("test", "between", "why"),
    [
        ("f(k)", "pass", "a call"),
        ("k > 1", "k = f()", "made of a call in between"),
        ("k > 1", "k += 1\n    k += 1", "given twice in between"),
        ("k > 1", "k -= 1", "not an addition"),
        ("k > 1", "touch()", "another function may give it"),
        ("k > 1", "k, j = 1, 2", "one of several"),
        ("k > 1", "if n:\n        k += 1", "under a test"),
        ("x[0] > 1", "pass", "an element"),
    ],
)
def test_not_known_before(test: str, between: str, why: str) -> None:
    assert _early(test, between) is None, why


@pytest.mark.parametrize(
    ("test", "between", "said"),
    [
        ("i % n == 0", "pass", "i % n == 0"),
        ("k % n == 0", "k += 1", "(k + 1) % n == 0"),
        ("not k and i + 1 == len(loader)", "pass", "not k and i + 1 == len(loader)"),
        ("last", "last = i == n", "i == n"),
        ("-k < 3", "k = i + 1", "-(i + 1) < 3"),
    ],
)
def test_known_before(test: str, between: str, said: str) -> None:
    assert _early(test, between) == said


def test_what_means_the_same_throughout() -> None:
    found, (n, i, k) = all_probed("n = 4\nk = 0\nfor i, x in enumerate(loader):\n    k += 1\n    probe(n)\n    probe(i)\n    probe(k)")
    (loop,) = (s for s in found.names.nodes if isinstance(s, ast.For))
    assert [plain(found, loop, e) for e in (n, i, k)] == [True, True, False]
    assert isinstance(k, ast.Name) and [ast.unparse(s) for s in stores(found.roles, loop, k)] == ["k += 1"]
