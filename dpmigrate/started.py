"""How a script is started today: by its path, or as a module of its package (``python -m package.train``). Reads the script alone."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpmigrate import reading

_TOP = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "Exception"})


@dataclass(frozen=True, slots=True)
class Module:
    """What ``python -m`` calls a script, and the folder from which it does."""

    name: str
    folder: Path


def result_as_module(script: Path, written: Path | None) -> Module | None:
    """The same for the result of a migration, which may lie in another file; outside of the package it is no module of it."""
    module = as_module(script)
    if module is None or written is None:
        return module
    if os.path.dirname(os.path.realpath(written)) != os.path.dirname(os.path.realpath(script)):
        return None
    *package, own = module.name.split(".")
    return Module(".".join([*package, own if script.stem == "__main__" else written.stem]), module.folder)


def as_module(script: Path) -> Module | None:
    """The module that a script has to be started as; None where it is started by its path.

    It has to where it imports relatively to itself, or names the package that it lies in, or a module that only a folder above it holds: by its path, Python
    knows of no package, and looks beside the script alone. A repository's top folder is no package, even with an ``__init__.py``, unless a relative import goes
    up to it: what it is called depends on the clone.
    """
    try:
        tree = ast.parse(reading.content(script))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    script = Path(os.path.realpath(script))
    level = max(_levels(tree, caught=False), default=0)
    folder, words = script.parent, [script.stem]
    while (level > len(words) - 1 or (os.path.isfile(folder / "__init__.py") and not _is_top(folder))) and folder != folder.parent:
        words.insert(0, folder.name)
        folder = folder.parent
    if words[-1] == "__main__":
        words = words[:-1]
        needed = bool(words)
    else:
        needed = bool(level) or _names_its_package(tree, script.parent, words)
        root = None if needed else _root(tree, script)
        if root is not None:  # packages without __init__.py
            needed, folder = True, root
            words = [*script.relative_to(folder).with_suffix("").parts]
    return Module(".".join(words), folder) if needed and all(w.isidentifier() for w in words) else None


def _levels(node: ast.AST, *, caught: bool) -> Iterator[int]:
    """How many folders the relative imports go up; those count not whose failure the script catches: it runs both ways."""
    for child in ast.iter_child_nodes(node):
        inside = caught or (isinstance(node, ast.Try) and child in node.body and any(_catches(h) for h in node.handlers))
        if isinstance(child, ast.ImportFrom) and child.level and not inside:
            yield child.level
        yield from _levels(child, caught=inside)


def _catches(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or any(isinstance(n, ast.Name) and n.id in _MISSING for n in ast.walk(handler.type))


def _names_its_package(tree: ast.Module, folder: Path, words: list[str]) -> bool:
    """Whether the script imports from its own package by that package's name, and nothing else shows that it is found in another way."""
    return len(words) > 1 and any(name.partition(".")[0] == words[0] for name in _found_elsewhere(tree, folder))


def _root(tree: ast.Module, script: Path) -> Path | None:
    """The folder above the script's own from which its imports are found.

    That of ``src`` and ``tools`` for ``from src.data import rows`` or ``from tools.data import rows`` in ``tools/train.py``.
    """
    names = [name.split(".") for name in _found_elsewhere(tree, script.parent)]

    def holds(folder: Path, words: list[str]) -> bool:
        package = folder / words[0]
        inner = len(words) > 1 and (os.path.isfile(package / f"{words[1]}.py") or os.path.isdir(package / words[1]))
        return inner or os.path.isfile(folder / f"{words[0]}.py")

    searched = set(above(script.parent))
    for folder in script.parent.parents:
        own = [words for words in names if folder / words[0] in script.parents or (folder in searched and words[0] not in sys.stdlib_module_names)]
        if any(holds(folder, words) for words in own):
            return folder
    return None


def above(folder: Path) -> Iterator[Path]:
    """The folders from which the script may be started, with the ``src`` of each: up to the top
    of its repository, or else to the working directory, where that lies above the script.
    """
    yield folder / "src"
    if _is_top(folder):
        return
    for parent in folder.parents:
        if parent in (Path(parent.anchor), _home()):
            return
        here = Path.cwd()
        if not (_inside_repository(parent) or here == parent or here in parent.parents):
            return
        yield parent
        yield parent / "src"
        if _is_top(parent):
            return


def _inside_repository(folder: Path) -> bool:
    return any(_is_top(parent) for parent in (folder, *folder.parents) if parent != _home())


def _is_top(folder: Path) -> bool:
    return any(os.path.exists(folder / sign) for sign in _TOP)


def _home() -> Path:
    """The user's home folder; ``~`` where the system knows none."""
    return Path(os.path.expanduser("~"))


def _found_elsewhere(tree: ast.Module, folder: Path) -> set[str]:
    """What the script imports; nothing where some of it lies beside the script, or the script itself says where things are found."""
    if "sys.path" in ast.unparse(tree):
        return set()
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {f"{n.module}.{a.name}" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module and not n.level for a in n.names}
    roots = {name.partition(".")[0] for name in names}
    beside = any(os.path.isfile(folder / f"{root}.py") or os.path.isdir(folder / root) for root in roots)
    return set() if beside else names
