"""What containers hold, and what is taken out of them."""

from __future__ import annotations

import pytest

from tests.facts.probe import probed

_PROGRAM = """
from torch import nn
one, two = nn.Linear(1, 1), nn.Conv2d(2, 2, 2)
pair = (one, two)
table = {{"a": one, "b": two}}
filled, named = [], {{}}
filled.append(one)
filled.extend([two])
named["a"] = one
named.update(b=two)
named.setdefault("c", one)
probe({expression})
"""


def _made(expression: str) -> list[str]:
    found, node = probed(_PROGRAM.format(expression=expression))
    return sorted({v.qual.rpartition(".")[2] for v in found.values.eval(node)} & {"Linear", "Conv2d"})


@pytest.mark.parametrize("expression", ["pair", "table", "[]", "len(pair)", "unknown[0]", "pair[0].weight"])
def test_nothing_is_taken_out(expression: str) -> None:
    assert _made(expression) == []


@pytest.mark.parametrize(
    ("expression", "made"),
    [
        ("pair[0]", ["Linear"]),
        ("[*pair][1]", ["Conv2d"]),
        ("[two, *pair][0]", ["Conv2d"]),
        ("[two, *pair][1]", ["Linear"]),
        ("[*pair, two][1]", ["Conv2d", "Linear"]),
        ("pair[-1]", ["Conv2d", "Linear"]),
        ("table['b']", ["Conv2d"]),
        ("table[key]", ["Conv2d", "Linear"]),
        ("table.get('a')", ["Linear"]),
        ("filled[0]", ["Conv2d", "Linear"]),
        ("named['a']", ["Linear"]),
        ("named['b']", ["Conv2d"]),
    ],
)
def test_taken_out(expression: str, made: list[str]) -> None:
    assert _made(expression) == made
