"""DPM517: tests that stop where a file is there."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import after, found, hits

_IMPORTS = "import sys\nfrom pathlib import Path"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"setup": "if not os.path.exists('data'):\n    raise FileNotFoundError('data')"}, id="a file that must be there"),
        pytest.param({"setup": "if os.path.exists('net.pt'):\n    print('found')"}, id="nothing stops"),
        pytest.param({"setup": "if not (os.path.exists('a') or os.path.exists('b')):\n    sys.exit(1)"}, id="none of two is there"),
        pytest.param({"setup": "if len(sys.argv) > 9:\n    sys.exit(1)"}, id="a test of something else"),
        pytest.param({"setup": "print(\"if os.path.exists('a'): raise\")  # if os.path.exists('a'): raise"}, id="in a string and a comment"),
        pytest.param({"defs": "def unused():\n    if os.path.exists('a'):\n        raise OSError"}, id="nothing calls it"),
        pytest.param({"defs": "class D:\n    def __getitem__(self, i):\n        if os.path.exists('a'):\n            raise OSError"}, id="in a worker process"),
        pytest.param({"setup": "for i in range(9):\n    if os.path.exists(f'a{i}'):\n        raise OSError"}, id="in a loop"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM517", imports=_IMPORTS, **parts) == []


@pytest.mark.parametrize(
    "test",
    [
        pytest.param("os.path.exists('metrics.csv')", id="a function"),
        pytest.param("Path('metrics.csv').exists()", id="a method"),
        pytest.param("os.path.isdir(name) and not overwrite", id="unless it is wanted"),
        pytest.param("not overwrite and Path(name).is_file()", id="the other way round"),
    ],
)
@pytest.mark.parametrize("stop", ["raise ValueError(name)", "sys.exit(1)", "print('there')\n    exit()"])
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(test: str, stop: str, module_level: bool) -> None:
    setup = f"name, overwrite = 'metrics.csv', False\nif {test}:\n    {stop}"
    parts: dict[str, str | bool] = {"imports": _IMPORTS, "setup": setup, "module_level": module_level}
    assert found("DPM517", **parts) == [test]
    assert f"if ddp.from_main({test}):" in after(**parts)


def test_in_a_function_that_is_called() -> None:
    defs = "def checked(folder):\n    if (folder / 'metrics.csv').exists():\n        raise ValueError('refusing to overwrite')"
    assert "if ddp.from_main((folder / 'metrics.csv').exists()):" in after(imports=_IMPORTS, defs=defs, setup="checked(Path('out'))")


def test_where_not_all_ranks_may_come() -> None:
    (hit,) = hits("DPM517", imports=f"{_IMPORTS}\nimport random", setup="if random.SystemRandom().random() > 0.5:\n    if os.path.exists('a'):\n        raise OSError('a')")
    assert hit.severity is Severity.WARNING
    assert "ddp.from_main" in hit.advice
