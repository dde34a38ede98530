"""What Python and libraries call by themselves: hooks, handlers, keys, special methods."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.classes import ClassParts, FunctionParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.modules import ModuleParts
from dpmigrate.execution.scopes import Names
from dpmigrate.execution.values import Atom, Bound, Ref, unknown, value

#: rounds in which what is called hands over further functions
_ROUNDS = 4


class CallbackParts(ModuleParts):
    """Functions that no line of the program calls, and no row of a table."""

    def call_back(self) -> None:
        """Call each function that code of a library was given, and each special method of an
        object, where nothing has called it, with arguments that nobody knows.

        When they are called is not known either: it is done once, after the program. What they do
        is in the trace then; what they write is not there for what the program does before.
        """
        main = self._modules[len(self.program.parts) - 1]
        frame = Frame(main.number, Names(), (), main.number, 0, slot=len(self.control))
        self.control.append(None)
        self.heap.scopes.append(main.number)
        try:
            for _ in range(_ROUNDS):
                waiting = list(self._uncalled())
                for atom, node in waiting:
                    given = Arguments(star=unknown("given by code that is not known", node))
                    self.heap.mark()
                    result = self.call(value(atom), given, node, frame)
                    if any(o.kind == "generator" for o in self.objects(result)):
                        self.elements(result, node, frame)
                    self.heap.apply([self.heap.rollback(), {}])
                if not waiting:
                    break
        finally:
            self.control.pop()
            self.heap.scopes.pop()

    def _uncalled(self) -> Iterator[tuple[Atom, ast.AST]]:
        """Each function once, with the node at which it came into other hands."""
        seen: set[ast.AST] = set()
        for atom, node in (*self.handed.items(), *self._special()):
            number = atom.function if isinstance(atom, Bound) else getattr(atom, "object", None)
            parts: FunctionParts = self.heap.objects[number].extra  # type: ignore[index]
            if parts.node not in self.trace.reached and parts.node not in seen:
                seen.add(parts.node)
                yield atom, node

    def _special(self) -> Iterator[tuple[Atom, ast.AST]]:
        """The special methods of the program's objects."""
        for made in list(self.heap.objects.values()):
            cls = self.class_of(made) if made.kind == "instance" else None
            if cls is None or made.node is None:
                continue
            parts: ClassParts = cls.extra
            for number in parts.order:
                for name, held in list(self.heap.names(number)):
                    if isinstance(name, str) and name.startswith("__") and name.endswith("__"):
                        for function in self.objects(held):
                            if function.kind == "function":
                                yield Bound(function.number, Ref(made.number)), made.node
