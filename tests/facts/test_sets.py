"""Which expressions are sets, and where their order becomes that of something else."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.sets import is_set, ordered
from tests.facts.probe import probed
from tests.pipeline import script

_HEAD = "words = {w for w in text}\ncopy = words\nboth = words | other\nnumbers = [1, 2]\n"


@pytest.mark.parametrize("expression", ["numbers", "sorted(words)", "len(words)", "unknown", "{'a': 1}", "'{1, 2}'"])
def test_no_set(expression: str) -> None:
    found, node = probed(f"{_HEAD}probe({expression})")
    assert not is_set(found.roles, node)


@pytest.mark.parametrize("expression", ["words", "copy", "{1, 2}", "set(numbers)", "frozenset(numbers)", "words.union(numbers)", "words - {1}"])
def test_sets(expression: str) -> None:
    found, node = probed(f"{_HEAD}probe({expression})")
    assert is_set(found.roles, node)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("order = sorted(words)", id="sorted"),
        pytest.param("n = len(words)", id="counted"),
        pytest.param("known = 'a' in words", id="asked"),
        pytest.param("more = {w + 'x' for w in words}", id="another set"),
        pytest.param("order = list(numbers)", id="a list"),
    ],
)
def test_no_order(line: str) -> None:
    assert list(ordered(script(_HEAD + line).roles)) == []


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("order = list(words)", "list(words)"),
        ("order = [w for w in words]", "words"),
        ("index = {w: i for i, w in enumerate(words)}", "words"),
        ("numbers.extend(words)", "words"),
        ("text = ' '.join(words)", "words"),
    ],
)
def test_an_order(line: str, source: str) -> None:
    (found,) = ordered(script(_HEAD + line).roles)
    assert ast.unparse(found[1]) == source
