"""What a look-up by a computed name may find, and by what words it is told."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from dpmigrate.facts.ranks import run_by_all
from dpmigrate.facts.script import Script
from tests.pipeline import script_of

_NETS = """
import torch.nn as nn
class Net(nn.Module):
    pass
class Wide(Net):
    pass
class _Hidden(nn.Module):
    pass
def build(n):
    return Net()
size = 3
"""
_REGISTRY = """
class Registry:
    def __init__(self):
        self.entries = {}
    def register(self, name):
        def keep(entry):
            self.entries[name] = entry
            return entry
        return keep
    def get(self, name):
        return self.entries[name]
    def build(self, name):
        return self.get(name)()
    def __call__(self, name):
        return 3
MODELS = Registry()
LOSSES = Registry()
"""
_REGISTERED = """
import torch.nn as nn
from registry import LOSSES, MODELS
@MODELS.register('a')
class A(nn.Module):
    pass
@MODELS.register('b')
class B(nn.Module):
    pass
@LOSSES.register('c')
def c(x):
    return x
"""


def probed(text: str, **files: str) -> tuple[Script, ast.expr]:
    found = script_of({**{n: dedent(t) for n, t in files.items()}, "train": dedent(text)})
    (call,) = found.names.calls("probe")
    return found, call.args[0]


def means(text: str, **files: str) -> set[str]:
    found, node = probed(text, **files)
    return {
        f"{v.cls.name}()" if v.kind == "object" and v.cls else str(getattr(v.node, "name", v.qual)) if v.kind != "call" else f"call {v.qual}"
        for v in found.values.eval(node)
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("import nets\nprobe(getattr(nets, name))", {"Net", "Wide", "build"}, id="getattr"),
        pytest.param("import nets\nprobe(getattr(nets, name)())", {"Net()", "Wide()"}, id="getattr, called: helpers give way"),
        pytest.param("import nets as n\nprobe(getattr(n, 'Net'))", {"Net"}, id="getattr with a literal"),
        pytest.param("import nets\nprobe(getattr(nets, 'none'))", {"call ?.getattr"}, id="a name that is not there"),
        pytest.param("import nets\nprobe(nets.__dict__[name])", {"Net", "Wide", "build"}, id="__dict__"),
        pytest.param("import nets\nprobe(vars(nets)[name]())", {"Net()", "Wide()"}, id="vars"),
        pytest.param("import nets\nprobe(nets.__dict__['Wide'])", {"Wide"}, id="__dict__ with a literal"),
        pytest.param("import nets\nfor key, one in nets.__dict__.items():\n    probe(one)", {"Net", "Wide", "build"}, id="all that it holds"),
        pytest.param("import nets\nfor one in vars(nets).values():\n    probe(one)", {"Net", "Wide", "build"}, id="all values"),
        pytest.param("import inspect, nets\nfor key, one in inspect.getmembers(nets):\n    probe(one)", {"Net", "Wide", "build"}, id="getmembers"),
        pytest.param(
            "import nets\nfor key, one in vars(nets).items():\n    if issubclass(one, nets.Net):\n        probe(one())", {"Wide()"}, id="what derives from a class"
        ),
        pytest.param("import nets\nfor key in vars(nets).keys():\n    probe(key)", set(), id="its names"),
        pytest.param("for key, one in ask().items():\n    probe(one)", set(), id="what something else holds"),
        pytest.param("from nets import *\nprobe(globals()[name])", {"Net", "Wide"}, id="globals: classes of modules alone"),
        pytest.param("from nets import *\nprobe(globals()[name + 'ild'])", {"build"}, id="globals: whatever ends so"),
        pytest.param("from nets import Net as a_net, Wide as a_bag\nprobe(globals()['{}_net'.format(name)]())", {"Net()"}, id="globals: of a form"),
        pytest.param("from nets import Net, build\nprobe(eval(name)())", {"Net()"}, id="eval"),
        pytest.param("import sys\nfrom nets import Net\nprobe(getattr(sys.modules[__name__], name))", {"Net"}, id="its own module"),
        pytest.param("import sys\nprobe(getattr(sys.modules['a'], name)())", {"call "}, id="any module"),
        pytest.param("import importlib\nprobe(importlib.import_module('nets').Net)", {"Net"}, id="import_module"),
        pytest.param(
            "from importlib import import_module as load\nimport importlib\nm = importlib.import_module('nets')\nprobe(m.Wide())", {"Wide()"}, id="a variable"
        ),
        pytest.param("m = __import__('nets')\nprobe(getattr(m, name)())", {"Net()", "Wide()"}, id="__import__"),
        pytest.param("import importlib\nm = importlib.import_module('nets')\nm = other()\nprobe(m.Net())", {"call "}, id="a variable of two values"),
        pytest.param("import importlib\ndef f(m):\n    probe(m.Net())", {"call "}, id="a parameter"),
        pytest.param("import importlib\nprobe(importlib.import_module(name).Net())", {"call "}, id="a module that is not known"),
        pytest.param("from nets import Net\nT = {'a': Net, 'b': 3}\nprobe(T.get(name))", {"Net", ""}, id="a table"),
        pytest.param("from nets import Net, Wide\nT = {'a': Net, 'b': Wide}\nprobe(T.get('b')())", {"Wide()"}, id="a table with a literal"),
        pytest.param("T = load()\nprobe(T.get(name))", {"call "}, id="a table that is not known"),
        pytest.param("class C:\n    a = 3\nprobe(getattr(C, name))", {"call ?.getattr"}, id="an attribute of no module"),
        pytest.param("probe(getattr(x))", {"call ?.getattr"}, id="getattr of nothing"),
        pytest.param("probe(vars()[name])", set(), id="vars of nothing"),
    ],
)
def test_in_modules(text: str, found: set[str]) -> None:
    assert means(text, nets=_NETS) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("probe(MODELS.get(name))", {"A", "B"}, id="get"),
        pytest.param("probe(MODELS.get(name)())", {"A()", "B()"}, id="get, called"),
        pytest.param("probe(MODELS[name])", {"A", "B"}, id="by index"),
        pytest.param("probe(MODELS.build(name))", {"A()", "B()"}, id="build"),
        pytest.param("probe(build_from(cfg, MODELS))", {"A()", "B()"}, id="a function that builds"),
        pytest.param("probe(build_from(cfg, registry=MODELS))", {"A()", "B()"}, id="a function that builds, by keyword"),
        pytest.param("probe(LOSSES.get(name))", {"c"}, id="another registry"),
        pytest.param("MODELS.register(Other)\nclass Other:\n    pass\nprobe(MODELS.get(name))", {"A", "B", "Other"}, id="registered by a call"),
        pytest.param("MODELS.register('x', 3)\nprobe(MODELS.get(name))", {"A", "B"}, id="registered, but no class"),
    ],
)
def test_registries(text: str, found: set[str]) -> None:
    assert means(f"import registered\nfrom registry import LOSSES, MODELS\n{text}", registry=_REGISTRY, registered=_REGISTERED) == found


def test_what_a_module_offers_of_libraries() -> None:
    losses = (
        "from torch.nn.functional import cross_entropy, mse_loss as mse\nfrom lib import other, _own\nimport torch\ndef mine(a, b):\n    return other(a, b)\n"
    )
    assert means("import losses\nprobe(getattr(losses, name))", losses=losses) == {"mine", "torch.nn.functional.cross_entropy", "torch.nn.functional.mse_loss"}


def test_a_registry_of_a_library() -> None:
    text = "from mmengine import Registry\nR = Registry('m')\n@R.register_module()\nclass A:\n    pass\nprobe(R.build(dict(type='A')))"
    assert means(text) == {"A()"}


@pytest.mark.parametrize(
    ("keep", "found"),
    [
        pytest.param("def keep(entry):\n    TABLE[entry.__name__] = entry\n    return entry", {"A", "f"}, id="kept and handed back"),
        pytest.param(
            "def keep(entry):\n    TABLE[entry.__name__] = entry\n    return entry or 3", {"A"}, id="a function that is not handed back is not what it was"
        ),
        pytest.param("def keep(entry, other=3):\n    TABLE[other] = entry\n    return entry", set(), id="a decorator of two parameters"),
    ],
)
def test_a_decorator_that_fills_a_table(keep: str, found: set[str]) -> None:
    assert means(f"TABLE = {{}}\n{keep}\n@keep\nclass A:\n    pass\n@keep\ndef f():\n    pass\nprobe(TABLE[name])") == found


_FACTORY = """
import torch
import nets
class Options:
    def make(self, name, module, *args):
        return getattr(module, self[name])(*args)
    @classmethod
    def read(cls, path):
        return cls()
