"""A call of a class of the program makes an instance of it."""

from __future__ import annotations

import ast
from abc import abstractmethod

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.classes import ClassParts
from dpmigrate.execution.definitions import DefinitionParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Bound,
    Ref,
    Value,
    value,
)

#: call chains that tell the instances of one class apart
INSTANCES = 12


class InstanceParts(DefinitionParts):
    """Instances, and what their classes do when they are made."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._instances: dict[int, set[int]] = {}

    def _apart(self, cls: Object, frame: Frame) -> int:
        """The context that tells instances of one class from each other: of a class with many of
        them, as the layers of a large model, only the place where they are made does.
        """
        seen = self._instances.setdefault(cls.number, set())
        if len(seen) < INSTANCES:
            seen.add(frame.context)
        return frame.context if frame.context in seen else cls.number

    def instantiate(self, cls: Object, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        """A call of a class of the program."""
        parts: ClassParts = cls.extra
        if parts.members:
            return tuple(Ref(n) for n in parts.members)
        made = self.heap.new(
            "instance", cls.name, node, self._apart(cls, frame), extra=cls.number, key=cls.number
        )
        self.event("made", node, frame, object=value(Ref(made.number)))
        init = self._initializer(cls, made)
        if init is not None:
            function = self.heap.objects[init.function]
            if not self.invoke(function, Ref(made.number), arguments, node, frame):
                return NOTHING
        elif fields := [
            f for n in reversed(parts.order) for f in self.heap.objects[n].extra.fields
        ]:
            for i, name in enumerate(dict.fromkeys(fields)):
                given = arguments.get(i, name)
                factory = self.in_class(cls, f"{name}.factory") if given is None else None
                if factory:
                    given = self.call(factory, Arguments(), node, frame)
                elif given is None:
                    given = self.in_class(cls, name)
                if given is not None:
                    self.heap.put((made.number, name), given)
            post = self.method_of(made, "__post_init__")
            if post is not None:
                self.call(value(post), Arguments(), node, frame)
        if parts.kinds and init is None:
            self.library.constructed(self, made, parts.kinds, arguments, node, frame)
        return value(Ref(made.number))

    def _initializer(self, cls: Object, made: Object) -> Bound | None:
        """``__init__``, unless a data class further down makes its own."""
        for number in cls.extra.order:
            if self.heap.read((number, "__init__")):
                return self.method_of(made, "__init__")
            if "dataclass" in self.heap.objects[number].marks:
                return None
        return None

    # ------------------------------------------------------------ defined by later parts

    @abstractmethod
    def invoke(
        self, function: Object, receiver: Atom | None, arguments: Arguments, node: ast.AST,
        frame: Frame,
    ) -> Value:  # fmt: skip
        """Call a function of the program."""
