"""Objects that only some outcomes of a branch have made."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import UNBOUND, Unknown
from tests.execution.paper import executed, held, placed, run, uncovered

_CLASS = """
import sys


class Part:
    def __init__(self):
        self.size = 1
        self.width = self.size + 1
        if len(sys.argv) > 7:
            self.width = 5


def make(name):
    if name == "a":
        return Part()
    return None

"""


@pytest.mark.parametrize(
    "made",
    [
        pytest.param("part = make(sys.argv[1])\n", id="in a function that may give None"),
        pytest.param("if sys.argv[1] == 'a':\n    part = Part()\nelse:\n    part = Part()\n", id="on each side"),
        pytest.param("part = None\nif sys.argv[1] == 'a':\n    part = Part()\n", id="on one side"),
    ],
)
def test_an_object_has_its_fields_wherever_it_was_made(made: str) -> None:
    ex = executed(_CLASS + made)
    found = [ex.heap.read((n, name)) for n, o in ex.heap.objects.items() if o.kind == "instance" for name in ("size", "width")]
    assert found
    assert all(v and UNBOUND not in v for v in found)


_MANY = """
import sys
rank = len(sys.argv)
out = []
for a in [1, 2, 3, 4, 5]:
    for b in [1, 2, 3, 4, 5]:
        for c in [1, 2, 3, 4, 5]:
            out.append([a, b / c, {}])
first, last = out[0], out[-1]
last[1] = 0.5
x, y = first[1], last[2]
"""


def test_many_lists_that_one_place_writes_out_are_told_apart_no_more() -> None:
    text = _MANY.format("a * c")
    ex, scope = executed(text), run(text)
    assert not uncovered(ex, scope)
    assert all(not isinstance(a, Unknown) for name in ("first", "last", "x", "y") for a in held(ex, name))


@pytest.mark.parametrize(("third", "lies"), [("c", "uniform"), ("rank", "per rank")])
def test_what_one_of_them_holds_of_a_rank_is_in_all(third: str, lies: str) -> None:
    text = "import dpmigrate_runtime as ddp\n" + _MANY.format(third).replace("len(sys.argv)", "ddp.rank()")
    assert placed(executed(text), "y") == lies
