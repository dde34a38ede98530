"""The variables of one file, and where each gets a value: what ``flow`` needs to know beforehand.

Scoping is that of the language reference, 4.2 (naming and binding) and 6.2.4 (comprehensions).
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import replace

from dpmigrate.result.collected import Collected
from dpmigrate.result.scopes import Definition, Frame, Key, Variable

#: names that every module has beside those of ``builtins``
_OF_MODULES = frozenset(
    {
        "__name__",
        "__file__",
        "__doc__",
        "__package__",
        "__spec__",
        "__loader__",
        "__builtins__",
        "__path__",
        "__cached__",
        "__annotations__",
        "__dict__",
    }
)
_OF_CLASSES = frozenset(
    {
        "__class__",
        "__module__",
        "__qualname__",
        "__firstlineno__",
        "__type_params__",
        "__classdict__",
    }
)


class Variables:
    """The scopes and frames of one file, with the variables that each frame has.

    ``undefined``: the names that the file reads and binds nowhere, each with a place.
    """

    def __init__(self, tree: ast.Module) -> None:
        collected = Collected(tree)
        self.scopes = collected.scopes
        self.frames = collected.frames
        self.own = collected.own
        self.star = collected.star
        self.late_annotations = collected.late_annotations
        self.undefined: dict[str, ast.AST] = {}
        self.module = self.frames[0]
        self._settle()

    def _settle(self) -> None:
        """What is known once all bindings are: whose variable each name means."""
        for frame in self.frames:
            self._start(frame)
        foreign = {
            (d.key, d.unbinds)
            for frame in self.frames
            for d in frame.definitions
            if d is not None and self._foreign(frame, d)
        }
        for frame in self.frames:
            for key, variable in frame.variables.items():
                variable.given = (key, False) in foreign or (self.star and key[0].kind == "module")
                variable.taken = (key, True) in foreign
        for node, (scope, frame) in self.own.items():
            owner = scope.owner(node.id)
            if (
                owner is None
                and not hasattr(builtins, node.id)
                and node.id not in _OF_MODULES | _OF_CLASSES
            ):
                self.undefined.setdefault(node.id, node)
            elif owner is not None and owner.kind == "module":
                frame.reads.add(node.id)

    def _start(self, frame: Frame) -> None:
        """The definition that each variable begins with: no value, but for parameters."""
        for bit, d in enumerate(frame.definitions):
            if d is not None and d.key[1] in d.key[0].outer:
                frame.definitions[bit] = replace(
                    d, key=(d.key[0].owner(d.key[1]) or d.key[0], d.key[1])
                )
        scopes = {d.key for d in frame.definitions if d is not None}
        given = {d.key for d in frame.definitions if d is not None and isinstance(d.node, ast.arg)}
        for key in scopes:
            frame.variables[key] = Variable(judged=self._judged(frame, key))
            if key not in given:
                frame.definitions.append(Definition(key, frame.node, frame.node, True))
        for bit, d in enumerate(frame.definitions):
            if d is not None:
                frame.variables[d.key].every |= 1 << bit
                frame.variables[d.key].without |= (1 << bit) * d.unbinds

    def _judged(self, frame: Frame, key: Key) -> bool:
        """Not where the name is looked up further outside: in a module among the builtins, in a
        class body in all that is round it.
        """
        scope, name = key
        if scope.kind == "module":
            return (
                frame.scope.kind == "module"
                and not hasattr(builtins, name)
                and name not in _OF_MODULES
            )
        if scope.kind == "class":
            around = scope.parent.owner(name) if scope.parent is not None else None
            return (
                around is None
                and not hasattr(builtins, name)
                and name not in _OF_MODULES | _OF_CLASSES
            )
        return scope.kind == "comprehension" or scope is frame.scope

    @staticmethod
    def _foreign(frame: Frame, d: Definition) -> bool:
        """Whether the frame binds or deletes a variable of another one."""
        return (
            d.node is not frame.node
            and d.key[0].kind in ("module", "function")
            and d.key[0] is not frame.scope
        )
