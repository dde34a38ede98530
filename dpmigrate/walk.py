"""Which files a command is about: the ones named, and what a directory holds of Python that is the user's own."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
            yield path, Problem(e.strerror or str(e))
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
    stack: list[tuple[Path, tuple[_Ignore, ...]]] = [(root, _above(root))]
    while stack:
        folder, ignores = stack.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError as e:
            yield folder, Problem(e.strerror or str(e))
            continue
        ignores = (*ignores, *_ignore_file(folder))
        folders = []
        for entry in entries:
            path = Path(entry.path)
            if entry.is_symlink() and entry.is_dir():
                continue  # met in a walk, a link may lead out of the tree or round in it
            if entry.is_dir():
                if not _own_folder(path) or _ignored(path, ignores, folder=True) or _ignored(path, out, folder=True):
                    continue
                if _new(entry.stat(), seen):
                    folders.append((path, ignores))
            elif entry.name.endswith(".py") and entry.is_file() and not _leads_out(path, root) and not (_ignored(path, ignores) or _ignored(path, out)):
                if _new(path.stat(), seen):
                    yield path
        stack += reversed(folders)


def _leads_out(path: Path, root: Path) -> bool:
    return path.is_symlink() and not path.resolve().is_relative_to(root.resolve())


def _own_folder(path: Path) -> bool:
    """Hidden folders, virtual environments and installed packages are not the user's program."""
    name = path.name
    return not name.startswith(".") and (name not in _LEFT_OUT or _is_package(path)) and not (path / "pyvenv.cfg").exists()


def _is_package(path: Path) -> bool:
    """``env`` is also what people call a package of environments."""
    return path.name in ("env", "venv") and (path / "__init__.py").exists()


def _above(root: Path) -> tuple[_Ignore, ...]:
    """The .gitignore files between the repository's top and the folder."""
    found: list[_Ignore] = []
    folder = root.resolve()
    for parent in folder.parents:
        if (folder / ".git").exists():
            break
        found += _ignore_file(parent)
        if (parent / ".git").exists():
            return tuple(reversed(found))
    return ()


def _ignore_file(folder: Path) -> list[_Ignore]:
    file = folder / ".gitignore"
    if not file.is_file():
        return []
    try:
        return _patterns(folder, file.read_text(encoding="utf-8", errors="replace").splitlines())
    except (OSError, ValueError):
        return []


def _patterns(folder: Path, lines: list[str]) -> list[_Ignore]:
    import pathspec

    return [(folder.resolve(), pathspec.PathSpec.from_lines("gitignore", lines))]


def _ignored(path: Path, ignores: tuple[_Ignore, ...], *, folder: bool = False) -> bool:
    if not ignores:
        return False
    full = path.parent.resolve() / path.name
    for base, spec in reversed(ignores):
        if full.is_relative_to(base):
            result = spec.check_file(full.relative_to(base).as_posix() + ("/" if folder else ""))
            if result.include is not None:
                return bool(result.include)
    return False


def matches(name: str, pattern: str, root: str) -> bool:
    """Whether a pattern as in .gitignore, seen from ``root``, means the file; one outside is seen by its name alone."""
    path = Path(name)
    inside = path.resolve().is_relative_to(Path(root).resolve())
    return _ignored(path if inside else Path(root, path.name), tuple(_patterns(Path(root), [pattern])))
