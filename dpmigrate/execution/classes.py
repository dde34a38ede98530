"""Classes and functions of the program as objects: what they are, and what an instance finds in
its class: methods, properties, descriptors.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import NameParts
from dpmigrate.execution.objects import Object
from dpmigrate.execution.scopes import Function, Names
from dpmigrate.execution.values import NONE, NOTHING, Atom, Bound, Items, Ref, Value, value

#: base classes whose objects are tuples of what the class annotates
TUPLES = ("typing.NamedTuple", "typing_extensions.NamedTuple")
#: the mark of a property that is asked once, and then held by the object
STORED = "stored property"


@dataclass(slots=True, eq=False)
class ClassParts:
    """What a class object is: its method resolution order, and what its library bases are."""

    node: ast.ClassDef
    order: list[int]
    foreign: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    unknown: bool = False
    #: the members of an enumeration, in their order
    members: list[int] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class FunctionParts:
    """What a function object is: its text and the scopes that it sees."""

    node: Function
    outer: tuple[tuple[int, Names], ...]
    module: int
    names: Names
    cls: int | None
    receiver: Atom | None = None


def of_builtins(parts: ClassParts) -> bool:
    """Whether all library classes that a class derives from are Python's own: ``class Config(dict)``."""
    return not parts.unknown and all(f.startswith("builtins.") for f in parts.foreign)


def has_builtin(parts: ClassParts, name: str) -> bool:
    """Whether those classes have an attribute of this name."""
    classes = (getattr(builtins, f.removeprefix("builtins."), None) for f in parts.foreign)
    return any(c is None or hasattr(c, name) for c in classes)


class LookupParts(NameParts):
    """What a class and its bases hold, seen through an instance."""

    #: whether a class of the program has descriptors of its own
    descriptors = False

    def class_of(self, made: Object) -> Object | None:
        """The class of an instance, or the class itself."""
        if made.kind == "class":
            return made
        if made.kind == "instance":
            found = self.heap.objects.get(made.extra)
            return found if found is not None and found.kind == "class" else None
        return None

    def named_items(self, made: Object) -> Items | None:
        """What an object of a named tuple holds, one by one; None for any other object."""
        cls = self.class_of(made) if made.kind == "instance" else None
        if cls is None or not any(name in TUPLES for name in cls.extra.foreign):
            return None
        fields = [f for n in reversed(cls.extra.order) for f in self.heap.objects[n].extra.fields]
        held = [self.heap.read((made.number, name)) for name in dict.fromkeys(fields)]
        found = tuple(h for h in held if h)
        return Items(found) if len(found) == len(held) else None

    def kinds(self, made: Object) -> frozenset[str]:
        """What an object is to a library: its own kind, and those of its class's bases."""
        cls = self.class_of(made)
        if cls is None or made.kind == "class":
            return frozenset((made.kind,))
        parts: ClassParts = cls.extra
        return parts.kinds | {made.kind}

    def is_a(self, atom: Atom, kind: str) -> bool:
        """Whether an atom is an object of a kind."""
        made = self.object(atom)
        return made is not None and (made.kind == kind or kind in self.kinds(made))

    def in_class(self, cls: Object, name: str, after: int | None = None) -> Value | None:
        """What the class or its bases hold under a name; only those behind ``after``, for
        ``super()``.
        """
        parts: ClassParts = cls.extra
        order = parts.order
        if after is not None:
            order = order[order.index(after) + 1 :] if after in order else []
        for number in order:
            found = self.heap.read((number, name))
            if found:
                return found
        return None

    def method_of(self, made: Object, name: str) -> Bound | None:
        """A method of the program that an instance has."""
        cls = self.class_of(made)
        found = self.in_class(cls, name) if cls is not None and made.kind != "class" else None
        for function in self.objects(found or NOTHING):
            if function.kind == "function":
                return Bound(function.number, Ref(made.number))
        return None

    def bind_method(self, found: Value, made: Object, node: ast.AST, frame: Frame) -> Value:
        """What a class holds, seen through an instance: functions become methods, properties are
        called.
        """
        results: list[Value] = []
        for atom in found:
            function = self.object(atom)
            if function is None or function.kind != "function":
                results.append(self._descriptor(atom, made, node, frame))
            elif "property" in function.marks and made.kind != "class":
                bound = value(Bound(function.number, Ref(made.number)))
                results.append(self.call(bound, Arguments(), node, frame))
            elif STORED in function.marks and made.kind != "class":
                bound = value(Bound(function.number, Ref(made.number)))
                results.append(self.call(bound, Arguments(), node, frame))
                if results[-1]:
                    self.heap.put((made.number, function.name), results[-1])
            elif "staticmethod" in function.marks:
                results.append(value(atom))
            elif "classmethod" in function.marks:
                cls = self.class_of(made) or made
                results.append(value(Bound(function.number, Ref(cls.number))))
            elif made.kind == "class":
                results.append(value(atom))
            else:
                results.append(value(Bound(function.number, Ref(made.number))))
        return join(*results)

    def _descriptor(self, atom: Atom, made: Object, node: ast.AST, frame: Frame) -> Value:
        """An object in a class that is no function: an attribute all instances share, or one that
        says itself what each of them has.
        """
        held = self.object(atom) if self.descriptors else None
        getter = self.method_of(held, "__get__") if held is not None else None
        if getter is None:
            return value(atom)
        cls = self.class_of(made) or made
        owner = NONE if made.kind == "class" else value(Ref(made.number))
        return self.call(value(getter), Arguments([owner, value(Ref(cls.number))]), node, frame)

    def _descriptor_of(self, made: Object, name: str, method: str) -> Atom | None:
        """What in the class of an instance says what reading or storing an attribute does."""
        cls = self.class_of(made) if made.kind == "instance" else None
        found = self.in_class(cls, name) if cls is not None else None
        for atom in found or NOTHING:
            held = self.object(atom)
            if held is not None and self.method_of(held, method) is not None:
                return atom
        return None

    def instances_of(self, v: Value) -> Iterator[Object]:
        """The instances of the program's classes that a value may be."""
        return (o for o in self.objects(v) if o.kind == "instance")
