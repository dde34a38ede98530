"""Objects that add up what a loop gives them."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from dpmigrate.facts.carried import Carried
from dpmigrate.facts.meters import Meter, meters
from tests.pipeline import script

_TOP = """\
import torch
from torch.utils.data import DataLoader
loader = DataLoader(data)
model = torch.nn.Linear(1, 1)
"""
_METER = """\
class Meter:
    def __init__(self):
        self.reset()
    def reset(self):
        self.sum = self.count = 0
        self.val = 0
{update}
"""
_UPDATE = """\
def update(self, val, n=1):
    "Adds up."
    if isinstance(val, torch.Tensor):
        val = val.item()
    self.val = val
    self.sum += val * n
    self.count += n
    self.avg = self.sum / self.count
"""


def _meters(update: str = _UPDATE, body: str = "m.update(x, len(x))", before: str = "m = Meter()", make: str = _METER) -> list[Meter]:
    text = _TOP + make.format(update=indent(dedent(update), "    ")) + dedent(before) + "\nfor x in loader:\n" + indent(dedent(body), "    ")
    found = script(text)
    return meters(Carried(found.roles, found.roles.batch_loops[0]))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"body": "print(x)"}, id="no meter"),
        pytest.param({"body": "m.update(x)\nm.reset()"}, id="reset in the loop"),
        pytest.param({"update": "def update(self, v):\n    self.last = v"}, id="nothing is added"),
        pytest.param({"update": "def update(self, v):\n    self.all.append(v)"}, id="collects"),
        pytest.param({"update": "def update(self, v):\n    self.sum += v\n    print(v)"}, id="prints"),
        pytest.param({"update": "def update(self, v):\n    self.sum -= v"}, id="takes away"),
        pytest.param({"update": "def update(self, v):\n    self.sum += v * self.sum"}, id="grows by itself"),
        pytest.param({"update": "def update(self, v):\n    self.sum += v\n    self.sum += 1"}, id="adds twice"),
        pytest.param({"update": "def update(self, v):\n    self.avg = 0.9 * self.avg + 0.1 * v"}, id="a running average"),
        pytest.param({"update": "def update(self, v):\n    self.sum += v\n    self.rate = self.sum / clock()"}, id="computes with something else"),
        pytest.param({"update": "def update(self, v):\n    self.sum += v\n    self.root = math.sqrt(self.sum)"}, id="computes by a call"),
        pytest.param({"update": "def update(self, v):\n    if v > 0:\n        self.sum += v"}, id="adds under a test"),
        pytest.param({"update": "@staticmethod\ndef update():\n    pass", "body": "m.update()"}, id="no object"),
        pytest.param({"before": "m = torch.nn.Linear(1, 1)"}, id="an object of torch"),
        pytest.param({"before": "m = Meter() if criterion else None"}, id="not always there"),
        pytest.param({"before": "m = None\nif criterion:\n    m = Meter()", "body": "if m is not None:\n    m.update(x)"}, id="there under a test"),
    ],
)
def test_no_meter(parts: dict[str, str]) -> None:
    assert _meters(**parts) == []


def _one(**parts: str) -> Meter:
    (found,) = _meters(**parts)
    return found


def _added(meter: Meter) -> dict[str, list[str]]:
    return {name: [ast.unparse(e) for e in adds] for name, adds in meter.adds}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("m.update(x, len(x))", {"sum": ["x * len(x)"], "count": ["len(x)"]}, id="positional"),
        pytest.param("m.update(n=len(x), val=x)", {"sum": ["x * len(x)"], "count": ["len(x)"]}, id="keyword"),
        pytest.param("m.update(x)", {"sum": ["x * 1"], "count": ["1"]}, id="the default"),
        pytest.param("m.update(*x)", {"sum": ["[] * 1"], "count": ["1"]}, id="a star is not known"),
        pytest.param("m.update(x)\nm.update(x, 2)", {"sum": ["x * 1", "x * 2"], "count": ["1", "2"]}, id="twice"),
    ],
)
def test_what_is_added(body: str, expected: dict[str, list[str]]) -> None:
    found = _one(body=body)
    assert _added(found) == expected
    assert found.derived == ("m.avg = m.sum / m.count",)


def test_long_additions_and_calls_in_the_method() -> None:
    found = _one(update="def add(self, v):\n    self.sum = self.sum + float(v)", body="m.add(x)")
    assert _added(found) == {"sum": ["[]"]}
    assert found.derived == ()


@pytest.mark.parametrize(
    ("body", "always"),
    [
        pytest.param("with torch.no_grad():\n    m.update(x)", True, id="in a with"),
        pytest.param("if flag:\n    m.update(x)\nm.update(x)", True, id="once at least"),
        pytest.param("if flag:\n    m.update(x)", False, id="under a test"),
        pytest.param("for y in x:\n    m.update(y)", False, id="in a loop that may be empty"),
        pytest.param("if flag:\n    continue\nm.update(x)", False, id="behind continue"),
    ],
)
def test_what_may_never_be_updated_is_not_divided_by_nothing(body: str, always: bool) -> None:
    assert _one(body=body).derived == ("m.avg = m.sum / m.count" + (" if m.count else m.avg" if not always else ""),)


def test_a_constant_that_the_method_adds() -> None:
    assert _added(_one(update="def add(self, v):\n    self.sum += v\n    self.count += 1", body="m.add(x)")) == {"sum": ["x"], "count": ["1"]}


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param("m = Meter()", True, id="made"),
        pytest.param("m = Meter()\nm.update(1)\nm.reset()", True, id="reset"),
        pytest.param("m, k = Meter(), Meter()", True, id="one of two"),
        pytest.param("m = Meter()\nm.update(1)\nm = other", False, id="another value"),
        pytest.param("m = Meter()\nm.update(1)", False, id="given something before"),
        pytest.param("m = Meter()\nshow([m], m.sum)", True, id="known to another object"),
        pytest.param("m = Meter()\nm.update(1)\nif flag:\n    m.reset()", False, id="reset at times"),
        pytest.param("m = Meter()\nk = [m for m in others]\nm.update(1)\nm.reset()\nm.sum\nk = m.reset()", True, id="a name of a comprehension"),
    ],
)
def test_whether_it_begins_at_zero(before: str, expected: bool) -> None:
    found = _meters(before=before)
    assert [m.from_zero for m in found] == ([expected] if found else [])


def test_a_meter_over_all_epochs_does_not_begin_at_zero() -> None:
    text = _TOP + _METER.format(update=indent(_UPDATE, "    ")) + "m = Meter()\nfor epoch in range(3):\n    for x in loader:\n        m.update(x)"
    found = script(text)
    assert [m.from_zero for m in meters(Carried(found.roles, found.roles.batch_loops[0]))] == [False]


def test_a_meter_that_is_given_begins_as_its_giver_left_it() -> None:
    text = _TOP + _METER.format(update=indent(_UPDATE, "    ")) + "def go(m):\n    for x in loader:\n        m.update(x)\ngo(Meter())"
    found = script(text)
    assert [m.from_zero for m in meters(Carried(found.roles, found.roles.batch_loops[0]))] == [False]


def test_a_class_that_begins_elsewhere() -> None:
    make = "class Meter:\n    def __init__(self):\n        self.sum = self.count = 1\n{update}\n"
    assert not _one(make=make).from_zero