def start(options):
    probe({})
start(Options.read('a'))
"""


@pytest.mark.parametrize(
    ("call", "found"),
    [
        pytest.param("options.make('model', nets)", {"Net()", "Wide()"}, id="a module of the program"),
        pytest.param("options.make('optimizer', torch.optim)", {"call torch.optim.?"}, id="a module of a library"),
        pytest.param("options.make('model', module=nets)", {"Net()", "Wide()"}, id="by keyword"),
    ],
)
def test_a_factory_that_is_handed_a_module(call: str, found: set[str]) -> None:
    assert means(_FACTORY.format(call), nets=_NETS) >= found


def test_a_function_that_looks_into_one_module_is_no_factory() -> None:
    assert means("import nets\ndef make(n):\n    return getattr(nets, n)()\nprobe(make(name))", nets=_NETS) == {"Net()", "Wide()"}


def test_a_module_without_classes() -> None:
    assert means(_FACTORY.format("options.make('model', empty)").replace("import nets", "import empty"), empty="x = 3") == {"call "}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("probe(Net())", "", id="a class"),
        pytest.param("probe(getattr(x, 'a'))", "", id="an attribute by a literal"),
        pytest.param("probe(table['a'])", "", id="an entry"),
        pytest.param("probe(model.eval())", "", id="a method called eval"),
        pytest.param("probe(load(name))", "", id="another function"),
        pytest.param("probe(x.y)", "", id="an attribute"),
        pytest.param("probe(a + b)", "", id="a sum"),
        pytest.param("probe(getattr(x, name))", "getattr() with a name that is computed", id="getattr"),
        pytest.param(
            "import importlib\nprobe(getattr(importlib.import_module(m), 'Net')())", "getattr() with a name that is computed", id="of a module by name"
        ),
        pytest.param("import importlib\nm = importlib.import_module(n)\nprobe(m.Net())", "import_module()", id="import_module"),
        pytest.param("import importlib\nprobe(importlib.import_module(n).Net())", "import_module()", id="import_module, at once"),
        pytest.param("probe(__import__(n).Net())", "__import__()", id="__import__"),
        pytest.param("probe(eval(n)())", "eval()", id="eval"),
        pytest.param("probe(globals()[n]())", "a name that is computed", id="globals"),
        pytest.param("import lib\nprobe(lib.__dict__[n]())", "a name that is computed", id="__dict__"),
        pytest.param("import hydra\nprobe(hydra.utils.instantiate(cfg))", "instantiate()", id="hydra"),
        pytest.param("from hydra.utils import instantiate as make\nprobe(make(cfg))", "make()", id="hydra, alias"),
        pytest.param("names = {}\nexec(text, names)\nprobe(names['Net']())", "exec()", id="exec into a dict"),
        pytest.param("exec(text)\nprobe(Net())", "exec()", id="a name that exec leaves"),
        pytest.param("R = Registry()\n@R.add\ndef f():\n    pass\nprobe(R[n])", "a registry", id="a registry"),
        pytest.param("R = Registry()\n@R.add\ndef f():\n    pass\nprobe(R.take(n))", "a registry", id="a method of a registry"),
    ],
)
def test_words(text: str, words: str) -> None:
    found, node = probed(text)
    assert found.values.lookups.behind(node) == words


_SETS = """
from torchvision import datasets
class Digits:
    def __init__(self, root):
        self.data = datasets.MNIST(root, download=True)
"""


@pytest.mark.parametrize(
    ("call", "run"),
    [
        pytest.param("make(sets, name, 'd')", True, id="all ranks make it"),
        pytest.param("print(sets)", False, id="nothing makes it"),
    ],
)
def test_what_a_factory_makes_runs_its_init(call: str, run: bool) -> None:
    """The download in it is found, although the program names the class nowhere."""
    script = script_of({"sets": _SETS, "a": f"import sets\ndef make(module, name, *args):\n    return getattr(module, name)(*args)\n{call}\n"})
    downloads = next(n for n in script.names.nodes if isinstance(n, ast.Assign))
    assert run_by_all(script.roles, downloads) is run
