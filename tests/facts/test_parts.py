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
        ("[net.to(device) for net in (one, two)][1]", ["Conv2d"]),
        ("[net for net in [two, one]][1]", ["Linear"]),
        ("[net for net in (one, two) if net][1]", ["Conv2d", "Linear"]),
        ("[net for net in (*pair, two)][0]", ["Conv2d", "Linear"]),
        ("[net for net in pair][0]", ["Conv2d", "Linear"]),
    ],
)
def test_taken_out(expression: str, made: list[str]) -> None:
    assert _made(expression) == made


_FORWARDED = """
from torch import nn
one, two = nn.Linear(1, 1), nn.Conv2d(2, 2, 2)
def pair():
    return one, two
class Base:
    def __init__(self, net, other=None, *, last=None):
        self.net, self.other, self.last = net, other, last
class Own(Base):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
def plain(first, second=None, third=None):
    probe({expression})
Own(one, other=two, last=two)
plain({call})
"""


@pytest.mark.parametrize(
    ("call", "expression", "made"),
    [
        ("3", "Own(one, other=two).net", ["Linear"]),
        ("3", "Own(one, other=two, last=two).last", ["Conv2d"]),
        ("*pair()", "first", ["Linear"]),
        ("*pair()", "second", ["Conv2d"]),
        ("*pair()", "third", []),
        ("3, *pair()", "first", []),
        ("3, *pair()", "third", ["Conv2d"]),
        ("*pair(), two", "third", ["Conv2d", "Linear"]),
        ("*pair(), two", "first", ["Conv2d", "Linear"]),
        ("*unknown(), two", "second", ["Conv2d"]),
    ],
)
def test_arguments_that_are_handed_on_as_a_list(call: str, expression: str, made: list[str]) -> None:
    found, node = probed(_FORWARDED.format(call=call, expression=expression))
    assert sorted({v.qual.rpartition(".")[2] for v in found.values.eval(node)} & {"Linear", "Conv2d"}) == made


@pytest.mark.parametrize(
    ("expression", "made"),
    [
        ("pair[:1]", []),
        ("pair[-1:]", []),
        ("pair[1:][0]", ["Conv2d"]),
        ("pair[:2][1]", ["Conv2d"]),
        ("[m for m in pair[-1:]][0]", ["Conv2d", "Linear"]),
        ("pair[::-1][0]", ["Conv2d", "Linear"]),
        ("filled[:1][0]", ["Conv2d", "Linear"]),
    ],
)
def test_a_part_of_a_list_is_a_list(expression: str, made: list[str]) -> None:
    assert _made(expression) == made


def test_a_list_that_is_cut_again_and_again() -> None:
    text = "from torch import nn\nmodels = [nn.Linear(1, 1), nn.Conv2d(1, 1, 1)]\nwhile models:\n    first = models[0]\n    models = models[1:]\nprobe(first)"
    found, node = probed(text)
    assert sorted(v.qual.rpartition(".")[2] for v in found.values.eval(node)) == ["Conv2d", "Linear"]
