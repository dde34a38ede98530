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
from dpmigrate.started import as_module
from dpmigrate.walk import find

#: files that are looked at, and of those that may import one, how many are followed
NEAR, FOLLOWED = 500, 50


def importers(changed: Collection[Path], migrated: Collection[Path], given: Collection[Path]) -> Iterator[tuple[Path, str]]:
    """Each changed file with a script that imports it and is none of the ``migrated`` files, which are those of all programs that are rewritten.

    Looked at are the files ``given`` and those of the folders round the changed ones, or from which these are imported; what is too much is left out. Paths are
    absolute.
    """
    roots = (module.folder for p in changed if (module := as_module(p)) is not None)
    top = Path(os.path.commonpath([*(p.parent for p in changed), *roots]))
    near = {absolute(p): None for p in (*given, *islice((p for p in find((str(top),)) if isinstance(p, Path)), NEAR))}
    candidates = [p for p in leading_to(changed, [*near, *(p for p in changed if p not in near)]) if p not in migrated]
    parsed: dict[tuple[str, bytes], Source | Problem] = {}
    programs = {p: _files(p, parsed) for p in candidates[:FOLLOWED]}
    for path in sorted(changed):
        users = [p for p, files in programs.items() if path in files]
        for user in users:
            if not any(user in programs[p] for p in users if p != user):  # a module of another of them says nothing new
                yield path, os.path.relpath(user)


def _files(script: Path, parsed: dict[tuple[str, bytes], Source | Problem]) -> frozenset[Path]:
    """What the script imports, over any number of files."""
    try:
        source = parse(reading.content(script), str(script))
        return imported(script, source, parsed) if isinstance(source, Source) else frozenset()
    except (OSError, RecursionError):  # told where the file itself is looked at
        return frozenset()
