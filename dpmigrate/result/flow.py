"""What each name may be where it is read, and whether it may have no value."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.result.evaluation import Read, Watch, Ways
from dpmigrate.result.runs import Run
from dpmigrate.result.scopes import Definition, Frame, Scope
from dpmigrate.result.variables import Variables

__all__ = ["Flow", "Read"]


class Flow:
    """The data flow of one file.

    ``learning``: after a name was read it has a value, so that only the first of several reads is
    unbound; without, each is told to which a variable may come that no other code has given a
    value: ``x = f(x)`` gives it none, since it fails first.
    """

    def __init__(self, tree: ast.Module, *, learning: bool = True) -> None:
        self.tree = tree
        self.variables = Variables(tree)
        self.learning = learning
        self.unbound: list[Read] = []
        self._reaching: dict[ast.AST, tuple[Frame, int]] = {}
        self._found: set[tuple[ast.AST, str]] = set()
        self._functions = self._known_functions()
        self._read_by: dict[str, frozenset[str]] = {}
        self._bound_by: dict[str, set[str]] = {}
        self._returning: set[str] = set()
        frames = self.variables.frames
        self._done: set[Frame] = set()
        for frame in (*frames[1:], frames[0]):
            self._learn(frame, Run(self, frame).all())
            self._done.add(frame)

    # ------------------------------------------------------------------ answers
    def reaching(self, name: ast.Name) -> list[Definition]:
        """The definitions of the variable that may hold where the name is read, deletions left out;
        empty for what is of another frame.
        """
        if name not in self._reaching:
            return []
        frame, state = self._reaching[name]
        return [
            d
            for i, d in enumerate(frame.definitions)
            if d is not None and state >> i & 1 and not d.unbinds
        ]

    def goes_on(self, read: Read, old: Callable[[ast.AST, bool], bool]) -> bool:
        """Whether a program in which the variable has no value may go on from the read, if that is
        left out, without coming to another for which ``old`` holds.

        Loops run at least once: a program whose loops do nothing is nobody's.
        """
        watch = Watch(read, old, len(read.frame.definitions))
        ends = Run(self, read.frame, watch).all()
        return watch.escaped or bool((ends.returned >> watch.bit) & 1)

    # ------------------------------------------------------------------ functions that are called
    def _known_functions(self) -> dict[str, list[Frame]]:
        """The functions of the module that run when they are called: generators and decorated ones
        do as they like.
        """
        frames = {f.node: f for f in self.variables.frames}
        module = self.variables.module
        made: dict[str, list[ast.AST]] = {}
        for d in module.definitions:
            if d is not None and d.key[0] is module.scope and d.node is not module.node:
                made.setdefault(d.key[1], []).append(d.node)
        plain = {
            name: nodes
            for name, nodes in made.items()
            if all(isinstance(n, ast.FunctionDef) and not n.decorator_list for n in nodes)
        }
        return {
            name: [frames[n] for n in nodes]
            for name, nodes in plain.items()
            if not any(frames[n].generates for n in nodes)
        }

    def _learn(self, frame: Frame, ends: Ways) -> None:
        """Note what a function has bound of the module's when it returns, if it ever does."""
        name = getattr(frame.node, "name", "")
        if frame not in self._functions.get(name, ()) or not ends.returned:
            return
        bound = {
            key[1]
            for key, v in frame.variables.items()
            if key[0].kind == "module" and not ends.returned & v.without
        }
        self._bound_by[name] = bound & self._bound_by.get(name, bound)
        self._returning.add(name)

    def called(self, call: ast.Call, scope: Scope) -> str | None:
        """The function of the module that a call by a name means."""
        if not isinstance(call.func, ast.Name) or call.func.id not in self._functions:
            return None
        return call.func.id if scope.owner(call.func.id) is self.variables.module.scope else None

    def read_by(self, name: str) -> frozenset[str]:
        """The module's variables that a function may read, with all that it calls by name."""
        if name not in self._read_by:
            todo, seen, found = [name], {name}, set()
            while todo:
                frames = list(self._functions[todo.pop()])
                while frames:
                    frame = frames.pop()
                    frames += frame.inner
                    found |= frame.reads
                    new = (frame.called & self._functions.keys()) - seen
                    todo += new
                    seen |= new
            self._read_by[name] = frozenset(found)
        return self._read_by[name]

    def bound_by(self, name: str) -> set[str]:
        """The module's variables that have a value when the function returns."""
        return self._bound_by.get(name, set())

    def returns(self, name: str) -> bool:
        """Whether a call of the function may come back."""
        return name in self._returning or any(f not in self._done for f in self._functions[name])

    # ------------------------------------------------------------------ what the runs find
    def found(self, read: Read) -> None:
        """Note a read without a value, once."""
        if (read.node, read.name) not in self._found:
            self._found.add((read.node, read.name))
            self.unbound.append(read)

    def note(self, node: ast.AST, frame: Frame, state: int) -> None:
        """Note the definitions that reach a read."""
        before = self._reaching[node][1] if node in self._reaching else 0
        self._reaching[node] = frame, before | state
