"""What calls hand back of what they are given."""

from __future__ import annotations

import ast

import pytest

from tests.facts.probe import probed

_PROGRAM = """
from torch import nn
one, two = nn.Linear(1, 1), nn.Conv2d(2, 2, 2)
def same(net):
    return net
def both(net, other):
    return net, other
def another(net):
    return nn.ReLU()
def cycle(things):
    while True:
        for thing in things:
            yield thing
a, b = both(one, two)
probe({expression})
"""


def _made(expression: str) -> list[str]:
    found, node = probed(_PROGRAM.format(expression=expression))
    return sorted(v.qual.rpartition(".")[2] for v in found.values.eval(node))


@pytest.mark.parametrize(("expression", "made"), [("another(one)", ["ReLU"]), ("one", ["Linear"])])
def test_something_else(expression: str, made: list[str]) -> None:
    assert _made(expression) == made


@pytest.mark.parametrize(
    ("expression", "made"), [("same(one)", ["Linear"]), ("same(net=two)", ["Conv2d"]), ("same(same(one))", ["Linear"]), ("a", ["Linear"]), ("b", ["Conv2d"])]
)
def test_each_call_gives_what_that_call_was_given(expression: str, made: list[str]) -> None:
    assert _made(expression) == made


@pytest.mark.parametrize(("expression", "handed"), [("same(one)", None), ("another(one)", None), ("cycle(one)", "one"), ("cycle(things=two)", "two")])
def test_generators_hand_on(expression: str, handed: str | None) -> None:
    found, node = probed(_PROGRAM.format(expression=expression))
    assert isinstance(node, ast.Call)
    given = found.values.returned.handed_on(node)
    assert (ast.unparse(given) if given is not None else None) == handed
