"""The symbol table: what binds a name, and where a node stands."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.symbols import FunctionNode, Symbols, last

_TEXT = """
import os.path
import numpy as np
from math import sqrt as root
from lib import *
class Net:
    size = 3
    def forward(self, x, *rest, key=1, **more):
        y, (z, *others) = x
        with open(x) as f:
            pass
        try:
            pass
        except ValueError as e:
            pass
        for i in x:
            i += 1
        return [w for w in x if (v := w)]
match z:
    case [a, *b]:
        pass
    case {"k": c, **d}:
        pass
"""


def _symbols(text: str = _TEXT) -> Symbols:
    return Symbols(ast.parse(text))


@pytest.mark.parametrize(
    ("scope", "name", "how"),
    [
        ("", "Net", "class"),
        ("", "os", "import"),
        ("", "np", "import"),
        ("", "root", "import"),
        ("", "a", "match"),
        ("", "b", "match"),
        ("", "c", "match"),
        ("", "d", "match"),
        ("Net", "size", "assign"),
        ("Net", "forward", "def"),
        ("forward", "self", "param"),
        ("forward", "rest", "param"),
        ("forward", "key", "param"),
        ("forward", "more", "param"),
        ("forward", "y", "assign"),
        ("forward", "others", "assign"),
        ("forward", "f", "with"),
        ("forward", "e", "except"),
        ("forward", "v", "assign"),
        ("<expression>", "w", "for"),
    ],
)
def test_what_binds_a_name(scope: str, name: str, how: str) -> None:
    (owner,) = (s for s in _symbols().opened.values() if s.name == scope)
    assert [b.how for b in owner.bindings[name]] == [how]


def test_a_loop_and_an_addition_bind_one_name() -> None:
    (owner,) = (s for s in _symbols().opened.values() if s.name == "forward")
    assert [b.how for b in owner.bindings["i"]] == ["for", "aug"]


def test_imports_and_stars() -> None:
    symbols = _symbols()
    assert {name: dotted for (_, name), dotted in symbols.imports.items()} == {"os": "os", "np": "numpy", "root": "math.sqrt"}
    assert symbols.stars == ["lib"]


def test_where_a_node_stands() -> None:
    symbols = _symbols("class A:\n    def f(self):\n        if x:\n            g(1)\n        else:\n            h(2)\n")
    (call,) = symbols.calls("g")
    function = symbols.function(call)
    assert isinstance(function, FunctionNode) and function.name == "f"
    assert symbols.cls(call) is symbols.tree.body[0] and symbols.module_of(call).node is symbols.tree
    statement = symbols.statement(call.args[0])
    assert symbols.block(statement) == [statement] and symbols.is_inside(call, function)
    assert [type(n).__name__ for n in symbols.ancestors(call, below=function)] == ["Expr", "If"]
    assert symbols.cls(symbols.tree.body[0]) is None and symbols.function(symbols.tree.body[0]) is symbols.tree


def test_what_is_called_so() -> None:
    symbols = _symbols("a.b(c)\nb(c)\na.b = 3")
    assert len(symbols.calls("b")) == 2 and len(symbols.attributes("b")) == 2 and len(symbols.reads("c")) == 2
    assert (symbols.calls("x"), symbols.attributes("x"), symbols.reads("x")) == ([], [], [])


@pytest.mark.parametrize(("text", "word"), [("a", "a"), ("a.b", "b"), ("a[0]", ""), ("a().b", "b")])
def test_the_last_word(text: str, word: str) -> None:
    assert last(ast.parse(text, mode="eval").body) == word
