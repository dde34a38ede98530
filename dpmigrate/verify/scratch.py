"""A copy of a program's folder to run in: code copied, data linked, nothing of the user's ever written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

#: folders that hold neither code nor data of the program
_LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "env", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache", "wandb", "runs"}
)
#: files up to this size are copied; larger ones, and folders that hold such, are linked
SMALL = 1_000_000
CODE = frozenset({".py", ".json", ".yaml", ".yml", ".toml", ".txt", ".cfg", ".ini", ".sh"})


def copy_program(script: Path, target: Path) -> Path:
    """Copy the folder of ``script`` to ``target`` and give the script's place there.

    Folders without Python code are linked as they are: they hold data. A program that writes into one of them is told apart by ``written_into``.
    """
    _copy(script.resolve().parent, target)
    copied = target / script.name
    if copied.is_symlink() or not copied.exists():  # larger than what is copied
        copied.unlink(missing_ok=True)
        shutil.copyfile(script, copied)
    return copied


def _copy(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(os.scandir(source), key=lambda e: e.name):
        place = target / entry.name
        if entry.name in _LEFT_OUT or (entry.is_dir() and (Path(entry.path) / "pyvenv.cfg").exists()):
            continue
        if entry.is_dir(follow_symlinks=False) and _has_code(Path(entry.path)):
            _copy(Path(entry.path), place)
        elif entry.is_file() and (entry.name.endswith(tuple(CODE)) or entry.stat().st_size <= SMALL):
            shutil.copyfile(entry.path, place)
        else:
            place.symlink_to(Path(entry.path).resolve())


def _has_code(folder: Path) -> bool:
    return any(name.endswith(".py") for _, _, names in os.walk(folder) for name in names)


def outside(written: list[str], copy: Path) -> list[str]:
    """Of the files that a run wrote, those that a link leads out of the copy."""
    return [name for name in written if not (copy / name).resolve().is_relative_to(copy.resolve())]
