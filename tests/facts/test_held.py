"""What variables and attributes hold, by the names alone."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.held import class_of, held_by_own, stored_values
from tests.facts.probe import probed

_PROGRAM = """
from lib import Foreign
class Net:
    def __init__(self):
        self.n = 3
class Trainer:
    def __init__(self, given):
        self.net = Net().to("cuda")
        self.given = given
        self.either = Net()
        self.either = Foreign()
    def run(self):
        probe({expression})
net = Net()
copy = Foreign()
two = Net() if copy else Foreign()
"""


@pytest.mark.parametrize("expression", ["copy", "two", "self.given", "self.either", "self.none", "net.n", "3"])
def test_no_class_of_the_program_for_certain(expression: str) -> None:
    found, node = probed(_PROGRAM.format(expression=expression))
    assert class_of(found.names, node) is None


@pytest.mark.parametrize("expression", ["net", "self.net"])
def test_a_class_of_the_program(expression: str) -> None:
    found, node = probed(_PROGRAM.format(expression=expression))
    cls = class_of(found.names, node)
    assert cls is not None and cls.name == "Net"


def test_what_is_stored_anywhere() -> None:
    found, node = probed(_PROGRAM.format(expression="self.either"))
    assert isinstance(node, ast.Attribute)
    assert [ast.unparse(v) for v in stored_values(found.names, node)] == ["Net()", "Foreign()"]


@pytest.mark.parametrize(("expression", "own"), [("self.net", False), ("self.given.n", False), ("self.net.other", False), ("self.net.n", True)])
def test_attributes_of_the_programs_own_objects(expression: str, own: bool) -> None:
    found, node = probed(_PROGRAM.format(expression=expression))
    assert isinstance(node, ast.Attribute) and held_by_own(found.names, node) is own
