"""Which files of its own a script imports, found as Python would find them; installed packages are never followed.

Absolute imports are looked for in the folder of the script, in folders that it or an imported file puts on ``sys.path`` by a path that can be read, and, for
scripts that are started from above them (``python tools/train.py``, ``src/``), in the folders up to the top of the repository.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from dpmigrate import reading
from dpmigrate.alive import only_alive
from dpmigrate.facts.computed import imports_by_name
from dpmigrate.facts.names import last
from dpmigrate.facts.scopes import imported_names
from dpmigrate.facts.suppressions import suppressions
from dpmigrate.model import Problem, is_main_guard
from dpmigrate.program import Part, Program, placed
from dpmigrate.source import Source, parse
from dpmigrate.started import as_module

#: files and bytes of one program; what it imports beyond that is taken for code of others, and told
FILE_LIMIT = 200
BYTE_LIMIT = 4_000_000
#: modules that one computed name may mean; more are no choice but a search
CHOICE_LIMIT = 60

_TOP = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
#: never the user's own, also where a copy of it lies beside the script
_NOT_FOLLOWED = frozenset({"dpmigrate_runtime", "torch", "torchvision", "torchaudio", "torchtext", "numpy", "scipy", "pandas", "sklearn", "apex"})


def link(path: Path, entry: Source) -> Program:
    """The program that the script at ``path`` starts."""
    linker = _Linker(path, entry)
    linker.follow()
    return linker.program()


class _Linker:
    """The walk along the imports, depth first, so that files come in the order in which they run."""

    def __init__(self, path: Path, entry: Source) -> None:
        self._top = _Module(_absolute(path), entry, started=True)
        self._modules: dict[Path, _Module] = {self._top.path: self._top}
        self._order: list[_Module] = []
        self._links: dict[tuple[_Module, str], _Module] = {}
        self._unread: dict[str, Problem] = {}
        self._closed: dict[str, Problem] = {}
        self._shown = path.parent
        self._bytes = len(entry.data)
        self._computed: set[Path] = set()  # what is imported by a computed name
        module = as_module(path)
        package = [module.folder] if module is not None else []
        self._roots = dict.fromkeys([*_put_on_path(self._top), self._top.path.parent, *package, *_above(self._top.path.parent)])

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

    def program(self) -> Program:
        """The files that were found, with their lines counted through."""
        parts: list[Part] = []
        index = {m: i for i, m in enumerate(self._order)}
        for module in self._order:
            parts.append(placed(module.source, parts[-1].end if parts else 0, main=module is self._top, word=_word(module.path)))
        links = {(index[m], name): index[target] for (m, name), target in self._links.items()}
        computed = frozenset(map(_word, self._computed))
        return only_alive(Program(tuple(parts), links, tuple(self._unread.items()), computed, tuple(self._closed.items())))

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
        self._roots |= dict.fromkeys(_put_on_path(found))
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

    def _read(self, path: Path) -> _Module | None:
        name = os.path.normpath(os.path.join(self._shown, os.path.relpath(path, _absolute(self._shown))))
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
        source = parse(data, name)
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


def _above(folder: Path) -> Iterator[Path]:
    """The folders from which the script may be started, up to the top of its repository, with the ``src`` of each."""
    yield folder / "src"
    if _is_top(folder):
        return
    for parent in folder.parents:
        if parent == Path(parent.anchor) or parent == _home():
            return
        top = _is_top(parent)
        if not top and not _inside_repository(parent):
            return
        yield parent
        yield parent / "src"
        if top:
            return


def _inside_repository(folder: Path) -> bool:
    return any(_is_top(parent) for parent in (folder, *folder.parents) if parent != _home())


def _is_top(folder: Path) -> bool:
    return any(os.path.exists(folder / sign) for sign in _TOP)


def _home() -> Path:
    """The user's home folder; ``~`` where the system knows none."""
    return Path(os.path.expanduser("~"))


def _put_on_path(module: _Module) -> Iterator[Path]:
    """The folders that a file puts on ``sys.path``."""
    for node in ast.walk(module.source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "insert") and node.args:
            if ast.unparse(node.func.value) == "sys.path":
                found = _path(module, node.args[-1], 8)
                if found is not None:
                    yield Path(os.path.normpath(found))


def _path(module: _Module, node: ast.expr, depth: int) -> Path | None:
    """The folder that an expression names, where it is made of ``__file__``, literals and ``os.path``."""
    here = module.path.parent
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return here / node.value
    if isinstance(node, ast.Name) and depth:
        if node.id == "__file__":
            return module.path
        bound = [s.value for s in module.source.tree.body if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in s.targets)]
        return _path(module, bound[-1], depth - 1) if bound else None
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        inner = _path(module, node.value, depth)
        return inner.parent if inner is not None else None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "parents":  # Path(__file__).parents[1]
        inner, up = _path(module, node.value.value, depth), node.slice
        above = list(Path(os.path.normpath(inner)).parents) if inner is not None else []
        return above[up.value] if isinstance(up, ast.Constant) and isinstance(up.value, int) and 0 <= up.value < len(above) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add) and isinstance(node.right, ast.Constant) and isinstance(node.right.value, str):
        inner = _path(module, node.left, depth)
        return inner / node.right.value.lstrip("/") if inner is not None else None
    if isinstance(node, ast.Call):
        return _called(module, node, depth)
    return None


def _called(module: _Module, node: ast.Call, depth: int) -> Path | None:
    name = last(node.func)
    if not node.args:  # Path(__file__).resolve()
        inner = _path(module, node.func.value, depth) if isinstance(node.func, ast.Attribute) and name in ("resolve", "absolute", "as_posix") else None
        return inner if inner is not None else Path.cwd() if name in ("getcwd", "cwd") else None
    first = _path(module, node.args[0], depth)
    if first is None:
        return None
    if name == "dirname":
        return first.parent
    if name in ("abspath", "realpath", "normpath", "str", "Path", "expanduser", "fspath"):
        return first
    words = [a.value for a in node.args[1:] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if name == "join" and len(words) == len(node.args) - 1:
        return first.joinpath(*words)
    return None
