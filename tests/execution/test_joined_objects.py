"""Objects that only some outcomes of a branch have made."""

from __future__ import annotations

import pytest

from dpmigrate.execution.values import UNBOUND
from tests.execution.paper import executed

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
