"""DPM144: models whose class only the run shows."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found, hits

_IMPORTS = "import argparse\nimport importlib\nimport hydra\nfrom hydra.utils import instantiate as make"
_ARGS = "args = argparse.ArgumentParser().parse_args()"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"model": "model = Net()"}, id="a class"),
        pytest.param({"model": "model = {'a': Net}[args.a]()"}, id="a table of classes"),
        pytest.param({"model": "model = globals()[args.a]()"}, id="any class of this file"),
        pytest.param({"model": "model = Net()", "before": "plot = importlib.import_module(args.plot)\nplot.draw(args)"}, id="no model"),
        pytest.param({"model": "model = Net()", "before": "scheduler = make(args.scheduler, optimizer)"}, id="a scheduler"),
        pytest.param({"model": "model = Net()", "end": "setattr(args, 'a', 3)\nx = getattr(args, args.b)"}, id="attributes of options"),
        pytest.param({"imports": "import lib", "model": "model = lib.create(args.a)"}, id="code of others, by its name"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    imports = _IMPORTS + "\n" + parts.pop("imports", "")
    assert found("DPM144", imports=imports, setup=_ARGS, **parts) == []


@pytest.mark.parametrize(
    ("made", "words"),
    [
        pytest.param("importlib.import_module(args.a).Net()", "import_module()", id="importlib"),
        pytest.param("__import__(args.a).Net()", "__import__()", id="__import__"),
        pytest.param("getattr(importlib.import_module(args.a), args.b)()", "getattr() with a name that is computed", id="getattr"),
        pytest.param("hydra.utils.instantiate(args.a)", "instantiate()", id="hydra"),
        pytest.param("make(args.a)", "make()", id="hydra, from-import with alias"),
        pytest.param("eval(args.a + '()')", "eval()", id="eval of a call"),
    ],
)
def test_told(made: str, words: str) -> None:
    parts = {"imports": _IMPORTS, "setup": _ARGS, "model": f"model = {made}"}
    (hit,) = hits("DPM144", **parts)
    assert f"is found by {words} when the program runs" in hit.message and not hit.edits and "import the class by its name" in hit.advice
    assert f"model = ddp.wrap({made})" in after(**parts)


def test_found_first_and_called_later() -> None:
    (hit,) = hits("DPM144", imports=_IMPORTS, setup=_ARGS, model="Found = eval(args.a)\nmodel = Found()")
    assert "eval()" in hit.message


def test_kept_by_an_object() -> None:
    defs = "class T:\n    def __init__(self, args):\n        self.model = importlib.import_module(args.a).Net()"
    parts = {"imports": _IMPORTS, "setup": _ARGS, "defs": defs, "model": "model = T(args).model"}
    assert found("DPM144", **parts) == ["importlib.import_module(args.a).Net()"]


def test_a_name_that_exec_leaves() -> None:
    assert found("DPM144", net="exec(open('net.py').read())", model="model = Net()") == ["Net()"]
