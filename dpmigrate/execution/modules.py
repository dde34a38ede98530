"""Imports: the program's own modules are executed where they are first imported."""

from __future__ import annotations

import ast
from collections.abc import Container
from functools import cached_property
from pathlib import Path

from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Object
from dpmigrate.execution.scopes import Names, bindable, sets_by_name
from dpmigrate.execution.statements import StatementParts
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Atom,
    Foreign,
    Ref,
    Value,
    const,
    only,
    unknown,
    value,
)
from dpmigrate.program import Program

#: the names that every module has
_GIVEN = (
    *("__file__", "__doc__", "__package__", "__spec__", "__loader__", "__cached__"),
    "__builtins__",
)


class ModuleParts(StatementParts):
    """Modules of the program, and names of libraries."""

    program: Program

    def run_module(self, index: int, name: str) -> Object:
        """Execute a file of the program."""
        tree = self.program.parts[index].tree
        made = self.heap.new("pymodule", name, tree, 0)
        made.extra = index
        self._modules[index] = made
        self.heap.write((made.number, "__name__"), const(name))
        for given in _GIVEN:
            self.heap.write((made.number, given), SETTING)
        frame = Frame(made.number, Names(), (), made.number, 0, slot=len(self.control))
        self.control.append(None)
        self.heap.scopes.append(made.number)
        try:
            self.block(tree.body, frame)
        finally:
            self.control.pop()
            self.heap.scopes.pop()
        return made

    @cached_property
    def bindable(self) -> Container[str]:
        return bindable(part.tree for part in self.program.parts)

    @cached_property
    def sets_by_name(self) -> bool:
        return any(sets_by_name(n) for part in self.program.parts for n in ast.walk(part.tree))

    @property
    def _modules(self) -> dict[int, Object]:
        known: dict[int, Object] = self.__dict__.setdefault("_executed_modules", {})
        return known

    def load(self, importer: int, dotted: str, frame: Frame) -> Value | None:
        index = self.program.links.get((importer, dotted))
        if index is None:
            return None
        made = self._modules.get(index)
        if made is None:
            stack, self._stack = self._stack, []
            with self.heap.outside():
                made = self.run_module(index, dotted)
            self._stack = stack
        return value(Ref(made.number))

    def path_of_module(self, dotted: str, frame: Frame) -> tuple[str, ...]:
        index = self.program.links.get((self._importer(frame), dotted))
        if index is None:
            return ()
        path = Path(self.program.parts[index].source.name).absolute().with_suffix("")
        return path.parent.parts if path.name == "__init__" else path.parts

    def _item(self, atom: Atom, key: Value, node: ast.AST, frame: Frame) -> Value:
        """Of ``sys.modules`` the program's own modules."""
        if atom == Foreign("sys.modules"):
            name = self.constant(key)
            for made in self._modules.values():
                if name is not None and name.value == made.name:
                    return value(Ref(made.number))
        return super()._item(atom, key, node, frame)

    def _importer(self, frame: Frame) -> int:
        """The file in which a scope lies."""
        index: int = self.heap.objects[frame.module].extra
        return index

    def import_modules(self, node: ast.Import, frame: Frame) -> None:
        importer = self._importer(frame)
        for alias in node.names:
            words = alias.name.split(".")
            loaded = [
                self.load(importer, ".".join(words[: i + 1]), frame) for i in range(len(words))
            ]
            if alias.asname is not None:
                self.imported.add(alias.name)
                self._bind_in_packages(importer, alias.name, frame)
                self.bind(alias.asname, loaded[-1] or value(Foreign(alias.name)), frame)
                continue
            if not any(loaded):
                self.imported.add(words[0])
                self.bind(words[0], value(Foreign(words[0])), frame)
                continue
            top = self._namespace(words[0], loaded[0], frame)
            self.bind(words[0], top, frame)
            for word, inner in zip(words[1:], loaded[1:], strict=True):
                made = self.objects(top)[0]
                inner = self._namespace(f"{made.name}.{word}", inner, frame)
                self.heap.write((made.number, word), inner)
                top = inner

    def _namespace(self, name: str, loaded: Value | None, frame: Frame) -> Value:
        """A module, or the folder that stands for it."""
        if loaded is not None:
            return loaded
        made = self.heap.new("pymodule", name, None, 0, key=(name, self._importer(frame)))
        made.extra = self._importer(frame)
        return value(Ref(made.number))

    def import_names(self, node: ast.ImportFrom, frame: Frame) -> None:
        if node.module == "__future__":
            for alias in node.names:
                self.bind(alias.asname or alias.name, SETTING, frame)
            return
        importer = self._importer(frame)
        base = "." * node.level + (node.module or "")
        loaded = self.load(importer, base, frame)
        self._bind_in_packages(importer, base, frame)
        for alias in node.names:
            if alias.name == "*":
                self._import_star(loaded, base, node, frame)
                continue
            found = self._imported(importer, base, alias.name, loaded, node, frame)
            self.bind(alias.asname or alias.name, found, frame)

    def _bind_in_packages(self, importer: int, base: str, frame: Frame) -> None:
        """``from a.b import c`` also binds b in the package a
        (https://docs.python.org/3/reference/import.html#submodules).
        """
        dots = base[: len(base) - len(base.lstrip("."))]
        words = base.lstrip(".").split(".")
        for i, word in enumerate(words):
            if not (dots or i):
                continue
            package = self.load(importer, dots + ".".join(words[:i]), frame)
            if dots == "." and not i and self._is_package(importer):
                package = value(Ref(frame.module))
            inner = self.load(importer, dots + ".".join(words[: i + 1]), frame)
            for made in self.objects(package or NOTHING):
                if inner is not None and not self.heap.read((made.number, word)):
                    self.heap.write((made.number, word), inner)

    def _is_package(self, index: int) -> bool:
        """Whether a file is the ``__init__`` of a package."""
        return Path(self.program.parts[index].source.name).stem == "__init__"

    def _imported(
        self, importer: int, base: str, name: str, loaded: Value | None, node: ast.AST, frame: Frame
    ) -> Value:
        whole = f"{base}{'' if base.endswith('.') else '.'}{name}"
        for made in self.objects(loaded or NOTHING):
            held = self.heap.read((made.number, name))
            if held and self.bound(held):
                return self.bound(held)
        inner = self.load(importer, whole, frame)
        if inner is not None:
            return inner
        for made in self.objects(loaded or NOTHING):
            held = self.submodule(made, name, frame)
            # what of a file seems unused is not among what is executed
            return held or value(Foreign(whole.lstrip(".")))
        if base.startswith("."):
            return unknown(f"{base} is not among the files of the program", node)
        return value(Foreign(whole))

    def _import_star(self, loaded: Value | None, base: str, node: ast.AST, frame: Frame) -> None:
        for made in self.objects(loaded or NOTHING):
            public = self._public(made)
            for name, held in list(self.heap.names(made.number)):
                if not isinstance(name, str) or name == "*":
                    continue
                if name in public if public is not None else not name.startswith("_"):
                    self.bind(name, held, frame)
            stars = self.heap.read((made.number, "*"))
            if stars:
                self.heap.widen((frame.module, "*"), stars)
        if loaded is None:
            self.heap.widen((frame.module, "*"), value(Foreign(base)))

    def _public(self, made: Object) -> set[str] | None:
        """What ``__all__`` names, where it can be read."""
        held = self.heap.read((made.number, "__all__"))
        known = self.known_elements(held) if held else None
        if known is None:
            return None
        try:
            return {str(only(k)) for k in known}
        except LookupError:
            return None
