"""Definitions that nothing in the program uses."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from dpmigrate.facts.dormant import dormant, take_out
from dpmigrate.facts.names import FunctionNode, Names

_RUNS = "print(1)\n"


def unused(text: str, library: str = "") -> set[str]:
    """The names of the definitions that nothing uses, of a script and of the module ``lib``."""
    names = Names(ast.parse(dedent(text)), [ast.parse(dedent(library))], {(1, "lib"): 0})
    return {n.name for n in dormant(names) if isinstance(n, FunctionNode | ast.ClassDef)}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("def f():\n    pass", id="a file that runs nothing"),
        pytest.param("def f():\n    pass\nf()", id="called"),
        pytest.param("def f():\n    pass\nprint(f)", id="handed out"),
        pytest.param("@keep\ndef f():\n    pass\nprint(1)", id="decorated"),
        pytest.param("class A:\n    pass\nclass B(A):\n    pass\nprint(B)", id="a base"),
        pytest.param("import lib\nclass A(lib.Base):\n    def hook(self):\n        pass\nprint(A)", id="a method that a base may call"),
        pytest.param("class A:\n    def __len__(self):\n        return 1\nprint(A)", id="a method that Python calls"),
        pytest.param("class A:\n    def go(self):\n        pass\nA().go()", id="a method"),
        pytest.param("def f():\n    pass\nglobals()['f']()", id="by name"),
        pytest.param("import fire\ndef f():\n    pass\nfire.Fire()", id="by the command line"),
        pytest.param("import lib\ndef f():\n    pass\ngetattr(lib, name)()", id="by a name of a module"),
        pytest.param("import lib\ndef f():\n    pass\nlib.__dict__[name]()", id="by the dict of a module"),
        pytest.param("import lib\ndef f():\n    pass\noptions.choose(lib)", id="by a module that is handed over"),
        pytest.param("import sys\ndef f():\n    pass\ngetattr(sys.modules[__name__], name)()", id="by the modules that are loaded"),
        pytest.param("def f():\n    pass\nprint(vars()[name])", id="by what the module holds"),
        pytest.param("def f():\n    pass\npool.submit('lib.f')", id="by a string"),
        pytest.param("import hydra\nclass A:\n    pass\nhydra.utils.instantiate(cfg)", id="by a file of settings"),
        pytest.param("class A:\n    pass\nclass B(A):\n    pass\nmake = A.__subclasses__()[0]()", id="by its base"),
        pytest.param("class A:\n    def __init_subclass__(cls):\n        pass\nclass B(A):\n    pass\nprint(A)", id="noted by its base"),
        pytest.param("class A(metaclass=M):\n    pass\nclass B(A):\n    pass\nprint(A)", id="noted by its metaclass"),
        pytest.param("import zoo\nclass A(zoo.Model):\n    pass\nprint(1)", id="a base of another library"),
    ],
)
def test_used(text: str) -> None:
    assert unused(text) == set()


def test_used_under_another_name() -> None:
    assert unused("from lib import f as g\ng()", "def f():\n    pass\ndef h():\n    pass") == {"h"}
    assert unused("try:\n    from lib import f as g\nexcept ImportError:\n    from fast import f as g\ng()", "def f():\n    pass") == set()
    assert unused("import lib\ngetattr(lib, 'f')()", "def f():\n    pass\ndef h():\n    pass") == {"h"}


def test_unused() -> None:
    assert unused(_RUNS + "def f():\n    g()\ndef g():\n    f()\ndef h():\n    h()") == {"h"}  # f and g might be called by each other: told of none
    assert unused(_RUNS + "def f():\n    g()\ndef g():\n    pass") == {"f", "g"}
    assert unused(_RUNS + "class A:\n    def go(self):\n        f()\ndef f():\n    pass\ngetattr(A(), name, 'gone')\nprint(vars(A()))") == {"go", "f"}
    assert unused("from torch import nn\nclass A(nn.Module):\n    pass\nclass B(A):\n    pass\nprint(1)") == {"A", "B"}
    assert unused("import lib\nlib.f()", "def f():\n    pass\ndef g():\n    pass") == {"g"}
    assert unused("from lib import f, g\nf()", "def f():\n    pass\ndef g():\n    pass") == {"g"}
    assert unused(_RUNS + "def train():\n    pass\nnet.train()\nself.model.train(True)") == {"train"}  # a method of an object
    assert unused("import lib as other\nother.f()", "def f():\n    pass\ndef g():\n    pass") == {"g"}
    assert unused("import lib\nholder.lib = lib\nholder.lib.f()", "def f():\n    pass\ndef g():\n    pass") == set()  # a module is handed on


_STEP = "def train(x):\n    x.backward()\n"


def test_what_is_taken_out() -> None:
    """Functions and classes, so that neither their steps nor their calls decide anything; methods stay."""
    tree = ast.parse(_STEP + "def old(x):\n    x.backward()\nclass A:\n    def go(self):\n        pass\nclass B:\n    pass\nprint(A(), train(1))")
    assert take_out(Names(tree))
    assert [n.name for n in ast.walk(tree) if isinstance(n, FunctionNode | ast.ClassDef)] == ["train", "A", "go"]
    assert not take_out(Names(tree))


def test_the_only_step_stays() -> None:
    tree = ast.parse(_STEP + "print(1)")
    assert not take_out(Names(tree))
    assert isinstance(tree.body[0], ast.FunctionDef)


def test_a_name_of_another_file_is_no_use() -> None:
    assert unused("def main():\n    pass\nmain()", "def main():\n    pass") == {"main"}
    assert unused("from lib import main as start\nstart()\ndef main():\n    pass\nmain()", "def main():\n    pass") == set()


def test_what_evaluates_text_finds_what_its_own_module_sees() -> None:
    assert unused("eval(name)()\nprint(1)", "def f():\n    pass") == {"f"}
    assert unused("from lib import *\neval(name)()", "def f():\n    pass") == set()
    assert unused("import lib\neval(name)()", "def f():\n    pass") == set()
