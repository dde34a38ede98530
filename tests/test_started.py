"""How a script is started: by its path, or as a module of its package."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.started import as_module, result_as_module


def module(folder: Path, script: str, *others: str, text: str) -> tuple[str, str] | None:
    for name in (*others, script):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / script).write_text(text)
    found = as_module(folder / script)
    return None if found is None else (found.name, found.folder.relative_to(folder).as_posix())


@pytest.mark.parametrize(
    ("script", "others", "text"),
    [
        pytest.param("train.py", (), "import torch\n", id="a script"),
        pytest.param("proj/train.py", ("proj/__init__.py",), "import torch\n", id="in a package of which it imports nothing"),
        pytest.param("proj/train.py", ("proj/data.py",), "import data\n", id="a neighbour"),
        pytest.param("proj/train.py", ("proj/__init__.py", "proj/data.py"), "import data\nimport proj\n", id="a neighbour, and the package"),
        pytest.param("tools/train.py", ("lib/net.py",), "import sys\nsys.path.insert(0, '.')\nfrom lib import net\n", id="a folder put on the path"),
        pytest.param("p/train.py", ("p/__init__.py",), "import sys\nsys.path.append('.')\nimport p\n", id="its package's folder put on the path"),
        pytest.param("p/train.py", ("p/net.py",), "try:\n    from .net import a\nexcept ImportError:\n    from net import a\n", id="an import that may fail"),
        pytest.param("p/train.py", ("p/net.py",), "try:\n    from .net import a\nexcept:\n    from net import a\n", id="any failure"),
        pytest.param("my-project/train.py", (), "from . import net\n", id="a folder that is no name"),
        pytest.param("torch/train.py", (), "import torch\nfrom torch import nn\n", id="a folder that is named as a library"),
        pytest.param("p/train.py", ("q/rows.csv",), "from q import net\n", id="another folder without such a module"),
        pytest.param("p/train.py", ("json.py",), "import json\n", id="a module of Python's own"),
        pytest.param("p/train.py", ("p/p/net.py", "p/net.py"), "from p.net import Net\n", id="a folder beside it of the same name"),
        pytest.param("proj/__main__.py", ("proj/net.py",), "import net\n", id="a folder that is started as a whole"),
        pytest.param("train.py", (), "from . import (\n", id="no Python"),
    ],
)
def test_started_by_its_path(script: str, others: tuple[str, ...], text: str, tmp_path: Path) -> None:
    assert module(tmp_path, script, *others, text=text) is None


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    assert as_module(tmp_path / "train.py") is None


@pytest.mark.parametrize(
    ("script", "others", "text", "name"),
    [
        pytest.param("proj/train.py", ("proj/__init__.py",), "from .net import Net\n", "proj.train", id="a relative import"),
        pytest.param("proj/train.py", (), "from . import net\n", "proj.train", id="a package without __init__"),
        pytest.param("proj/train.py", ("proj/net.py",), "from proj.net import Net\n", "proj.train", id="its folder by name"),
        pytest.param("src/run/train.py", ("src/__init__.py", "src/nets/net.py"), "from src.nets import net\n", "src.run.train", id="the folder above by name"),
        pytest.param("p/train.py", ("q/net.py",), "from q.net import Net\n", "p.train", id="another folder's module"),
        pytest.param("p/run/train.py", ("q/nets/net.py",), "from q.nets.net import Net\n", "p.run.train", id="a package two folders up"),
        pytest.param("p/train.py", ("net.py",), "from net import Net\n", "p.train", id="a module above it"),
        pytest.param("proj/tools/train.py", (), "from ..net import Net\n", "proj.tools.train", id="two folders up"),
        pytest.param(
            "proj/tools/train.py", ("proj/__init__.py", "proj/tools/__init__.py"), "from .x import y\n", "proj.tools.train", id="a package in a package"
        ),
        pytest.param("proj/train.py", ("proj/__init__.py",), "from proj.net import Net\n", "proj.train", id="its package by name"),
        pytest.param("proj/train.py", ("proj/__init__.py",), "import proj.net as net\n", "proj.train", id="its package by name, as a module"),
        pytest.param("proj/__main__.py", ("proj/__init__.py",), "from .net import Net\n", "proj", id="__main__"),
        pytest.param("proj/train.py", (), "def main():\n    from .net import Net\n", "proj.train", id="inside a function"),
        pytest.param("proj/train.py", (), "try:\n    from .net import Net\nexcept ValueError:\n    raise\n", "proj.train", id="another error is caught"),
    ],
)
def test_started_as_a_module(script: str, others: tuple[str, ...], text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert module(tmp_path, script, *others, text=text) == (name, ".")


def test_the_top_of_a_repository_is_no_package(tmp_path: Path) -> None:
    for name in (".git", "clone/.git"):
        (tmp_path / name).mkdir(parents=True)
    packages = ("clone/__init__.py", "clone/src/__init__.py")
    assert module(tmp_path, "clone/src/train.py", *packages, text="from .net import Net\n") == ("src.train", "clone")
    assert module(tmp_path, "clone/src/train.py", *packages, text="from ..net import Net\n") == ("clone.src.train", ".")


@pytest.mark.parametrize("top", ["p", "elsewhere"])
def test_what_lies_above_the_repository_is_not_imported(top: str, tmp_path: Path) -> None:
    (tmp_path / top / ".git").mkdir(parents=True)
    assert module(tmp_path, "p/train.py", "q/net.py", text="from q.net import Net\n") is None


@pytest.mark.parametrize(
    ("script", "written", "name"),
    [
        pytest.param("proj/train.py", None, "proj.train", id="in its place"),
        pytest.param("proj/train.py", "proj/train_ddp.py", "proj.train_ddp", id="beside it"),
        pytest.param("proj/__main__.py", "proj/__main__.py", "proj", id="__main__"),
        pytest.param("proj/train.py", "other/train.py", "", id="elsewhere"),
    ],
)
def test_the_result(script: str, written: str | None, name: str, tmp_path: Path) -> None:
    module(tmp_path, script, "proj/__init__.py", text="from .net import Net\n")
    found = result_as_module(tmp_path / script, tmp_path / written if written is not None else None)
    assert (found.name if found is not None else "") == name
