"""Which files a command is about: the ones named, and what a directory holds of Python that is the user's own."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmigrate import reading
from dpmigrate.model import Problem

if TYPE_CHECKING:
    import pathspec

_LEFT_OUT = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "env"})
_Ignore = tuple[Path, "pathspec.PathSpec[Any]"]


def find(paths: tuple[str, ...], exclude: tuple[str, ...] = (), root: Path = Path()) -> Iterator[Path | tuple[Path, Problem]]:
    """The Python files of the paths, each once, in a stable order; a path that is no file or directory comes with its problem.

    ``exclude`` are patterns as in .gitignore, seen from ``root``, for what directories hold; a file that is named itself is meant.
    """
    seen: set[tuple[int, int]] = set()
    left_out = _patterns(root, list(exclude)) if exclude else []
    for name in paths:
        path = Path(name)
        try:
            status = path.stat()
        except OSError as e:
            yield path, Problem(reading.why(e))
            continue
        if stat.S_ISDIR(status.st_mode):
            yield from _walk(path, seen, left_out)
        elif not stat.S_ISREG(status.st_mode):
            yield path, Problem("not a regular file")
        elif _new(status, seen):
            yield path


def _new(status: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    key = (status.st_dev, status.st_ino)
    if key in seen:
        return False
    seen.add(key)
    return True


def _walk(root: Path, seen: set[tuple[int, int]], left_out: list[_Ignore]) -> Iterator[Path | tuple[Path, Problem]]:
    out = tuple(left_out)
    above: tuple[_Ignore, ...] = ()
    try:
        above = _above(root)
    except OSError as e:
        yield Path(str(e.filename)), Problem(f"cannot be read: {reading.why(e)}")
    stack: list[tuple[Path, tuple[_Ignore, ...]]] = [(root, above)]
    while stack:
        folder, ignores = stack.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError as e:
            yield folder, Problem(reading.why(e))
            continue
        try:
            ignores = (*ignores, *_ignore_file(folder))
        except OSError as e:
            yield folder / _IGNORE, Problem(f"cannot be read: {reading.why(e)}")
        folders = []
        for entry in entries:
            path = Path(entry.path)
            try:
                is_folder, wanted = _wanted(entry, root)
                if not wanted or any(_ignored(path, by, folder=is_folder) for by in (ignores, out)) or not _new(path.stat(), seen):
                    continue
            except OSError as e:  # it is gone by now, or nothing may be asked of it
                yield path, Problem(reading.why(e))
                continue
            if is_folder:
                folders.append((path, ignores))
            else:
                yield path
        stack += reversed(folders)


def _wanted(entry: os.DirEntry[str], root: Path) -> tuple[bool, bool]:
    """Whether an entry is a folder, and whether it may hold the user's own Python.

    A link that leads out of the tree, round in it or nowhere is not followed.
    """
    path = Path(entry.path)
    if entry.is_dir(follow_symlinks=False):
        return True, _own_folder(path)
    if not entry.name.endswith(".py"):
        return False, False
    if entry.is_symlink():
        return False, os.path.isfile(path) and _real(path).is_relative_to(_real(root))
    return False, entry.is_file(follow_symlinks=False)


def _real(path: Path) -> Path:
    """The path without links; one that leads round in a circle stays as it is."""
    return Path(os.path.realpath(path))


def _own_folder(path: Path) -> bool:
    """Hidden folders, virtual environments and installed packages are not the user's program."""
    name = path.name
    return not name.startswith(".") and (name not in _LEFT_OUT or _is_package(path)) and not os.path.exists(path / "pyvenv.cfg")


def _is_package(path: Path) -> bool:
    """``env`` is also what people call a package of environments."""
    return path.name in ("env", "venv") and os.path.exists(path / "__init__.py")


def _above(root: Path) -> tuple[_Ignore, ...]:
    """The .gitignore files between the repository's top and the folder."""
    found: list[_Ignore] = []
    folder = _real(root)
    for parent in folder.parents:
        if os.path.exists(folder / ".git"):
            break
        found += _ignore_file(parent)
        if os.path.exists(parent / ".git"):
            return tuple(reversed(found))
    return ()


_IGNORE = ".gitignore"


def _ignore_file(folder: Path) -> list[_Ignore]:
    """What the .gitignore of a folder says; nothing where there is none. OSError where it cannot be read: what it leaves out must not be written."""
    try:
        text = reading.content(folder / _IGNORE).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    return _patterns(folder, text.splitlines())


def _patterns(folder: Path, lines: list[str]) -> list[_Ignore]:
    """The patterns seen from the folder; a line that is none is passed over, as git does."""
    import pathspec

    return [(_real(folder), pathspec.PathSpec.from_lines("gitignore", [line for line in lines if is_pattern(line)]))]


def is_pattern(line: str) -> bool:
    """Whether this may stand in a .gitignore."""
    import pathspec

    try:
        pathspec.PathSpec.from_lines("gitignore", [line])
    except ValueError:
        return False
    return True


def _ignored(path: Path, ignores: tuple[_Ignore, ...], *, folder: bool = False) -> bool:
    if not ignores:
        return False
    full = _real(path.parent) / path.name
    for base, spec in reversed(ignores):
        if full.is_relative_to(base):
            result = spec.check_file(full.relative_to(base).as_posix() + ("/" if folder else ""))
            if result.include is not None:
                return bool(result.include)
    return False


def matches(name: str, pattern: str, root: str) -> bool:
    """Whether a pattern as in .gitignore, seen from ``root``, means the file; one outside is seen by its name alone."""
    path = Path(name)
    inside = _real(path).is_relative_to(_real(Path(root)))
    return _ignored(path if inside else Path(root, path.name), tuple(_patterns(Path(root), [pattern])))
