"""Files that rank 0 writes and all ranks read afterwards."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.readback import read_backs, waits_at
from tests.pipeline import script
from tests.rules.program import program


@pytest.mark.parametrize(
    ("before", "end"),
    [
        pytest.param("", "x = np.load('a.npy')", id="a file of somebody else"),
        pytest.param("", "np.save('a.npy', model)", id="nobody reads it"),
        pytest.param("x = np.load('a.npy')", "np.save('a.npy', model)", id="read before"),
        pytest.param("", "np.save('a.npy', model)\nx = np.load('b.npy')", id="another file"),
    ],
)
def test_nobody_waits(before: str, end: str) -> None:
    assert list(read_backs(script(program(imports="import numpy as np", before=before, end=end)))) == []


@pytest.mark.parametrize(
    ("end", "read", "place"),
    [
        ("np.save('a.npy', model)\nx = np.load('a.npy')", "np.load('a.npy')", "x = np.load('a.npy')"),
        ("path = 'a.npy'\nnp.save(path, model)\nx = np.load(path)", "np.load(path)", "x = np.load(path)"),
        ("np.save('a.npy', model)\nfor i in range(3):\n    x = np.load('a.npy')", "np.load('a.npy')", "for i in range(3):\n    x = np.load('a.npy')"),
    ],
)
def test_what_is_read_back(end: str, read: str, place: str) -> None:
    found = script(program(imports="import numpy as np", end=end))
    (call,) = read_backs(found)
    assert (ast.unparse(call), ast.unparse(waits_at(found, call))) == (read, place)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("def keep(path):\n    np.save(path, model)\nkeep('a.npy')\nkeep('b.npy')\nx = np.load('b.npy')", id="given different paths"),
        pytest.param("def keep(**kwargs):\n    np.save(kwargs['path'], model)\nkeep(path='b.npy')\nx = np.load('b.npy')", id="by a collected name"),
        pytest.param("def keep(**kwargs):\n    np.save(kwargs['path'], model)\nkeep(path='a.npy')\nkeep(path='b.npy')\nx = np.load('b.npy')", id="by both"),
    ],
)
def test_paths_that_calls_give(end: str) -> None:
    (call,) = read_backs(script(program(imports="import numpy as np", end=end)))
    assert ast.unparse(call) == "np.load('b.npy')"


@pytest.mark.parametrize(
    "read",
    [
        pytest.param("for i in range(len(paths)):\n    x = np.load(paths[i])", id="by number"),
        pytest.param("for path in paths:\n    x = np.load(path)", id="each"),
    ],
)
def test_paths_of_a_list(read: str) -> None:
    end = f"for name in ('a', 'b'):\n    np.save('kept/' + name + '.npy', model)\npaths = ['kept/' + n + '.npy' for n in ('a', 'b')]\n{read}"
    found = script(program(imports="import numpy as np", end=end))
    (call,) = read_backs(found)
    assert ast.unparse(waits_at(found, call)) == read


def test_another_path_than_calls_give() -> None:
    end = "def keep(**kwargs):\n    np.save(kwargs['path'], model)\nkeep(path='a.npy', other='c.npy')\nkeep(path='b.npy')\nx = np.load('c.npy')"
    assert list(read_backs(script(program(imports="import numpy as np", end=end)))) == []
