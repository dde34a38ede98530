"""How a place writes the value of an expression of another function or another file."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from dpmigrate.facts.names import Names
from dpmigrate.facts.roles import Roles
from dpmigrate.facts.spelling import spelled, spelled_by_caller
from dpmigrate.facts.values import Values
from tests.pipeline import script

_LIBRARY = "thing = 1\nclass Box:\n    pass\nbox = Box()\n_ = read(thing)\n_ = read(box.lid['a'])\n_ = read(make().lid)\n_ = read([w for w in thing])\n"


def across(expression: str, text: str) -> str | None:
    """The expression of the imported file ``lib`` as the call of ``place`` in the script writes it."""
    library, entry = ast.parse(_LIBRARY), ast.parse(dedent(text))
    names = Names(entry, [library], {(1, "lib"): 0})
    (expr,) = [c.args[0] for c in names.calls("read") if ast.unparse(c.args[0]) == expression]
    (place,) = names.calls("place")
    return spelled(names, expr, place)


@pytest.mark.parametrize(
    ("expression", "text", "there"),
    [
        pytest.param("thing", "place()", None, id="not seen"),
        pytest.param("thing", "thing = 2\nplace()", None, id="another variable of the name"),
        pytest.param("thing", "from lib import thing\ndef f(thing):\n    place()", None, id="hidden by a parameter"),
        pytest.param("thing", "import lib\ndef f(lib):\n    place()", None, id="the file hidden by a parameter"),
        pytest.param("make().lid", "from lib import *\nplace()", None, id="a call would run twice"),
        pytest.param("[w for w in thing]", "from lib import thing\nplace()", None, id="a variable of its own"),
        pytest.param("thing", "from lib import thing\nplace()", "thing", id="imported"),
        pytest.param("thing", "from lib import *\nplace()", "thing", id="imported with all"),
        pytest.param("thing", "from lib import thing as other\ndef f(thing):\n    place()", "other", id="imported under another name"),
        pytest.param("thing", "import lib\nplace()", "lib.thing", id="an attribute of the file"),
        pytest.param("thing", "import lib as library\nplace()", "library.thing", id="of the file under another name"),
        pytest.param("box.lid['a']", "import lib\nplace()", "lib.box.lid['a']", id="a part of it"),
    ],
)
def test_another_file(expression: str, text: str, there: str | None) -> None:
    assert across(expression, text) == there


def handed(text: str) -> str | None:
    """What ``read(…)`` is given, as the call of ``place`` in a caller writes it."""
    found = script(dedent(text))
    (expr,) = [c.args[0] for c in found.names.calls("read")]
    (place,) = found.names.calls("place")
    return spelled_by_caller(found.roles, expr, place)


_JOB = "class Job:\n    def __init__(self):\n        {init}\n    def run(self, data=None):\n        {run}\n"


@pytest.mark.parametrize(
    ("text", "there"),
    [
        pytest.param("def f(x):\n    read(x)\nplace()", None, id="nobody calls it"),
        pytest.param("def f(x):\n    read(x)\n    f(x)\nplace()", None, id="it calls itself"),
        pytest.param("def f(x):\n    read(x)\nf(g())\nplace()", None, id="made in the call"),
        pytest.param("def f(x):\n    read(x + 1)\nf(a)\nplace()", None, id="computed"),
        pytest.param("def f():\n    x = 1\n    read(x)\nf()\nplace()", None, id="a local variable"),
        pytest.param("def f(x):\n    read(x[i])\nf(a)\nplace()", None, id="an item by a variable"),
        pytest.param("def f():\n    read(x)\ndef g():\n    x = 2\n    f()\n    place()\nx = 1", None, id="a global that is hidden there"),
        pytest.param("def g():\n    x = 1\n    def f():\n        read(x)\n    return f\ng()()\nplace()", None, id="round the function"),
        pytest.param(_JOB.format(init="read(self.data)", run="pass") + "Job()\nplace()", None, id="the object that a class makes"),
        pytest.param(
            _JOB.format(init="read(self.data)", run="pass") + "import types\nn = types.N()\nn.J = Job\nn.J()\nplace()", None, id="made by an attribute"
        ),
        pytest.param("def f(x):\n    read(x)\nf(a)\nplace()", "a", id="an argument"),
        pytest.param("def f(x):\n    read(x)\nf(x=a.b)\nplace()", "a.b", id="a keyword"),
        pytest.param("def f(x):\n    read(x.data['train'])\nf(a)\nplace()", "a.data['train']", id="a part of an argument"),
        pytest.param("def f(x):\n    read(x if b else c)\n    place()", "(x if b else c)", id="chosen"),
        pytest.param("def f():\n    read(x)\ndef g():\n    f()\n    place()\nx = 1", "x", id="a global"),
        pytest.param("def g():\n    x = 1\n    def f():\n        read(x)\n    f()\n    place()", "x", id="of the function round it"),
        pytest.param(_JOB.format(init="pass", run="read(self.data)") + "job = Job()\njob.run()\nplace()", "job.data", id="an attribute of the object"),
        pytest.param(_JOB.format(init="pass", run="read(data)") + "job = Job()\njob.run(a)\nplace()", "a", id="an argument of a method"),
        pytest.param(_JOB.format(init="pass", run="read(self.data)") + "job = Job()\nJob.run(job)\nplace()", "job.data", id="a method of the class"),
    ],
)
def test_what_is_handed_over(text: str, there: str | None) -> None:
    assert handed(text) == there


def test_the_object_is_not_the_module() -> None:
    """``engine.run(job)`` is no method of ``engine``."""
    names = "import engine\nclass Job:\n    pass\njob = Job()\nengine.run(job)\nplace()"
    library = ast.parse("def run(job):\n    read(job.data)\n")
    found = Names(ast.parse(names), [library], {(1, "engine"): 0})
    (call,) = found.calls("read")
    (place,) = found.calls("place")
    assert spelled_by_caller(Roles(found, Values(found)), call.args[0], place) == "job.data"
