"""What of imported files is left out, since nothing can run it."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.alive import without_dead


def left(script: str, module: str, name: str = "lib") -> list[str]:
    """The definitions of the module that stay, methods with their class."""
    tree = ast.parse(module)
    without_dead(ast.parse(script), [(name, tree)])
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
            found += [f"{node.name}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef)] if isinstance(node, ast.ClassDef) else []
    return found


_TWO = "def used(): ...\ndef other(): ...\n"
_NET = "class Net:\n    def __init__(self): ...\n    def forward(self): ...\n    def spare(self): ...\n"


@pytest.mark.parametrize(
    ("script", "module"),
    [
        pytest.param("import lib\nlib.used()\nlib.other()", _TWO, id="both are called"),
        pytest.param("from lib import used\nused()", "def used():\n    other()\ndef other(): ...\n", id="one calls the other"),
        pytest.param("import lib\nlib.TABLE['x']()", _TWO + "TABLE = {'x': used, 'y': other}\n", id="a table of the module"),
        pytest.param("import lib\nlib.__dict__[name]()", _TWO, id="by the module's dict"),
        pytest.param("import lib\ngetattr(lib, name)()", _TWO, id="by a computed name"),
        pytest.param("import lib as tools\ngetattr(tools, name)()", _TWO, id="by a computed name, under an alias"),
        pytest.param("from proj import lib as tools\nvars(tools)[name]()", _TWO, id="by vars, under an alias"),
        pytest.param("import lib as tools\ntools.__dict__[name]()", _TWO, id="by the module's dict, under an alias"),
        pytest.param("from lib import *\neval(name)()", _TWO, id="by eval, of what is imported with a star"),
        pytest.param("import lib\noptions.make('a', lib)", _TWO, id="the module is handed over"),
        pytest.param("import lib as tools\noptions.make('a', holder=tools)", _TWO, id="the module is handed over by keyword"),
        pytest.param("import lib\nlib.find('used')", "def find(n):\n    return globals()[n]\n" + _TWO, id="by globals()"),
        pytest.param("import lib\nlib.find('x')", "def find(n):\n    return vars()[n]\n" + _TWO, id="by vars()"),
        pytest.param("import lib\nvars(lib)[name]()", _TWO, id="by vars() of the module"),
        pytest.param("import lib", "@register\ndef used(): ...\n@register\ndef other(): ...\n", id="decorated"),
        pytest.param("from lib import used as f\nfrom lib import other as g\nf(); g()", _TWO, id="under other names"),
        pytest.param("getattr(lib, 'used')(); getattr(lib, 'other')()", _TWO, id="by names in strings"),
        pytest.param("import lib\nlib.used()", "def used():\n    from lib import other as o\n    o()\ndef other(): ...\n", id="an import in a function"),
    ],
)
def test_all_of_it_may_run(script: str, module: str) -> None:
    whole = [n.name for n in ast.parse(module).body if isinstance(n, ast.FunctionDef)]
    assert left(script, module) == whole


@pytest.mark.parametrize(
    ("script", "module", "kept"),
    [
        pytest.param("import lib\nprint(make().__dict__)\nlib.used()", _TWO, ["used"], id="the dict of another object"),
        pytest.param("import lib\nlib.used()", _TWO, ["used"], id="called by nobody"),
        pytest.param("from lib import used, other\nused()", _TWO, ["used"], id="imported and not used"),
        pytest.param("import lib\nlib.used(lib.net.eval())", _TWO + "def spare(m):\n    m.eval()\n", ["used"], id="a method called eval"),
        pytest.param("import lib\nlib.used()", "def used(a):\n    vars(a)\ndef other(): ...\n", ["used"], id="what an object holds"),
        pytest.param("import lib\nlib.used()", _TWO + "__all__ = ['used', 'other']\n", ["used"], id="named in __all__ only"),
        pytest.param("import lib\nlib.used()", "def used():\n    'calls other'\ndef other(): ...\n", ["used"], id="named in a docstring"),
        pytest.param("import lib\nlib.Net().forward()", _NET, ["Net", "Net.__init__", "Net.forward"], id="a method that nobody calls"),
        pytest.param("import lib\nm = getattr(lib.Net(), name)", _NET, ["Net", "Net.__init__", "Net.forward", "Net.spare"], id="methods by a computed name"),
        pytest.param(
            "import lib\nlib.Net()(x)",
            "from torch import nn\n" + _NET.replace("Net:", "Net(nn.Module):"),
            ["Net", "Net.__init__", "Net.forward", "Net.spare"],
            id="a class of a library's class",
        ),
        pytest.param(
            "import lib\nlib.Net()(x)",
            "from torch import nn\nclass Base(nn.Module): ...\nclass Middle(Base): ...\n" + _NET.replace("Net:", "Net(Middle):"),
            ["Base", "Middle", "Net", "Net.__init__", "Net.forward", "Net.spare"],
            id="a class of a library's class, over classes of its own",
        ),
        pytest.param("import lib", _NET, [], id="a class that nobody makes"),
        pytest.param("import lib\nlib.B()", "class A:\n    def f(self): ...\nclass B(A): ...\nclass C(A): ...\n", ["A", "B"], id="a base of what is used"),
    ],
)
def test_what_is_left(script: str, module: str, kept: list[str]) -> None:
    assert left(script, module) == kept


def test_what_python_calls_of_a_stream() -> None:
    kept = left("import sys, lib\nsys.stdout = lib.Both()", "class Both:\n    def write(self, t): ...\n    def flush(self): ...\n    def spare(self): ...\n")
    assert kept == ["Both", "Both.write", "Both.flush"]


def test_what_only_a_library_calls_of_the_script_runs_all_the_same() -> None:
    script = "import lib, trainer\nclass Hook:\n    def after_epoch(self):\n        lib.used()\ntrainer.run(Hook())"
    assert left(script, _TWO) == ["used"]


def test_the_script_itself_stays_whole() -> None:
    script = ast.parse("import lib\nclass Solver:\n    def train(self): ...\ndef spare(): ...\n")
    before = ast.dump(script)
    without_dead(script, [("lib", ast.parse(_TWO))])
    assert ast.dump(script) == before


def test_eval_finds_what_stars_bring_over_several_modules() -> None:
    package, module, other = (ast.parse(t) for t in ("from .net import *\n", _TWO, _TWO))
    script = ast.parse("from models import *\nimport tools\neval(name)()\n")
    without_dead(script, [("net", module), ("models", package), ("tools", other)])
    assert len(module.body) == 2
    assert [type(s) for s in other.body] == [ast.Pass]


def test_a_computed_name_finds_what_a_package_imports() -> None:
    package, module, other = (ast.parse(t) for t in ("from .net import used, other\n", _TWO, _TWO))
    script = ast.parse("import models\nimport tools\ngetattr(models, name)()\n")
    without_dead(script, [("net", module), ("models", package), ("tools", other)])
    assert len(module.body) == 2
    alone = ast.parse(_TWO)
    without_dead(ast.parse("import tools\n"), [("tools", alone)])
    assert [type(s) for s in alone.body] == [ast.Pass]


def test_methods_that_load_what_others_save_stay_with_their_class() -> None:
    module = (
        "class Trainer:\n    def keep(self, f): torch.save(self.model.state_dict(), f)\n"
        "    def restore(self, f): self.model.load_state_dict(torch.load(f))\n    def spare(self): self.model.eval()\n"
        "class Other:\n    def restore(self, f): self.model.load_state_dict(torch.load(f))\n"
        "def restored(model, f): model.load_state_dict(torch.load(f))\n"
    )
    assert left("from lib import Trainer\nTrainer().keep('m.pt')", module) == ["Trainer", "Trainer.keep", "Trainer.restore"]
