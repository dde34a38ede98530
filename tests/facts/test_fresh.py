"""Which paths are made of the time, or of what stands in a directory already."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.fresh import clocks, file_tests, free_names, listings
from tests.facts.probe import probed
from tests.pipeline import script
from tests.rules.program import program

_IMPORTS = "import argparse, glob, time, uuid\nfrom datetime import datetime\nfrom pathlib import Path"


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("start = time.time()\nprint(time.time() - start)", id="measured"),
        pytest.param("os.makedirs('out')", id="a fixed name"),
        pytest.param("p = argparse.ArgumentParser()\np.add_argument('--begin', default=time.time())\na = p.parse_args()\nos.makedirs(a.out)", id="another option"),
        pytest.param("print(time.strftime('%H'))", id="shown"),
    ],
)
def test_no_clock_in_a_path(setup: str) -> None:
    assert list(clocks(script(program(imports=_IMPORTS, setup=setup)))) == []


def test_not_between_the_epochs() -> None:
    assert list(clocks(script(program(imports=_IMPORTS, epoch_end="torch.save(model, str(time.time()))")))) == []


@pytest.mark.parametrize(
    ("setup", "call"),
    [
        ("os.makedirs(time.strftime('%H'))", "time.strftime('%H')"),
        ("name = f'run_{time.time()}'\nos.makedirs(os.path.join('out', name))", "time.time()"),
        ("folder = Path('out') / str(uuid.uuid4())\nfolder.mkdir()", "uuid.uuid4()"),
        ("p = argparse.ArgumentParser()\np.add_argument('--run-name', '-r', default=time.strftime('%H'))\na = p.parse_args()\nos.makedirs(a.run_name)", "time.strftime('%H')"),
        ("p = argparse.ArgumentParser()\np.add_argument('-r', dest='run', default=time.ctime())\na = p.parse_args()\nos.makedirs(a.run)", "time.ctime()"),
        ("def name():\n    return datetime.now().strftime('%H')\nos.makedirs(name())", "datetime.now()"),
        ("os.makedirs(os.path.join('out', datetime.today().isoformat()))", "datetime.today()"),
        ("def name(at=None):\n    if at is None:\n        at = datetime.now()\n    text = str(at).split('.')[0]\n    return text.replace(':', '_')\n"
         "folder = Path('out') / name()\nos.makedirs(folder)", "datetime.now()"),
    ],
)
def test_a_clock_in_a_path(setup: str, call: str) -> None:
    assert [ast.unparse(c) for c in clocks(script(program(imports=_IMPORTS, setup=setup)))] == [call]


@pytest.mark.parametrize(
    ("setup", "found"),
    [
        ("print(len(os.listdir('out')))", []),
        ("for f in os.listdir('out'):\n    print(f)", []),
        ("n = len(os.listdir('out'))\nos.makedirs(f'out/run{n}')", [("os.listdir('out')", True)]),
        ("n = len(list(Path('out').glob('run*')))\nos.makedirs(f'out/run{n}')", [("Path('out').glob('run*')", False)]),
    ],
)
def test_listings_that_are_counted_for_a_path(setup: str, found: list[tuple[str, bool]]) -> None:
    assert [(ast.unparse(c), lists) for c, lists in listings(script(program(imports=_IMPORTS, setup=setup)))] == found


@pytest.mark.parametrize(
    ("setup", "tests"),
    [
        ("while i < 3:\n    i += 1", []),
        ("if os.path.exists(path):\n    i = 1", []),
        ("while os.path.exists(f'run{i}'):\n    i += 1", ["os.path.exists(f'run{i}')"]),
        ("for i in range(99):\n    if not Path(f'run{i}').exists():\n        break", ["not Path(f'run{i}').exists()"]),
    ],
)
def test_searches_for_a_free_name(setup: str, tests: list[str]) -> None:
    found = script(program(imports=_IMPORTS, setup=f"i, path = 0, 'a'\n{setup}"))
    assert [ast.unparse(t) for t in free_names(found)] == tests


def test_tests_of_files_round_a_node() -> None:
    text = "import os\ndef make():\n    if quick:\n        if not os.path.exists('a'):\n            probe(1)\nif os.path.exists('b'):\n    make()\n"
    found, node = probed(text)
    assert [ast.unparse(t) for t in file_tests(found, node)] == ["not os.path.exists('a')"]
