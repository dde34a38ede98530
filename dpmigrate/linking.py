"""Which files of its own a script imports, found as Python would find them; installed packages are never followed.

Absolute imports are looked for in the folder of the script, in folders that it or an imported file puts on ``sys.path`` by a path that can be read, and, for
scripts that are started from above them (``python tools/train.py``, ``src/``), in the folders up to the top of the repository, or up to the working directory.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from dpmigrate import reading
from dpmigrate.absent import bases, missing, submodules
from dpmigrate.alive import only_alive
from dpmigrate.facts.computed import imports_by_name
from dpmigrate.facts.scopes import imported_names
from dpmigrate.facts.suppressions import suppressions
from dpmigrate.model import Problem, is_main_guard
from dpmigrate.program import Absent, Part, Program, placed
from dpmigrate.searched import put_first, put_on_path
from dpmigrate.source import Source, parse
from dpmigrate.started import above, as_module

#: files and bytes of one program; what it imports beyond that is taken for code of others, and told
FILE_LIMIT = 200
BYTE_LIMIT = 4_000_000
#: modules that one computed name may mean; more are no choice but a search
CHOICE_LIMIT = 60

#: never the user's own, also where a copy of it lies beside the script
_NOT_FOLLOWED = frozenset({"dpmigrate_runtime", "torch", "torchvision", "torchaudio", "torchtext", "numpy", "scipy", "pandas", "sklearn", "apex"})


def link(path: Path, entry: Source) -> Program:
    """The program that the script at ``path`` starts."""
    linker = _Linker(path, entry)
    linker.follow()
    return linker.program()


def imported(path: Path, entry: Source, parsed: dict[tuple[str, bytes], Source | Problem]) -> frozenset[Path]:
    """The files that a script imports, over any number of files; ``parsed`` is kept between calls, for scripts that share files."""
    linker = _Linker(path, entry, parsed)
    linker.follow()
    return frozenset(linker.others())


class _Linker:
    """The walk along the imports, depth first, so that files come in the order in which they run."""

    def __init__(self, path: Path, entry: Source, parsed: dict[tuple[str, bytes], Source | Problem] | None = None) -> None:
        self._top = _Module(_absolute(path), entry, started=True)
        self._parsed = parsed if parsed is not None else {}
        self._modules: dict[Path, _Module] = {self._top.path: self._top}
        self._order: list[_Module] = []
        self._links: dict[tuple[_Module, str], _Module] = {}
        self._unread: dict[str, Problem] = {}
        self._closed: dict[str, Problem] = {}
        self._shown = path.parent
        self._bytes = len(entry.data)
        self._besides: dict[str, bool] = {}
        self._computed: set[Path] = set()  # what is imported by a computed name
        module = as_module(path)
        package = [module.folder] if module is not None else []
        file = self._top.path, self._top.source.tree
        self._roots = dict.fromkeys([*put_first(*file), self._top.path.parent, *put_on_path(*file), *package, *above(self._top.path.parent)])

    def follow(self) -> None:
        """Read every file of the program. Not recursive: chains of imports may be long."""
        stack = [(self._top, self._imports(self._top))]
        while stack:
            module, imports = stack[-1]
            for name in imports:
                found, new = self._module(module, name)
                if found is not None:
                    self._links[module, name] = found
                if found is not None and new:
                    stack.append((found, self._imports(found)))
                    break
            else:
                self._order.append(module)
                stack.pop()

    def others(self) -> Iterator[Path]:
        """The files beside the script."""
        return (Path(m.source.name) for m in self._order if m is not self._top)

    def program(self) -> Program:
        """The files that were found, with their lines counted through."""
        parts: list[Part] = []
        index = {m: i for i, m in enumerate(self._order)}
        for module in self._order:
            parts.append(placed(module.source, parts[-1].end if parts else 0, main=module is self._top, word=_word(module.path)))
        links = {(index[m], name): index[target] for (m, name), target in self._links.items()}
        computed = frozenset(map(_word, self._computed))
        absent = tuple(found for module in self._order for found in self._absent(module, index[module]))
        program = Program(tuple(parts), links, tuple(self._unread.items()), computed, absent, tuple(self._closed.items()))
        return only_alive(program)

    # ------------------------------------------------------------------ one import
    def _imports(self, module: _Module) -> Iterator[str]:
        """The modules that a file may import, as it writes them; of a computed name all that it may mean."""
        for node in _running(module):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from imported_names(node)
        if b"import_module" in module.source.data or b"__import__" in module.source.data:
            for _, words in imports_by_name(module.source.tree):
                names = self._possible(module, words)
                self._computed |= {path for name in names if (path := self._find(module, name)) is not None}
                yield from (part for name in names for part in _with_packages(name))

    def _possible(self, module: _Module, words: tuple[str, ...]) -> list[str]:
        """The names of modules that match the words, by the files that there are; none where they are too many to be one choice."""
        level = next(i for i, w in enumerate(words) if w)
        for root in module.path.parents[level - 1 : level] if level else self._roots:
            names = _matching(root, words[level:])
            if names:
                return ["." * level + name for name in names] if len(names) <= CHOICE_LIMIT else []
        return []

    def _module(self, module: _Module, name: str) -> tuple[_Module | None, bool]:
        """The file that an imported name means in a file, and whether it is met for the first time."""
        path = self._find(module, name)
        if path is None:
            return None, False
        if path in self._modules:
            return self._modules[path], False
        found = self._read(path)
        if found is None:
            return None, False
        self._modules[path] = found
        self._roots |= dict.fromkeys(put_on_path(found.path, found.source.tree))
        return found, True

    def _find(self, module: _Module, name: str) -> Path | None:
        words = name.lstrip(".").split(".") if name.lstrip(".") else []
        level = len(name) - len(name.lstrip("."))
        if level:
            folder = module.path.parent
            for _ in range(level - 1):
                folder = folder.parent
            return _file(folder, words)
        if words[0] in _NOT_FOLLOWED:
            return None
        for root in self._roots:
            if words[0] in sys.stdlib_module_names and root != self._top.path.parent:
                continue
            found = _file(root, words)
            if found is not None:
                return found
            if len(words) > 1 and _file(root, words[:1]) is not None:
                return None  # the package is this one, and it has no such module
        return None

    def _absent(self, module: _Module, index: int) -> Iterator[Absent]:
        """The program's own modules that a file imports and that cannot be followed."""
        needed = (name for node in _running(module) if isinstance(node, ast.Import | ast.ImportFrom) for name in bases(node))
        for name in dict.fromkeys(needed):
            level = len(name) - len(name.lstrip("."))
            words = name[level:].split(".")
            if (module, name) in self._links or not (level or self._unread or self._beside(words[0])):
                continue
            path = self._find(module, name)
            if path is not None:
                shown = self._name(path)
                if shown in self._unread:
                    yield Absent(index, name, shown, f"{shown}: {self._unread[shown].message}")
            elif level or self._beside(words[0]):
                lost = missing(module.path.parents[level - 1 : level] if level else self._roots, words, self._submodules, relative=bool(level))
                if lost is not None:
                    yield Absent(index, name, self._name(lost), self._why(lost))

    def _beside(self, word: str) -> bool:
        """Whether something that an absolute import may look for stands in a folder that is searched, and is no library's."""
        if word not in self._besides:
            library = word in _NOT_FOLLOWED or word in sys.stdlib_module_names
            self._besides[word] = not library and any(os.path.isdir(root / word) or root / word in self._submodules for root in self._roots)
        return self._besides[word]

    @cached_property
    def _submodules(self) -> frozenset[Path]:
        return submodules(self._top.path.parent)

    def _why(self, lost: Path) -> str:
        shown = self._name(lost)
        if any(p in self._submodules for p in (lost, *lost.parents)):
            return f"{shown} is a git submodule that is not checked out"
        return f"{shown} is empty" if os.path.isdir(lost) else f"{shown} does not exist"

    def _name(self, path: Path) -> str:
        """A path as messages show it, seen from where the script was named."""
        return os.path.normpath(os.path.join(self._shown, os.path.relpath(path, _absolute(self._shown))))

    def _read(self, path: Path) -> _Module | None:
        name = self._name(path)
        if any(part in ("site-packages", "dist-packages") for part in path.parts) or name in self._unread or name in self._closed:
            return None
        try:
            data = reading.content(path, BYTE_LIMIT + 1)
        except OSError as e:
            self._closed[name] = Problem(f"cannot be read: {reading.why(e)}")
            return None
        self._bytes += len(data)
        if len(self._modules) >= FILE_LIMIT or self._bytes > BYTE_LIMIT:
            self._unread[name] = Problem(f"not followed: the program has more than {FILE_LIMIT} files or {BYTE_LIMIT // 1_000_000} MB")
            return None
        if (name, data) not in self._parsed:
            self._parsed[name, data] = parse(data, name)
        source = self._parsed[name, data]
        if isinstance(source, Problem):
            self._unread[name] = source
            return None
        if suppressions(source.text).whole_file:
            return None
        return _Module(path, source)


