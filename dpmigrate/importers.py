"""Who else imports a file that a migration changes: scripts near the program that stay as they are, and get the new file all the same."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from dpmigrate import reading
from dpmigrate.linking import imported
from dpmigrate.model import Problem
from dpmigrate.plans import absolute
from dpmigrate.programs import leading_to
from dpmigrate.source import Source, parse
from dpmigrate.started import above, as_module
from dpmigrate.walk import find

#: files that are looked at, and of those that may import one, how many are followed
NEAR, FOLLOWED = 500, 50


def importers(changed: Collection[Path], migrated: Collection[Path], given: Collection[Path]) -> Iterator[tuple[Path, str]]:
    """Each changed file with a script that imports it and is none of the ``migrated`` files, which are those of all programs that are rewritten.

    Looked at are the files ``given``, those of the folders round the changed ones, or from which these are imported, and then those of their repository, where
    tests and other scripts may lie beside ``src``; what is too much is left out. Paths are absolute.
    """
    roots = (module.folder for p in changed if (module := as_module(p)) is not None)
    top = Path(os.path.commonpath([*(p.parent for p in changed), *roots]))
    near = {absolute(p): None for p in (*given, *_below(top))}
    near |= {p: None for p in map(absolute, _below(_repository(top))) if p not in near}
    candidates = [p for p in leading_to(changed, [*near, *(p for p in changed if p not in near)]) if p not in migrated]
    parsed: dict[tuple[str, bytes], Source | Problem] = {}
    programs = {p: _files(p, parsed) for p in candidates[:FOLLOWED]}
    for path in sorted(changed):
        users = [p for p, files in programs.items() if path in files]
        for user in users:
            if not any(user in programs[p] for p in users if p != user):  # a module of another of them says nothing new
                yield path, os.path.relpath(user)


def _below(folder: Path) -> Iterator[Path]:
    """The Python files of a folder, as far as they are looked at."""
    return islice((p for p in find((str(folder),)) if isinstance(p, Path)), NEAR)


def _repository(folder: Path) -> Path:
    """The outermost folder from which what lies in a folder may be imported: that of its repository, or the working directory, where these lie above."""
    return min((p for p in above(folder) if folder.is_relative_to(p)), key=lambda p: len(p.parts), default=folder)


def _files(script: Path, parsed: dict[tuple[str, bytes], Source | Problem]) -> frozenset[Path]:
    """What the script imports, over any number of files."""
    try:
        source = parse(reading.content(script), str(script))
        return imported(script, source, parsed) if isinstance(source, Source) else frozenset()
    except (OSError, RecursionError):  # told where the file itself is looked at
        return frozenset()
