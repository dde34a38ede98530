"""Where directories are made, by a program that is not ready for one that is there."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.directories import unprepared
from tests.pipeline import script


def _found(text: str) -> list[tuple[str, str | None]]:
    found = unprepared(script(f"import os\nfrom pathlib import Path\nflag = ask()\n{text}"))
    return [(ast.unparse(m.call), ast.unparse(m.exist_ok) if m.exist_ok is not None else None) for m in found]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("os.listdir('a')", id="makes none"),
        pytest.param("os.makedirs('a', exist_ok=True)", id="may be there"),
        pytest.param("os.makedirs('a', 0o777, True)", id="may be there, by position"),
        pytest.param("yes = True\nPath('a').mkdir(exist_ok=yes)", id="may be there, by a name"),
        pytest.param("try:\n    os.mkdir('a')\nexcept FileExistsError:\n    pass", id="caught"),
        pytest.param("sftp.mkdir('a')", id="another library's"),
    ],
)
def test_ready(text: str) -> None:
    assert _found(text) == []


@pytest.mark.parametrize(
    ("text", "call", "exist_ok"),
    [
        ("os.mkdir('a')", "os.mkdir('a')", None),
        ("os.makedirs('a', exist_ok=False)", "os.makedirs('a', exist_ok=False)", None),
        ("Path('a').mkdir(parents=True)", "Path('a').mkdir(parents=True)", None),
        ("Path('a').mkdir(0o755)", "Path('a').mkdir(493)", None),
        ("os.makedirs('a', exist_ok=flag)", "os.makedirs('a', exist_ok=flag)", "flag"),
        ("try:\n    os.mkdir('a')\nexcept ValueError:\n    pass", "os.mkdir('a')", None),
        ("try:\n    os.mkdir('a')\nexcept OSError:\n    raise", "os.mkdir('a')", None),
    ],
)
def test_not_ready(text: str, call: str, exist_ok: str | None) -> None:
    assert _found(text) == [(call, exist_ok)]
