"""Imports of a program's own modules whose files are not there: submodules of git that were not fetched, generated files, parts that were never published.

An import that names neither a file of the program nor anything beside it is taken for an installed package. It is the program's own where it is relative,
where a folder of Python files has its first word, or where that folder is empty or a submodule of git.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from dpmigrate import reading

#: what a compiled module ends with, and what is compiled to one
_COMPILED = (".so", ".pyd", ".pyx", ".pyc")


def bases(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The modules that an import statement needs, with the dots of relative ones: ``from .engine import train`` needs ``.engine``."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif statement.module:
        yield "." * statement.level + statement.module


def missing(folders: Iterable[Path], words: list[str], submodules: Collection[Path], *, relative: bool) -> Path | None:
    """The first file or folder of a module that lies in none of the folders where it should be; None where it is there, or is none of the program's.

    ``words`` are those of the dotted name, ``submodules`` the folders of submodules of git. A ``relative`` import has one folder, and is always the
    program's own.
    """
    for folder in folders:
        place = folder
        if not relative and not os.path.isdir(folder / words[0]) and folder / words[0] not in submodules:
            continue
        for i, word in enumerate(words):
            if not os.path.isdir(place / word):
                if _module(place, word):
                    return None
                if i and (_empty(place) or place in submodules):
                    return place
                last = i == len(words) - 1 and place / word not in submodules
                lost = place / (f"{word}.py" if last else word)
                return lost if relative or not i or _of_python(folder / words[0]) else None
            place /= word
        return place if _empty(place) else None
    return None


def submodules(folder: Path) -> frozenset[Path]:
    """The folders of the submodules of git in the repositories that the folder lies in, by their ``.gitmodules``."""
    found: set[Path] = set()
    for top in (folder, *folder.parents):
        text = ""
        with suppress(OSError, UnicodeDecodeError):
            text = reading.content(top / ".gitmodules").decode("utf-8")
        pairs = (line.partition("=") for line in text.splitlines())
        found |= {Path(os.path.normpath(top / value.strip())) for key, _, value in pairs if key.strip() == "path"}
    return frozenset(found)


def _module(folder: Path, word: str) -> bool:
    """Whether a file of the folder is the module, also one that is compiled."""
    with suppress(OSError):
        return any(f.name == f"{word}.py" or (f.name.partition(".")[0] == word and f.suffix in _COMPILED) for f in folder.iterdir())
    return False


def _empty(folder: Path) -> bool:
    with suppress(OSError):
        return not any(folder.iterdir())
    return False


def _of_python(folder: Path) -> bool:
    """Whether the folder holds Python files, itself or in a folder of its own: a folder of data may be called as an installed package is."""
    return any(True for pattern in ("*.py", "*/*.py") for _ in folder.glob(pattern))
