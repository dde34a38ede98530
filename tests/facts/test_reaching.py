"""Which binding a read of a variable sees."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

from dpmigrate.facts.names import Names
from dpmigrate.facts.reaching import reaching


def _found(text: str) -> str:
    """What the argument of ``probe`` was given last, as it is written; '' where that is not known."""
    names = Names(ast.parse(text))
    (probe,) = (n for n in names.nodes if isinstance(n, ast.Call) and ast.unparse(n.func) == "probe")
    (read,) = probe.args
    assert isinstance(read, ast.Name)
    found = reaching(names, read)
    return "" if found is None else found.how if found.value is None else ast.unparse(found.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("x = a\nprobe(x)", "a", id="the only one"),
        pytest.param("x = a\nx = b\nprobe(x)\nx = c", "b", id="the last one before it"),
        pytest.param("x = a\nx = f(probe(x))", "a", id="before the statement that reads it"),
        pytest.param("x: int = a\nprobe(x)", "a", id="annotated"),
        pytest.param("x: int\nprobe(x)", "", id="annotated without a value"),
        pytest.param("y, x = a\nprobe(x)", "a", id="a part of it"),
        pytest.param("x = x2 = a\nprobe(x)", "a", id="one of two targets"),
        pytest.param("x = a\nx += 1\nprobe(x)", "", id="added to"),
        pytest.param("x = a\ndel x\nx = b\nprobe(x)", "b", id="deleted and given again"),
        pytest.param("x = a\nif t:\n    x = b\nprobe(x)", "", id="one of two"),
        pytest.param("x = a\nif t:\n    x = b\nelse:\n    probe(x)", "a", id="in the other branch"),
        pytest.param("x = a\nif t:\n    x = b\n    probe(x)", "b", id="in the branch"),
        pytest.param("x = a\nif (x := b):\n    probe(x)", "", id="by the test"),
        pytest.param("x = a\nfor i in t:\n    probe(x)", "a", id="before a loop"),
        pytest.param("x = a\nfor i in t:\n    probe(x)\n    x = b", "", id="by the turn before"),
        pytest.param("x = a\nfor i in t:\n    x = b\n    probe(x)\nx = c", "b", id="in the turn"),
        pytest.param("for x in t:\n    probe(x)\nfor x in u:\n    pass", "t", id="the target of its loop"),
        pytest.param("for x in t:\n    probe(x)\n    x = b", "t", id="the target, given anew each turn"),
        pytest.param("x = a\nfor x in t:\n    pass\nelse:\n    probe(x)", "", id="behind a loop that is done"),
        pytest.param("x = a\nfor x in t:\n    pass\nprobe(x)", "", id="a loop that may have no turn"),
        pytest.param("x = a\nfor i in probe(x):\n    x = b", "a", id="what a loop goes over, once"),
        pytest.param("x = a\nwhile probe(x):\n    x = b", "", id="the test of a loop, each turn"),
        pytest.param("x = a\nwhile probe(x):\n    pass", "a", id="the test of a loop that leaves it"),
        pytest.param("x = a\nwhile t:\n    probe(x)\n    x = b", "", id="a turn before in while"),
        pytest.param("with a as x:\n    probe(x)\nx = b", "a", id="with"),
        pytest.param("with a as x:\n    pass\nprobe(x)\nx = b", "a", id="behind with"),
        pytest.param("with t:\n    x = b\nprobe(x)", "", id="in a with that may suppress what is raised"),
        pytest.param("x = a\nwith t:\n    probe(x)", "a", id="before with"),
        pytest.param("x = a\ntry:\n    x = b\n    probe(x)\nexcept E:\n    pass", "b", id="in try"),
        pytest.param("x = a\ntry:\n    x = b\nexcept E:\n    probe(x)", "", id="in a handler"),
        pytest.param("x = a\ntry:\n    probe(x)\nfinally:\n    pass", "a", id="before try"),
        pytest.param("x = a\ntry:\n    x = b\nfinally:\n    probe(x)", "", id="in finally"),
        pytest.param("x = a\nmatch t:\n    case 1:\n        probe(x)", "a", id="before a match"),
        pytest.param("match t:\n    case [x]:\n        probe(x)", "", id="a pattern"),
    ],
)
@pytest.mark.parametrize("inside", [False, True], ids=["in the module", "in a function"])
def test_the_binding_that_is_read(text: str, wanted: str, inside: bool) -> None:
    assert _found(f"def f():\n{indent(text, '    ')}\n" if inside else text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("def f(x):\n    probe(x)", "param", id="a parameter"),
        pytest.param("def f(x):\n    x = a\n    probe(x)", "a", id="a parameter that is given anew"),
        pytest.param("def f():\n    probe(x)", "", id="a name of nobody"),
        pytest.param("def f():\n    x = a\n    def g():\n        probe(x)", "", id="of the function round it"),
        pytest.param("x = a\ndef f():\n    global x\n    x = b\nprobe(x)", "", id="given by a function as well"),
        pytest.param("def f():\n    if t:\n        x = a\n    probe(x)", "", id="perhaps none"),
        pytest.param("def f():\n    probe(x)\n    x = a", "", id="none before"),
    ],
)
def test_in_functions(text: str, wanted: str) -> None:
    assert _found(text) == wanted
