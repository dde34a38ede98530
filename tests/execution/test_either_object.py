"""A method of one of several objects that never exist both: what it writes is no longer what was."""

from __future__ import annotations

import pytest

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.values import Value, const
from tests.execution.paper import executed, run, uncovered

_CLASSES = """
import sys


class Base:
    def __init__(self):
        self.mode = "made"

    def switch(self, mode):
        self.mode = mode


class First(Base):
    pass


class Second(Base):
    pass


{made}
part.switch("used")
"""

_ONE = {
    "a branch": "part = First() if len(sys.argv) > 1 else Second()",
    "arms of a branch": "if len(sys.argv) > 1:\n    part = First()\nelse:\n    part = Second()",
    "early returns": (
        "def make(name):\n    if name == 'a':\n        return First()\n    if name == 'b':\n"
        "        return Second()\n    raise ValueError(name)\n\n\npart = make((*sys.argv, 'a')[-1])"
    ),
    "a table of classes": "part = {'a': First, 'b': Second}[(*sys.argv, 'a')[-1]]()",
}
_BOTH = {
    "both are made before": "a, b = First(), Second()\npart = a if len(sys.argv) > 1 else b",
    "one is made before": "a = First()\npart = a if len(sys.argv) > 1 else Second()",
    "both are made in one arm": (
        "b = None\nif len(sys.argv) > 1:\n    a, b = First(), Second()\n    part = a\nelse:\n    part = a = First()\n"
        "if b is not None and len(sys.argv) > 2:\n    part = b"
    ),
    "a loop makes one after the other": (
        "kept = []\nfor i in range(len(sys.argv) + 3):\n    if i % 2:\n        part = First()\n    else:\n"
        "        part = Second()\n    kept.append(part)"
    ),
    "a loop makes many of each": (
        "for i in range(len(sys.argv) + 3):\n    if i % 2:\n        parts = [First() for _ in sys.argv]\n    else:\n"
        "        parts = [Second() for _ in sys.argv]\n    part = parts[0]"
    ),
    "a function is called twice": (
        "def make(name):\n    if name == 'a':\n        return First()\n    return Second()\n\n\n"
        "other = make((*sys.argv, 'b')[-1])\npart = make((*sys.argv, 'a')[-1])\n"
        "part = other if len(sys.argv) > 5 else part"
    ),
}


def _modes(ex: Execution) -> list[Value | None]:
    return [ex.heap.read((n, "mode")) for n, o in ex.heap.objects.items() if o.kind == "instance"]


@pytest.mark.parametrize("made", _ONE.values(), ids=_ONE)
def test_of_two_of_which_one_exists_each_is_written(made: str) -> None:
    text = _CLASSES.format(made=made)
    ex, scope = executed(text), run(text)
    assert not uncovered(ex, scope)
    assert _modes(ex) == [const("used")] * 2


@pytest.mark.parametrize("made", _BOTH.values(), ids=_BOTH)
def test_of_two_that_may_exist_one_stays_as_it_was(made: str) -> None:
    text = _CLASSES.format(made=made)
    ex, scope = executed(text), run(text)
    assert not uncovered(ex, scope)
    assert any(v is not None and const("made")[0] in v for v in _modes(ex))
