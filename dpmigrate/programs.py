"""Which of many files are programs: the scripts that start something, before the modules that they may import.

Only bytes are read here: a file is of interest if it trains, or if it imports, over any number of files, one that does. Names of modules are compared
by their last word, which may take too many for importers, never too few.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmigrate import reading

_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b(.*)|import[ \t]+(.+))", re.MULTILINE)
_WORD = re.compile(rb"\w+")


@dataclass(frozen=True)
class Kinds:
    """``scripts`` have a main guard or nothing that imports them, ``modules`` are imported by another; ``idle`` neither train nor lead to training."""

    scripts: Sequence[Path]
    modules: Sequence[Path]
    idle: Sequence[Path]


def kinds(paths: Sequence[Path], literals: tuple[bytes, ...]) -> Kinds:
    """Sort the files of a check or an apply. Files that cannot be read are scripts: what is wrong with them will be told."""
    imported: dict[Path, frozenset[bytes]] = {}
    training, guarded, unread = set(), set(), set()
    for path in paths:
        try:
            data = reading.content(path)
        except OSError:
            unread.add(path)
            continue
        imported[path] = _words(data)
        if any(literal in data for literal in literals) or b"\0" in data or data.startswith((b"\xff\xfe", b"\xfe\xff")):
            training.add(path)
        if b"__main__" in data:
            guarded.add(path)
    leading = _leading(imported, training)
    uses = Counter(word for words in imported.values() for word in words)
    scripts = [p for p in paths if p in unread or (p in leading and (p in guarded or uses[_name(p)] == (_name(p) in imported[p])))]
    chosen = set(scripts)
    return Kinds(scripts, [p for p in paths if p in leading and p not in chosen], [p for p in paths if p in imported and p not in leading])


def leading_to(files: Collection[Path], paths: Iterable[Path]) -> list[Path]:
    """Of the paths, those that seem to import one of the files, over any number of files."""
    imported: dict[Path, frozenset[bytes]] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            imported[path] = _words(reading.content(path))
    found = _leading(imported, set(files))
    return [p for p in imported if p in found]


def _words(data: bytes) -> frozenset[bytes]:
    """The words of a file's import statements; of a list in brackets over several lines, those of the first."""
    return frozenset(word for m in _IMPORT.finditer(data) for part in m.groups() if part for word in _WORD.findall(part.partition(b"#")[0]))


def _name(path: Path) -> bytes:
    return (path.parent.name if path.stem == "__init__" else path.stem).encode("utf-8", "surrogateescape")


def _leading(imported: dict[Path, frozenset[bytes]], training: set[Path]) -> set[Path]:
    """The files that train, and those that import one, over any number of files."""
    importers: dict[bytes, list[Path]] = {}
    for path, words in imported.items():
        for word in words:
            importers.setdefault(word, []).append(path)
    found, todo = set(training), list(training)
    while todo:
        path = todo.pop()
        # what a package's folder brings in is also reached by the package's name
        names: Iterable[bytes] = (_name(path), path.parent.name.encode("utf-8", "surrogateescape"))
        for importer in (i for name in names for i in importers.get(name, ())):
            if importer not in found:
                found.add(importer)
                todo.append(importer)
    return found
