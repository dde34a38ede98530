"""What files the program writes."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import pytest

from dpmigrate.facts.written import archives, makers, opened, writes
from tests.pipeline import script

_HEAD = "import gzip, json, logging, os, shutil, tarfile\nimport numpy as np\nfrom pathlib import Path\npath = Path('a')\n"


def _texts(nodes: Iterable[ast.AST]) -> list[str]:
    return [ast.unparse(n) for n in nodes]


@pytest.mark.parametrize(
    "line",
    ["open('a')", "open('a', 'rb')", "open('a', mode)", "path.open()", "np.load('a')", "tarfile.open('a')", "os.makedirs('a')", "logging.basicConfig(level=3)"],
)
def test_nothing_is_written(line: str) -> None:
    found = script(_HEAD + line)
    assert (list(opened(found)), list(archives(found)), list(writes(found)), makers(found)) == ([], [], [], frozenset())


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("open('a', 'w')", "'a'"),
        ("open(file='a', mode='ab')", "'a'"),
        ("gzip.open('a', 'wb')", "'a'"),
        ("path.open('w')", "path"),
        ("logging.FileHandler('a')", "'a'"),
        ("logging.basicConfig(filename='a')", "'a'"),
    ],
)
def test_opened_for_writing(line: str, path: str) -> None:
    found = script(_HEAD + line)
    assert _texts(opened(found)) == [path]
    assert len(makers(found)) == 1


@pytest.mark.parametrize(
    ("line", "written", "made"),
    [
        ("np.save('a', x)", True, True),
        ("path.write_text('a')", True, True),
        ("tarfile.open('a', 'w:gz')", False, True),
        ("tarfile.open('a').extractall()", False, True),
        ("json.dump(x, f)", False, True),
        ("shutil.rmtree('a')", False, False),
    ],
)
def test_other_calls(line: str, written: bool, made: bool) -> None:
    found = script(_HEAD + line)
    assert (bool(list(writes(found))), bool(makers(found))) == (written, made)
