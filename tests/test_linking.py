"""Which files belong to a program, and what their imports mean."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dpmigrate import linking
from dpmigrate.facts.names import Names
from dpmigrate.model import Span
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

Files = Mapping[str, str]


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Program]:
    """Write the files and link the program that the script starts."""

    def link(files: Files, script: str = "train.py") -> Program:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.chdir(tmp_path)
        source = parse(Path(script).read_bytes(), script)
        assert isinstance(source, Source)
        return linking.link(Path(script), source)

    return link


def names(program: Program) -> list[str]:
    return [p.source.name for p in program.parts]


# ------------------------------------------------------------------ what is not followed
@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param({"train.py": "import torch\nimport os\n"}, "installed", id="installed packages"),
        pytest.param({"train.py": "import torch\n", "torch/__init__.py": ""}, "a copy", id="a folder called torch beside the script"),
        pytest.param({"train.py": "import dpmigrate_runtime as ddp\n", "dpmigrate_runtime/__init__.py": ""}, "vendored", id="the vendored runtime"),
        pytest.param({"train.py": "import data\n", "data/a.txt": ""}, "no code", id="a folder of data"),
        pytest.param({"train.py": "import utils\n", "utils.py": "# dpmigrate: ignore-file\n"}, "asked", id="a module that asks to be left alone"),
        pytest.param({"train.py": "import a.b\n", "other/a/b.py": ""}, "elsewhere", id="a module in a folder that is not searched"),
        pytest.param({"train.py": "x = 'import utils'\n", "utils.py": ""}, "text", id="an import in a string"),
        pytest.param({"train.py": "from utils import a\n", "venv/lib/site-packages/utils.py": ""}, "installed", id="a virtual environment beside the script"),
    ],
)
def test_the_script_is_alone(linked: Callable[..., Program], files: Files, why: str) -> None:
    assert names(linked(files)) == ["train.py"], why


def test_a_file_that_cannot_be_parsed_is_named(linked: Callable[..., Program]) -> None:
    program = linked({"train.py": "import utils\nimport data\n", "utils.py": "print 1\n", "data.py": ""})
    assert names(program) == ["data.py", "train.py"]
    [(name, problem)] = program.unread
    assert name == "utils.py" and problem.line == 1


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("import_module(args.model)", id="any name at all"),
        pytest.param("import_module(f'n.{x}')", id="of a folder that is not there"),
        pytest.param("import_module(f'm.{x}')", id="of more than one chooses from"),
    ],
)
def test_names_that_mean_no_files(linked: Callable[..., Program], call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "CHOICE_LIMIT", 1)
    assert names(linked({"train.py": f"{call}\n", "m/a.py": "", "m/b.py": ""})) == ["train.py"]


def test_what_a_computed_name_may_find_is_alive(linked: Callable[..., Program]) -> None:
    program = linked({"train.py": "import importlib\nimportlib.import_module(f'm.{x}').run()\n", "m/a.py": "def run(): ...\ndef other(): ...\n"})
    assert len(program.parts[0].tree.body) == 2


def test_the_package_of_a_script_is_found_from_above_it(linked: Callable[..., Program]) -> None:
    program = linked({"proj/train.py": "from proj.net import Net\n", "proj/__init__.py": "", "proj/net.py": "class Net: ...\n"}, "proj/train.py")
    assert names(program) == ["proj/__init__.py", "proj/net.py", "proj/train.py"]


def test_what_is_too_much_is_named(linked: Callable[..., Program], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "FILE_LIMIT", 3)
    program = linked({"train.py": "import a, b, c\n", "a.py": "", "b.py": "", "c.py": ""})
    assert names(program) == ["a.py", "b.py", "train.py"]
    assert [name for name, _ in program.unread] == ["c.py"]


def test_the_block_of_an_imported_main_guard_does_not_run(linked: Callable[..., Program]) -> None:
    guard = "if __name__ == '__main__':\n    import b\n    x = 1\n"
    program = linked({"train.py": "import a\n" + guard, "a.py": "y = 1\n" + guard, "b.py": ""})
    assert names(program) == ["a.py", "b.py", "train.py"]
    a, _, script = (p.tree for p in program.parts)
    assert (len(a.body), len(script.body)) == (1, 2)


# ------------------------------------------------------------------ what is followed
@pytest.mark.parametrize(
    ("files", "order"),
    [
        pytest.param({"train.py": "import utils\n", "utils.py": ""}, ["utils.py"], id="import"),
        pytest.param({"train.py": "import utils as u\n", "utils.py": ""}, ["utils.py"], id="import as"),
        pytest.param({"train.py": "from utils import a\n", "utils.py": ""}, ["utils.py"], id="from"),
        pytest.param({"train.py": "from utils import *\n", "utils.py": ""}, ["utils.py"], id="star"),
        pytest.param({"train.py": "import a.b as c\n", "a/__init__.py": "", "a/b.py": ""}, ["a/__init__.py", "a/b.py"], id="a package"),
        pytest.param({"train.py": "import a.b\n", "a/b.py": ""}, ["a/b.py"], id="a namespace folder"),
        pytest.param({"train.py": "from a import b\n", "a/b.py": ""}, ["a/b.py"], id="from a namespace folder"),
        pytest.param({"train.py": "def f():\n    import utils\n", "utils.py": ""}, ["utils.py"], id="in a function"),
        pytest.param({"train.py": "try:\n    import utils\nexcept ImportError:\n    utils = None\n", "utils.py": ""}, ["utils.py"], id="under try"),
        pytest.param({"train.py": "import a\n", "a.py": "import b\n", "b.py": "import a\n"}, ["b.py", "a.py"], id="a circle"),
        pytest.param({"train.py": "import b, a\n", "a.py": "", "b.py": "import a\n"}, ["a.py", "b.py"], id="in the order in which they run"),
        pytest.param(
            {
                "train.py": "from p import f\n",
                "p/__init__.py": "from .q import f\n",
                "p/q.py": "from . import r\nfrom ..s import x\n",
                "p/r.py": "",
                "s.py": "",
            },
            ["p/r.py", "s.py", "p/q.py", "p/__init__.py"],
            id="relative imports",
        ),
        pytest.param({"train.py": "import json\n", "json.py": ""}, ["json.py"], id="beside the script before the standard library"),
        pytest.param({"train.py": "import sys\nsys.path.append('lib')\nimport a\n", "lib/a.py": ""}, ["lib/a.py"], id="sys.path, literal"),
        pytest.param(
            {
                "train.py": "import os, sys\nHERE = os.path.dirname(os.path.abspath(__file__))\nsys.path.insert(0, os.path.join(HERE, 'lib'))\nimport a\n",
                "lib/a.py": "",
            },
            ["lib/a.py"],
            id="sys.path, os.path",
        ),
        pytest.param(
            {
                "train.py": "import m.a\n",
                "m/a.py": "import os, sys\nsys.path.append(os.path.join(os.path.dirname(__file__), os.pardir, 'lib'))\nimport b\n",
                "lib/b.py": "",
            },
            ["lib/b.py", "m/a.py"],
            id="sys.path, the folder above",
        ),
        pytest.param(
            {
                "train.py": "import m.a\n",
                "m/a.py": "import os, sys\nsys.path.append(os.path.join(os.path.dirname(__file__), '../lib'))\nimport b\n",
                "lib/b.py": "",
            },
            ["lib/b.py", "m/a.py"],
            id="sys.path, by an imported file",
        ),
        pytest.param(
            {"train.py": "import sys\nsys.path.append('lib')\nimport a\n", "lib/a.py": "", "a/__init__.py": ""},
            ["a/__init__.py"],
            id="beside the script before what is put behind it",
        ),
        pytest.param(
            {"train.py": "import sys\nsys.path.insert(0, 'lib')\nimport a\n", "lib/a.py": "", "a.py": ""}, ["lib/a.py"], id="what is put first before it"
        ),
        pytest.param({"train.py": "import a\n", "src/a.py": ""}, ["src/a.py"], id="src"),
        pytest.param({"train.py": "import_module('m.a')\n", "m/__init__.py": "", "m/a.py": "", "m/b.py": ""}, ["m/__init__.py", "m/a.py"], id="by a name"),
        pytest.param(
            {"train.py": "import_module(f'm.{x}')\n", "m/a.py": "", "m/b/__init__.py": "", "m/c.txt": ""}, ["m/a.py", "m/b/__init__.py"], id="by any name"
        ),
        pytest.param({"train.py": "import_module(f'm.{x}_net')\n", "m/a_net.py": "", "m/b.py": ""}, ["m/a_net.py"], id="by names of one end"),
        pytest.param({"train.py": "import_module(f'm.{x}.net')\n", "m/a/net.py": "", "m/b/other.py": "", "m/c.py": ""}, ["m/a/net.py"], id="in any folder"),
        pytest.param(
            {"train.py": "import p\n", "p/__init__.py": "import_module('.' + x, __package__)\n", "p/a.py": ""}, ["p/a.py", "p/__init__.py"], id="beside it"
        ),
    ],
)
def test_files_are_found(linked: Callable[..., Program], files: Files, order: list[str]) -> None:
    assert names(linked(files)) == [*order, "train.py"]


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("import models\n", id="from the top of the repository"),
        pytest.param("import sys\nsys.path.append('..')\nimport models\n", id="sys.path, a literal"),
        pytest.param("import os, sys\nsys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))\nimport models\n", id="sys.path, os.path"),
        pytest.param(
            "import sys\nfrom pathlib import Path\nsys.path.append(str(Path(__file__).resolve().parent.parent))\nimport models\n", id="sys.path, pathlib"
        ),
        pytest.param("import sys, os\nsys.path.append(os.path.dirname(__file__) + '/..')\nimport models\n", id="sys.path, added"),
    ],
)
def test_a_script_in_a_folder_of_its_own_finds_what_lies_above(linked: Callable[..., Program], tmp_path: Path, start: str) -> None:
    (tmp_path / ".git").mkdir()
    assert names(linked({"tools/train.py": start, "models.py": ""}, "tools/train.py")) == ["models.py", "tools/train.py"]


@pytest.mark.parametrize("top", ["Path(__file__).resolve().parents[1]", "FILE.parents[1]", "FILE.parents[0].parent"])
def test_folders_above_by_number(linked: Callable[..., Program], top: str) -> None:
    start = f"import sys\nfrom pathlib import Path\nFILE = Path(__file__).resolve()\nROOT = {top}\nsys.path.append(str(ROOT))\nimport models\n"
    assert names(linked({"tools/train.py": start, "models.py": ""}, "tools/train.py")) == ["models.py", "tools/train.py"]


@pytest.mark.parametrize(
    "top", ["FILE.parents[99]", "FILE.parents[n]", "FILE.parents[-1]", "FILE.parents['a']", "FILE.parents[1:]", "unknown.parents[1]", "FILE.parts[1]"]
)
def test_folders_that_cannot_be_read(linked: Callable[..., Program], tmp_path: Path, top: str) -> None:
    (tmp_path / "tools" / ".git").mkdir(parents=True)  # so that the folder above is not searched
    start = f"import sys\nfrom pathlib import Path\nFILE = Path(__file__).resolve()\nsys.path.append(str({top}))\nimport models\n"
    assert names(linked({"tools/train.py": start, "models.py": ""}, "tools/train.py")) == ["tools/train.py"]


def test_nothing_is_searched_above_the_repository(linked: Callable[..., Program], tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    assert names(linked({"repo/train.py": "import models\n", "models.py": ""}, "repo/train.py")) == ["repo/train.py"]


def test_the_working_directory_is_the_top_where_there_is_no_repository(
    linked: Callable[..., Program], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = "import models, other\n"
    files = {"tools/a/train.py": start, "models.py": "", "src/other.py": ""}
    every = ["models.py", "src/other.py", "tools/a/train.py"]
    assert names(linked(files, "tools/a/train.py")) == every
    script = tmp_path / "tools" / "a" / "train.py"
    source = parse(start.encode(), "train.py")
    assert isinstance(source, Source)
    monkeypatch.chdir(tmp_path / "tools")
    assert len(linking.link(script, source).parts) == 1


def test_the_home_folder_is_not_searched(
    linked: Callable[..., Program], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = linked({"tools/train.py": "import models\n", "models.py": ""}, "tools/train.py")
    assert names(found) == ["tools/train.py"]


# ------------------------------------------------------------------ what names mean
@pytest.mark.parametrize(
    ("files", "use"),
    [
        pytest.param({"utils.py": "def save(): ...\n"}, "import utils\nutils.save()", id="attribute of a module"),
        pytest.param({"utils.py": "def save(): ...\n"}, "import utils as u\nu.save()", id="alias"),
        pytest.param({"utils.py": "def save(): ...\n"}, "from utils import save\nsave()", id="from"),
        pytest.param({"utils.py": "def save(): ...\n"}, "from utils import save as s\ns()", id="from, as"),
        pytest.param({"utils.py": "def save(): ...\n"}, "from utils import *\nsave()", id="star"),
        pytest.param({"p/__init__.py": "", "p/io.py": "def save(): ...\n"}, "import p.io\np.io.save()", id="module of a package"),
        pytest.param({"p/io.py": "def save(): ...\n"}, "import p.io\np.io.save()", id="module of a namespace folder"),
        pytest.param({"p/__init__.py": "", "p/io.py": "def save(): ...\n"}, "from p import io\nio.save()", id="module from a package"),
        pytest.param({"p/__init__.py": "from .io import save\n", "p/io.py": "def save(): ...\n"}, "import p\np.save()", id="re-export"),
        pytest.param({"p/__init__.py": "from .io import *\n", "p/io.py": "def save(): ...\n"}, "from p import save\nsave()", id="re-export by star"),
        pytest.param({"p/__init__.py": "from . import io\n", "p/io.py": "def save(): ...\n"}, "import p\np.io.save()", id="re-export of a module"),
        pytest.param({"a.py": "from b import *\n", "b.py": "def save(): ...\n"}, "from a import *\nsave()", id="star of a star"),
        pytest.param({"utils.py": "def save(): ...\n"}, "def f():\n    from utils import save\n    save()", id="in a function"),
    ],
)
def test_a_name_means_what_another_file_binds(linked: Callable[..., Program], files: Files, use: str) -> None:
    program = linked({**files, "train.py": use + "\n"})
    found = Names(program.entry.tree, program.imported, program.links)
    call = next(n for n in reversed(found.nodes) if isinstance(n, ast.Call))
    [binding] = found.bindings(*variable) if (variable := found.meant(call.func)) is not None else []
    assert binding.how == "def"
    assert found.dotted(call.func) == ""


def test_what_a_module_has_imported_keeps_its_name(linked: Callable[..., Program]) -> None:
    program = linked(
        {
            "common.py": "import torch.nn as nn\nfrom torch import optim\n",
            "train.py": "from common import *\nimport common\nnn.Linear()\ncommon.nn.Linear()\noptim.SGD()\n",
        }
    )
    found = Names(program.entry.tree, program.imported, program.links)
    assert [found.dotted(c.func) for c in (*found.calls("Linear"), *found.calls("SGD"))] == ["torch.nn.Linear", "torch.nn.Linear", "torch.optim.SGD"]


def test_positions_say_of_which_file_they_are(linked: Callable[..., Program]) -> None:
    program = linked({"utils.py": "a = 'ä'; bc = 2", "train.py": "import utils\r\nd = 1\r\n"})
    found = Names(program.entry.tree, program.imported, program.links)

    second = Span.of(found.trees[0].body[1])
    assert (program.text(second), program.where(second), program.place(second.line)) == ("bc = 2", "utils.py, line 1", "utils.py:1")
    last = Span.of(found.tree.body[1])
    assert (program.text(last), program.where(last)) == ("d = 1", "line 2")