class _Module:
    """A file of the program."""

    def __init__(self, path: Path, source: Source, *, started: bool = False) -> None:
        self.path = path
        self.source = source
        self.started = started


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _running(module: _Module) -> Iterator[ast.AST]:
    """The nodes of a file, in order."""
    stack: list[ast.AST] = [module.source.tree]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.expr) and not (is_main_guard(node) and not module.started):
            stack += reversed(list(ast.iter_child_nodes(node)))


def _file(folder: Path, words: list[str]) -> Path | None:
    """The file of a module below a folder: ``a/b.py``, or the ``__init__.py`` of a package."""
    *packages, last = [*words] or [""]
    place = folder.joinpath(*packages) if packages else folder
    if not words:
        candidate = folder / "__init__.py"
        return candidate if os.path.isfile(candidate) or _hidden(candidate, folder.parent) else None
    for candidate in (place / last / "__init__.py", place / f"{last}.py"):
        if os.path.isfile(candidate) or _hidden(candidate, folder):
            return candidate
    return None


def _hidden(candidate: Path, folder: Path) -> bool:
    """Whether the module may lie in a package below the folder that nobody may look into: that it cannot be read has to be told."""
    try:
        os.stat(candidate)
    except PermissionError:
        return candidate.parent != folder and os.path.isdir(candidate.parent)
    except OSError:
        return False
    return False


def _matching(folder: Path, words: tuple[str, ...]) -> list[str]:
    """The modules below a folder whose dotted names match the words, one regular expression each."""
    first, *rest = words
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return []
    found = [(p.stem, p) for p in inside if (os.path.isdir(p) or (p.suffix == ".py" and p.stem != "__init__")) and re.fullmatch(first, p.stem)]
    if not rest:
        return [stem for stem, p in found if _file(folder, [stem]) is not None]
    return [f"{stem}.{name}" for stem, p in found if os.path.isdir(p) for name in _matching(p, tuple(rest))]


def _with_packages(name: str) -> Iterator[str]:
    """A module's dotted name, those of its packages first."""
    words = name.lstrip(".").split(".")
    dots = name[: len(name) - len(name.lstrip("."))]
    yield from (dots + ".".join(words[: i + 1]) for i in range(len(words)))


def _word(path: Path) -> str:
    """The last word of a module's name."""
    return path.parent.name if path.stem == "__init__" else path.stem
