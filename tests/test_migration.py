"""What is checked of a result as a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import migration
from dpmigrate.facts.script import Script
from dpmigrate.linking import link
from dpmigrate.settings import Settings
from dpmigrate.source import Source, parse

_NET = "import torch\nimport dpmigrate_runtime as ddp\nddp.setup()\n"
_EVALUATE = "import dpmigrate_runtime as ddp\ndef evaluate():\n    return ddp.sum_all(1)\ndef show(): ...\n"


def rechecked(folder: Path, script: str, engine: str = _EVALUATE, place: str = "engine.py") -> str:
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_text(engine)
    (folder / "train.py").write_text(_NET + script)
    source = parse((_NET + script).encode(), str(folder / "train.py"))
    assert isinstance(source, Source)
    again = migration._again(Script(link(folder / "train.py", source), Settings()), {})
    assert isinstance(again, Script)
    return migration._recheck(again)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("import engine\nengine.evaluate()\nif ddp.is_main():\n    engine.show()\n", id="outside the guard"),
        pytest.param(
            "from elsewhere import evaluate as ev\nimport engine, other\nif ddp.is_main():\n    ev()\n    other.evaluate()\n", id="of another package"
        ),
        pytest.param("from engine import show as evaluate\nif ddp.is_main():\n    evaluate()\n", id="under the other's name"),
    ],
)
def test_all_ranks_come_by(tmp_path: Path, use: str) -> None:
    assert rechecked(tmp_path, use) == ""


@pytest.mark.parametrize(
    ("use", "place"),
    [
        pytest.param("import engine\nif ddp.is_main():\n    engine.evaluate()\n", "engine.py", id="module"),
        pytest.param("import engine as e\nif ddp.is_main():\n    e.evaluate()\n", "engine.py", id="module, as"),
        pytest.param("from engine import evaluate\nif ddp.is_main():\n    evaluate()\n", "engine.py", id="function"),
        pytest.param("from engine import evaluate as ev\nif ddp.is_main():\n    ev()\n", "engine.py", id="function, as"),
        pytest.param("from engine import *\nif ddp.is_main():\n    evaluate()\n", "engine.py", id="star"),
        pytest.param("import p.engine\nif ddp.is_main():\n    p.engine.evaluate()\n", "p/engine.py", id="module of a package"),
        pytest.param("from p import engine\nif ddp.is_main():\n    engine.evaluate()\n", "p/engine.py", id="module from a package"),
        pytest.param("from p.engine import evaluate as ev\nif ddp.is_main():\n    ev()\n", "p/engine.py", id="function of a package"),
    ],
)
def test_a_collective_of_another_file_under_a_guard(tmp_path: Path, use: str, place: str) -> None:
    said = rechecked(tmp_path, use, place=place)
    assert said == f"{tmp_path / place}, line 3: sum_all() waits for every rank but stands under the rank-0 guard of line 5"


_WRAPS = "import torch\nfrom torch import nn\ndef wrapped(net):\n    return nn.DataParallel(net)\ndef built(): ...\n"
_TRAIN = "def train(net):\n    net(1).backward()\n"


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("import engine\nengine.wrapped(1)\n", id="module"),
        pytest.param("from engine import wrapped as w\nw(1)\n", id="function, as"),
        pytest.param("import engine\nf = vars(engine)[input()]\n", id="by name"),
        pytest.param("import engine\ndef wrap(net):\n    return torch.nn.DataParallel(net)\nwrap(1)\n", id="of the script"),
    ],
)
def test_data_parallel_that_may_run_is_left(tmp_path: Path, use: str) -> None:
    script = f"{use}{_TRAIN}if __name__ == '__main__':\n    train(1)\n"
    assert rechecked(tmp_path, script, _WRAPS) == "a second run would not recognise the result as migrated"


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("import engine\nengine.built()\n", id="module"),
        pytest.param("from engine import built as b\nb()\n", id="function, as"),
        pytest.param("import engine\nengine.built()\ndef wrap(net):\n    return torch.nn.DataParallel(net)\n", id="of the script"),
    ],
)
def test_data_parallel_that_nothing_runs(tmp_path: Path, use: str) -> None:
    assert rechecked(tmp_path, f"{use}{_TRAIN}if __name__ == '__main__':\n    train(1)\n", _WRAPS) == ""
