"""What only some ranks run: the tests, loops and handlers round an assignment decide what its variable holds."""

from __future__ import annotations

import pytest

from dpmigrate.facts.control import uniform
from tests.facts.probe import probed

_HEAD = "import signal\nimport argparse\nargs = argparse.ArgumentParser().parse_args()\nflag = 0\n"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("flag = 1", id="nothing round it"),
        pytest.param("if args.quick:\n    flag = 1", id="a setting"),
        pytest.param("for i in range(args.n):\n    flag = 1", id="counted turns"),
        pytest.param("try:\n    import apex\nexcept ImportError:\n    flag = 1", id="a missing library"),
        pytest.param("def on():\n    global flag\n    flag = 1\non()", id="in a function that all ranks call"),
        pytest.param("for i in range(3):\n    if i == 1:\n        continue\n    flag = 1", id="turns that all ranks skip"),
        pytest.param("for x, y in loader:\n    flag = 1", id="as many batches"),
    ],
)
def test_run_by_all(lines: str) -> None:
    found, node = probed(f"{_HEAD}{lines}\nprobe(flag)")
    assert uniform(found.names, node)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("if ask():\n    flag = 1", id="a test"),
        pytest.param("while ask():\n    flag += 1", id="a loop"),
        pytest.param("try:\n    work()\nexcept ValueError:\n    flag = 1", id="a handler"),
        pytest.param("try:\n    work()\n    flag = 1\nexcept ValueError:\n    pass", id="behind what may fail"),
        pytest.param("def on(*a):\n    global flag\n    flag = 1\nsignal.signal(signal.SIGTERM, on)", id="a signal"),
        pytest.param("def on():\n    global flag\n    flag = 1\nif ask():\n    on()", id="in a function that some ranks call"),
        pytest.param("for i in range(3):\n    if ask():\n        continue\n    flag += 1", id="turns that some ranks skip"),
        pytest.param("match ask():\n    case 1:\n        flag = 1", id="a pattern"),
        pytest.param("for x, y in loader:\n    for z in x:\n        flag += 1", id="as many samples"),
    ],
)
def test_run_by_some(lines: str) -> None:
    found, node = probed(f"{_HEAD}{lines}\nprobe(flag)")
    assert not uniform(found.names, node)
