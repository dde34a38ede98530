"""A copy of a program's folder to run in: code and small files copied, data linked. The probe turns a link into the copy's own before a write."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmigrate.started import as_module

#: folders that hold neither code nor data of the program
_LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".venv"})
#: bytes up to which files are copied; larger ones are linked
SMALL = 1_000_000
#: folders without Python code are copied up to so many files, and linked beyond
FEW = 100
#: folders with more entries than this are linked, whatever they hold: a home folder, a collection of projects
MANY = 5_000


@dataclass(frozen=True)
class Place:
    """A script in its place: the folder that belongs to it, and the folder that it is started in.

    ``links`` are what a copy shows of the user's own files and folders; ``code`` are the other files of the program, which a copy holds itself.
    """

    script: Path
    root: Path
    folder: Path
    links: tuple[Path, ...] = ()
    code: tuple[Path, ...] = ()
    module: str = ""  # what python -m calls the script, where it is started so

    def copied_to(self, target: Path) -> Place:
        """Copy the root to ``target`` and give the same place there. OSError if that cannot be done."""
        whole = {place for path in (self.script, self.folder, *self.code) for place in (path, *path.parents)}
        links = tuple(_copy(self.root, target, whole))
        copied = target / self.script.relative_to(self.root)
        return Place(copied, target, target / self.folder.relative_to(self.root), links, module=self.module)


def place(script: Path, started_in: Path, others: Sequence[Path] = ()) -> Place:
    """What belongs to a script: the repository round it, otherwise its own folder, and as much above it as holds the other files of its program.

    It starts where the user stands, if that is inside, as ``python script`` would; otherwise in its own folder. A module of a package starts above that.
    """
    module = as_module(script)
    script, started_in = script.resolve(), started_in.resolve()
    homes = {Path(os.path.realpath(os.path.expanduser("~"))), Path("/")}
    repository = next((p for p in script.parents if p not in homes and any(os.path.exists(p / mark) for mark in (".git", ".hg"))), None)
    root = repository or script.parent
    for folder in () if repository else (*(p.parent for p in others), *([module.folder] if module is not None else [])):
        above = Path(os.path.commonpath([root, folder]))
        root = root if above in homes else above
    if module is not None and module.folder.is_relative_to(root):
        return Place(script, root, module.folder, code=tuple(others), module=module.name)
    return Place(script, root, started_in if started_in.is_relative_to(root) else script.parent, code=tuple(others))


def changed(links: Sequence[Path], since: float) -> Path | None:
    """One of the user's own files that was written, made or removed after this time (of the system's clock), behind the back of the guard.

    The guard is Python's: a command that the program starts, or a library that opens files by itself, is not seen by it.
    """
    for link in links:
        for path in (link, *(Path(folder, name) for folder, folders, names in os.walk(link) for name in (*folders, *names))):
            try:
                if path.lstat().st_ctime > since:
                    return path
            except OSError:
                return path
    return None


def _copy(source: Path, target: Path, whole: set[Path]) -> Iterator[Path]:
    """What is linked. ``whole``: what must be a copy, never a link, and is not left out; that is the program and the folders round it."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(os.scandir(source), key=lambda e: e.name):
        path, place = Path(entry.path), target / entry.name
        if path in (target, *target.parents) or (path not in whole and (entry.name in _LEFT_OUT or (path / "pyvenv.cfg").exists())):
            continue
        if entry.is_dir(follow_symlinks=False) and (path in whole or _is_own(path)):
            yield from _copy(path, place, whole)
        elif entry.is_file() and (path in whole or entry.stat().st_size <= SMALL):
            shutil.copyfile(path, place)
        elif entry.is_dir() or entry.is_file():
            place.symlink_to(path.resolve())
            yield path.resolve()


def _is_own(folder: Path) -> bool:
    """Whether a folder holds code, or so little that copying it costs nothing."""
    seen, code = 0, False
    for _, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if f not in _LEFT_OUT]
        seen += len(folders) + len(names)
        code = code or any(name.endswith(".py") for name in names)
        if seen > MANY:
            return False
    return code or seen <= FEW
