"""Programs of several files, in any layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.execution.values import const
from tests.execution.paper import constant, executed_files, held, parted

#: id: (files, what names of the script are at the end)
LAYOUTS: dict[str, tuple[dict[str, str], dict[str, object]]] = {
    "one file": ({"train.py": "import torch\nx = 1\n"}, {"x": 1}),
    "modules beside the script": ({"train.py": "import torch\nimport util\nfrom util import f as g\nx = util.k\ny = g()\n", "util.py": "k = 2\ndef f():\n    return k + 1\n"}, {"x": 2, "y": 3}),
    "a package": ({"train.py": "import torch\nimport a.b\nimport a.b as c\nfrom a import b\nx = a.b.k\ny = c.k\nz = b.k\nw = a.top\n", "a/__init__.py": "top = 0\n", "a/b.py": "k = 2\n"}, {"x": 2, "y": 2, "z": 2, "w": 0}),
    "a folder without __init__": ({"train.py": "import torch\nfrom a.b import k\nimport a.b\nx = k\ny = a.b.k\n", "a/b.py": "k = 2\n"}, {"x": 2, "y": 2}),
    "relative imports": ({"train.py": "import torch\nfrom a.c import x, y\n", "a/__init__.py": "from .b import k\n", "a/b.py": "k = 2\n", "a/c.py": "from . import b\nfrom .b import k as x\nfrom . import k\ny = b.k + k\n"}, {"x": 2, "y": 4}),
    "a submodule as an attribute of its package": (
        {"train.py": "import torch\nimport a\nimport a.b as c\nimport d\nx = a.b.k\ny = c.k\nz = getattr(d, 'e').k\n", "a/__init__.py": "", "a/b.py": "k = 2\n", "d/__init__.py": "from .e import *\n", "d/e.py": "__all__ = []\nk = 3\n"},
        {"x": 2, "y": 2, "z": 3},
    ),
    "star imports": ({"train.py": "import torch\nfrom a import *\nfrom b import *\nx = k\ny = shown\n", "a.py": "k = 2\n_hidden = 1\n", "b.py": "__all__ = ['shown']\nshown = 5\nk = 9\n"}, {"x": 2, "y": 5}),
    "star import of a package": ({"train.py": "import torch\nfrom a import *\nx = k\n", "a/__init__.py": "from .b import *\n", "a/b.py": "k = 2\n"}, {"x": 2}),
    "circular imports": ({"train.py": "import torch\nimport a\nx = a.f()\n", "a.py": "import b\nk = 1\ndef f():\n    return b.g() + 1\n", "b.py": "import a\ndef g():\n    return a.k\n"}, {"x": 2}),
    "import in a function": ({"train.py": "import torch\ndef f():\n    from a import k\n    return k\nx = f()\ny = f()\n", "a.py": "k = 2\n"}, {"x": 2, "y": 2}),
    "import once": ({"train.py": "import torch\nimport a\nimport b\na.n = 5\nx = b.get()\n", "a.py": "n = 1\n", "b.py": "import a\ndef get():\n    return a.n\n"}, {"x": 5}),
    "import in a branch": ({"train.py": "import torch\nimport os\nREG = None\nif os.environ.get('A'):\n    import a\nimport a\nx = a.k\n", "a.py": "k = 2\n"}, {"x": 2}),
    "a registry over files": ({"train.py": "import torch\nfrom models import build\nx = build('big').n\n", "models/__init__.py": "from .reg import build\nfrom . import big, small\n", "models/reg.py": "REG = {}\ndef register(c):\n    REG[c.__name__.lower()] = c\n    return c\ndef build(name):\n    return REG[name]()\n", "models/big.py": "from .reg import register\n@register\nclass Big:\n    n = 2\n", "models/small.py": "from .reg import register\n@register\nclass Small:\n    n = 1\n"}, {}),
    "main guard": ({"train.py": "import torch\nimport a\nx = a.k\nif __name__ == '__main__':\n    y = 3\n", "a.py": "k = 1\nif __name__ == '__main__':\n    k = 2\n"}, {"x": 1, "y": 3}),
    "either of two": ({"train.py": "import torch\ntry:\n    from a import k\nexcept ImportError:\n    from b import k\nx = type(k)\n", "a.py": "k = 2\n", "b.py": "k = 2\n"}, {"k": 2}),
    "settings copied by name": (
        {
            "train.py": "import torch\nimport cfg\nclass S:\n    def __init__(self, module):\n        for name in dir(module):\n            if name.isupper():\n"
            "                setattr(self, name, getattr(module, name))\ns = S(cfg)\nx, y, z = s.A, s.H, '__name__' in dir(cfg)\n",
            "cfg.py": "import time\nA, B, c, D, E, F, G, H = 1, 2, 3, 4, 5, 6, 7, 8\nNOW = time.time()\n",
        },
        {"x": 1, "y": 8, "z": True},
    ),
    "settings copied from a module that may have more": (
        {"train.py": "import torch\nimport cfg\nclass S:\n    k = 1\ns = S()\nfor name in dir(cfg):\n    setattr(s, name, getattr(cfg, name))\nx = s.k == 1\n", "cfg.py": "import os\nif os.environ.get('A'):\n    k = 2\n"},
        {},
    ),
    "a function of a module that a setting names": (
        {
            "train.py": "import torch\nimport json\nimport losses\nf = getattr(losses, json.load(open('c.json'))['loss'])\nx = f(2, 3)\n",
            "losses.py": "import torch\nfrom torch import nn\nfrom torch.autograd import Function, Variable\nfrom torch.nn import Module\ndef same(a, b):\n    return 5\n",
        },
        {"x": 5},
    ),
    "what a module imports for its annotations": (
        {
            "train.py": "import torch\nimport json\nimport losses\nf = getattr(losses, json.load(open('c.json'))['loss'])\nx = f(2, 3)\n",
            "losses.py": "import torch\nfrom types_ import *\ndef same(a: List, b: Tensor):\n    return 5\n",
            "types_.py": "from collections.abc import Sequence\nfrom typing import List, Optional, TypeVar\nTensor = TypeVar('torch.tensor')\n",
        },
        {"x": 5},
    ),
    "settings of a module": ({"train.py": "import torch\nimport cfg\ndef f():\n    cfg.lr = 0.5\nf()\nx = cfg.lr\n", "cfg.py": "lr = 0.1\n"}, {"x": 0.5}),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_names_of_other_files(name: str, tmp_path: Path) -> None:
    files, expected = LAYOUTS[name]
    ex = executed_files(files, tmp_path)
    assert {word: constant(ex, word) for word in expected} == expected
    assert ex.trace.ended is None


def test_a_module_runs_once(tmp_path: Path) -> None:
    files = {"train.py": "import torch\nimport a\nimport b\nfrom a import k\n", "a.py": "print('a')\nk = 1\n", "b.py": "import a\n"}
    assert parted(executed_files(files, tmp_path)) == [False]


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    ex = executed_files({"train.py": "import torch\nfrom .gone import k\nx = k\n"}, tmp_path)
    assert ex.trace.ended is None


@pytest.mark.parametrize(
    ("first", "then", "known"),
    [
        ("nets.blocks", "blocks", True),
        ("blocks", "nets.blocks", True),
        ("top.nets.blocks", ".blocks", True),
        ("library.blocks", ".blocks", False),  # a library that may be there
        ("nets.blocks", "nets.others", False),
    ],
)
def test_one_module_that_is_imported_in_two_ways(first: str, then: str, known: bool, tmp_path: Path) -> None:
    """For two folders to start in: what one of them does not find is no library."""
    files = {
        "top/train.py": "import torch\nfrom nets.net import k\n",
        "top/nets/net.py": f"try:\n    from {first} import k\nexcept ImportError:\n    from {then} import k\n",
        "top/nets/blocks.py": "k = 2\n",
        "top/nets/others.py": "k = 3\n",
    }
    ex = executed_files(files, tmp_path, "top/train.py")
    assert (held(ex, "k") == const(2)) is known
