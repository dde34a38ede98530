"""What names mean: scopes, bindings, imports, positions."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.names import position
from tests.facts.probe import all_probed, probed
from tests.pipeline import script


def _bindings(text: str) -> list[str]:
    found, node = probed(text)
    assert isinstance(node, ast.Name)
    return [b.how for b in found.names.bindings(found.names.scope_of[node], node.id)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("probe(x)", [], id="nothing"),
        pytest.param("x = 1\nprobe(x)", ["assign"], id="assignment"),
        pytest.param("(a, [x, *b]) = f()\nprobe(x)", ["assign"], id="in a nested target"),
        pytest.param("x: int = 1\nprobe(x)", ["assign"], id="with an annotation"),
        pytest.param("x: int\nprobe(x)", [], id="only an annotation"),
        pytest.param("x = 1\nx += 1\nprobe(x)", ["assign", "aug"], id="augmented"),
        pytest.param("for x in y: pass\nprobe(x)", ["for"], id="for"),
        pytest.param("async def f():\n    async for x in y: pass\n    probe(x)", ["for"], id="async for"),
        pytest.param("with a as x, b: pass\nprobe(x)", ["with"], id="with"),
        pytest.param("async def f():\n    async with a as x: pass\n    probe(x)", ["with"], id="async with"),
        pytest.param("try: pass\nexcept E as x: probe(x)\nexcept F: pass", ["except"], id="except"),
        pytest.param("import x\nprobe(x)", ["import"], id="import"),
        pytest.param("from a import b as x\nprobe(x)", ["import"], id="from import as"),
        pytest.param("def x(): pass\nprobe(x)", ["def"], id="def"),
        pytest.param("class x: pass\nprobe(x)", ["class"], id="class"),
        pytest.param("def f(x): probe(x)", ["param"], id="parameter"),
        pytest.param("def f(*x): probe(x)", ["param"], id="star parameter"),
        pytest.param("lambda x: probe(x)", ["param"], id="parameter of a lambda"),
        pytest.param("if (x := 3): probe(x)", ["assign"], id="walrus"),
        pytest.param("[x := a for a in b]\nprobe(x)", ["assign"], id="walrus in a comprehension binds outside"),
        pytest.param("f = lambda: (x := 3)\nprobe(x)", [], id="walrus in a lambda does not"),
        pytest.param("[probe(x) for x in y]", ["for"], id="comprehension"),
        pytest.param("[x for x in probe(x)]", [], id="the first iterable does not see the comprehension's variable"),
        pytest.param("[x for y in z for x in probe(x)]", ["for"], id="the second does"),
        pytest.param("def f(x=probe(x)): pass", [], id="a default does not see the parameter"),
        pytest.param("@g(probe(x))\ndef f(x): pass", [], id="a decorator does not see the parameter"),
        pytest.param("match a:\n    case [x, *y]: probe(x)", ["match"], id="match"),
        pytest.param("match a:\n    case [x, *y]: probe(y)", ["match"], id="match star"),
        pytest.param("match a:\n    case {'k': 1, **r}: probe(r)", ["match"], id="match mapping rest"),
        pytest.param("match a:\n    case {'k': 1}: probe(r)\n    case [*_]: pass\n    case _: pass", [], id="match without names"),
        pytest.param("x = 1\nclass C:\n    x = 2\n    def f(self): probe(x)", ["assign"], id="a method does not see the class"),
        pytest.param("x = 1\ndef f():\n    global x\n    x = 2\n    probe(x)", ["assign", "assign"], id="global"),
        pytest.param("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n    probe(x)", ["assign", "assign"], id="nonlocal"),
        pytest.param("def f():\n    if a:\n        global x\n    x = 2\nprobe(x)", ["assign"], id="a global statement in an if"),
        pytest.param(
            "x = 1\ndef f():\n    def g():\n        global x\n        x = 3\n    x = 2\nprobe(x)", ["assign", "assign"], id="global in a function inside"
        ),
        pytest.param("x.a = 1\nprobe(x)", [], id="an attribute is no binding"),
        pytest.param("def f():\n    global x\n    x = 2\nprobe(x)", ["assign"], id="bound by a function only"),
    ],
)
def test_bindings(text: str, expected: list[str]) -> None:
    assert _bindings(text) == expected


@pytest.mark.parametrize(
    ("text", "dotted"),
    [
        pytest.param("probe(x)", "?.x", id="unbound: a builtin or a star import"),
        pytest.param("probe(x.y.z)", "?.x.y.z", id="an attribute of nothing known"),
        pytest.param("probe(f().y)", "", id="an attribute of a call"),
        pytest.param("x = 1\nprobe(x)", "", id="a variable"),
        pytest.param("def f(x): probe(x)", "", id="a parameter"),
        pytest.param("import torch\nprobe(torch.nn.Linear)", "torch.nn.Linear", id="import"),
        pytest.param("import torch.nn\nprobe(torch.nn.Linear)", "torch.nn.Linear", id="import of a part"),
        pytest.param("import torch.nn as nn\nprobe(nn.Linear)", "torch.nn.Linear", id="import as"),
        pytest.param("from torch import nn\nprobe(nn.Linear)", "torch.nn.Linear", id="from import"),
        pytest.param("from torch.nn import Linear as L\nprobe(L)", "torch.nn.Linear", id="from import as"),
        pytest.param("from torch.nn import *\nprobe(Linear)", "torch.nn.Linear", id="star import of what is known"),
        pytest.param("from torch.nn import *\nprobe(Other)", "?.Other", id="star import of what is not"),
        pytest.param("from net import *\nt.no_grad()\nprobe(t.save)", "torch.save", id="star import of torch, told by what is read from it"),
        pytest.param("from net import *\nF.cross_entropy\nprobe(F.relu)", "torch.nn.functional.relu", id="star import of a module of torch"),
        pytest.param("from net import *\nt.load()\nprobe(t.save)", "?.t.save", id="star import of a module that cannot be told"),
        pytest.param("t.no_grad()\nprobe(t.save)", "?.t.save", id="nothing brings it"),
        pytest.param("from net import *\nint.Linear\nprobe(int)", "?.int", id="a builtin is no module"),
        pytest.param("from . import nn\nprobe(nn.Linear)", "..nn.Linear", id="relative import"),
        pytest.param("try:\n    import a as m\nexcept ImportError:\n    m = None\nprobe(m.f)", "a.f", id="an import that may fail"),
        pytest.param("import a as m\nm = m.wrap(m)\nprobe(m.f)", "", id="an import given another value before"),
        pytest.param("import a as m\nprobe(m.f)\nm = 3", "a.f", id="an import given another value later"),
        pytest.param("answer = probe(input)\nfor input in y: pass", "?.input", id="a builtin, given to something else below"),
        pytest.param("for y in z:\n    probe(input)\n    for input in y: pass", "", id="a builtin, which an earlier turn may have given"),
        pytest.param("for input in y: pass\nprobe(input)", "", id="a builtin no more"),
        pytest.param("def f():\n    probe(input)\ninput = 1\nf()", "", id="a builtin that a function reads later"),
    ],
)
def test_dotted(text: str, dotted: str) -> None:
    found, node = probed(text)
    assert found.names.dotted(node) == dotted


def test_calls_attributes_and_reads_by_name() -> None:
    found, _ = all_probed("a.f(x)\nf(x)\nx = f\ny = a.x\n")
    assert [ast.unparse(c) for c in found.names.calls("f")] == ["a.f(x)", "f(x)"]
    assert [ast.unparse(a) for a in found.names.attributes("x")] == ["a.x"]
    assert len(found.names.reads("x")) == 2 and found.names.reads("nothing") == []


def test_blocks() -> None:
    text = "if a:\n    b = 1\nelse:\n    c = 1\ntry:\n    d = 1\nexcept E:\n    e = 1\nfinally:\n    f = 1\nmatch g:\n    case 1:\n        h = 1\n"
    found = script(text)
    for stmt in (n for n in found.names.nodes if isinstance(n, ast.stmt)):
        assert stmt in found.names.block(stmt)


def test_positions_are_in_reading_order() -> None:
    a, b, c = script("a = 1; b = 2\nc = 3\n").names.tree.body
    assert position(a) < position(b) < position(c)


def test_spans_count_bytes() -> None:
    found = script("x = 'ä' + y\n")
    (y,) = found.names.reads("y")
    assert (found.span(y).line, found.span(y).col) == (1, 11)


def test_what_stands_round_a_node() -> None:
    found, (top, method, nested, loose) = all_probed(
        "probe(a)\nclass C:\n    def m(self):\n        x = [probe(b)]\n        def n():\n            if c: probe(c)\n    probe(d)\n"
    )
    functions = [getattr(found.names.function(n), "name", "") for n in (top, method, nested, loose)]
    assert functions == ["", "m", "n", ""]
    assert [getattr(found.names.cls(n), "name", "") for n in (top, method, nested, loose)] == ["", "C", "C", "C"]
    assert [type(found.names.statement(n)).__name__ for n in (top, method, nested)] == ["Expr", "Assign", "Expr"]
    assert [type(a).__name__ for a in found.names.ancestors(nested)] == ["Call", "Expr", "If", "FunctionDef", "FunctionDef", "ClassDef", "Module"]
    assert found.names.module.is_module and not found.names.opened[found.names.function(method)].is_module
    assert found.names.is_inside(nested, found.names.function(method)) and not found.names.is_inside(top, found.names.function(method))


def test_what_an_element_of_a_target_takes() -> None:
    found, (a, b, c) = all_probed("(a, (b,)), *c = f()\nprobe(a)\nprobe(b)\nprobe(c)\n")
    paths = [next(iter(found.names.bindings(found.names.scope_of[n], ast.unparse(n)))).path for n in (a, b, c)]
    assert paths == [("*", 0), ("*", 1, 0), ("*",)]
