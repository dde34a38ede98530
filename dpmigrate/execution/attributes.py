"""``owner.name``: instances, classes, modules, and what libraries give."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property

from dpmigrate.execution import divergence, identity
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.classes import ClassParts, LookupParts, has_builtin, of_builtins
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS, KEYS, UNSEEN, Object
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    UNBOUND,
    Atom,
    Bound,
    Const,
    Data,
    Foreign,
    Items,
    Method,
    Ref,
    Setting,
    Super,
    Unknown,
    Value,
    const,
    value,
)

#: the name of a class or a function
_NAMES = ("__name__", "__qualname__")
#: what makes the items of a dictionary its attributes, as ``__getattr__`` of its class
_DICT_GETTERS = ("builtins.dict.__getitem__", "builtins.dict.get")
#: attributes that every class has
_GIVEN = ("__class__", "__dict__", "__name__", "__module__", "__doc__", "__annotations__")
#: Python's own lists and dictionaries
_PLAIN: dict[str, type] = {"list": list, "dict": dict}
#: what dictionaries have, and neither tensors nor arrays
_OF_DICTIONARIES = frozenset({"items", "keys", "get", "pop", "popitem", "setdefault", "update"})
#: objects whose attributes are methods of Python's own containers
CONTAINERS = ("list", "dict", "set", "tuple", "iterator", "generator", "partial")


def _missing(made: Object, name: str) -> str:
    return f"{made.name} has no attribute {name} here"


class AttributeParts(LookupParts):
    """``owner.name``, read."""

    def attribute(self, owner: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        atoms = list(self._that_have(owner, name, node, frame))
        found = [self._of(a, name, node, frame) for a in atoms]
        if len(atoms) == 1 and self._has_not(atoms[0], name, found[0]):
            self.event("no attribute", node, frame, owner=owner, name=const(name))
        return join(*found) if found else NOTHING

    def _has_not(self, atom: Atom, name: str, found: Value) -> bool:
        """Whether what was read of an atom is an attribute that it does not have."""
        if isinstance(atom, Const | Items):
            plain = not hasattr(tuple if isinstance(atom, Items) else atom.value, name)
            return plain and found == value(Method(atom, name))
        made = self.object(atom)
        missed = made is not None and made.kind == "instance" and _missing(made, name)
        return bool(missed) and any(isinstance(a, Unknown) and a.word == missed for a in found)

    def _that_have(self, owner: Value, name: str, node: ast.AST, frame: Frame) -> Iterator[Atom]:
        """The atoms that may have an attribute: where a value may be something else, such as a tensor
        or a loader, a plain container without it would stop the program, and where it may be a
        dictionary a tensor would. So would one of several objects of the program that has not been
        given what another one has: the settings of another model.
        """
        lacking = {a for a in owner if self._lacks(a, name, node, frame)} if len(owner) > 1 else set()
        others = any(a not in lacking and a != UNBOUND for a in owner)
        mapping = name in _OF_DICTIONARIES and any(o.kind == "dict" for o in self.objects(owner))
        given = len(owner) > 1 and any(self._holds_name(a, name) for a in owner)
        for atom in owner:
            if mapping and isinstance(atom, Data) and atom.kind == "tensor":
                continue
            lacks = (others and atom in lacking) or (given and self._never_held(atom, name))
            if atom != UNBOUND and not lacks:
                yield atom

    def _holds_name(self, atom: Atom, name: str) -> bool:
        made = self.object(atom)
        held = self.heap.read((made.number, name)) if made is not None and made.kind == "instance" else None
        return bool(held) and UNBOUND not in (held or ())

    def _never_held(self, atom: Atom, name: str) -> bool:
        """Whether an object of the program has no such attribute so far, nor its class."""
        made = self.object(atom)
        if made is None or made.kind != "instance" or not self._only_named(made):
            return False
        cls = self.class_of(made)
        there = self.heap.read((made.number, name)) or self.heap.read((made.number, ELEMENTS)) or (cls is not None and self.in_class(cls, name))
        return not there and name not in _GIVEN and self.method_of(made, "__getattr__") is None

    def _lacks(self, atom: Atom, name: str, node: ast.AST, frame: Frame) -> bool:
        """Whether an atom is a tuple, a list or a dictionary without an attribute."""
        if isinstance(atom, Items):  # some tuples of libraries have names for their items
            named = self.library.attribute(self, atom, name, node, frame) is not None
            return not named and not hasattr(tuple, name)
        made = self.object(atom)
        plain = _PLAIN.get(made.kind) if made is not None else None
        return plain is not None and not hasattr(plain, name)

    def _of(self, atom: Atom, name: str, node: ast.AST, frame: Frame) -> Value:
        match atom:
            case Ref():
                return self._of_object(self.heap.objects[atom.object], name, node, frame)
            case Foreign():
                stored = self.heap.read((self.heap.number(atom), name))
                if not stored and name in _NAMES:
                    return const(atom.name.rpartition(".")[2])
                return stored or value(Foreign(f"{atom.name}.{name}"))
            case Super():
                return self._of_super(atom, name, node, frame)
            case Method():
                return value(Method(atom.receiver, f"{atom.name}.{name}"))
            case Unknown():
                return value(atom)
            case Bound() if name in ("__self__", "__func__", "__name__", "__doc__"):
                return value(atom.receiver) if name == "__self__" else SETTING
            case Data() | Const() | Items() | Setting() | Bound():
                given = self.library.attribute(self, atom, name, node, frame)
                if given is not None and name in identity.VIEWED:
                    return identity.the_same(given, identity.places_of((atom,)))
                return given if given is not None else value(Method(atom, name))
            case _:
                return value(atom)

    def _of_object(self, made: Object, name: str, node: ast.AST, frame: Frame) -> Value:
        held = self.heap.read((made.number, name)) if made.kind not in CONTAINERS else None
        if held and made.kind in UNSEEN:
            return join(self.bound(held), self.heap.read((made.number, ELEMENTS)) or NOTHING)
        if self.descriptors and (said := self._descriptor_of(made, name, "__set__")) is not None:
            return self._descriptor(said, made, node, frame)
        if held:
            if made.kind == "class":
                return self.bind_method(self.bound(held), made, node, frame)
            if UNBOUND not in held:
                return held
            # bound on some path: objects that a loop makes have their fields whenever they exist
            cls = self.class_of(made)
            shared = self.in_class(cls, name) if cls is not None else None
            if shared or self.method_of(made, "__getattr__") is not None:
                return self._held_or_else(held, shared, made, name, node, frame)
            self.may_raise(divergence.presence(held), "AttributeError")
            if self.bound(held):
                return self.bound(held)
        found = self._else_of(made, name, node, frame)
        if found is not None:
            return found
        if frame.arms and self._lacks_name(made, name, node):
            self.event("no attribute", node, frame, owner=value(Ref(made.number)), name=const(name))
            self.fails("AttributeError")
            return NOTHING  # as of a name that nothing binds: this way ends here, another one goes on
        return self.miss(_missing(made, name), node, frame)

    def _lacks_name(self, made: Object, name: str, node: ast.AST) -> bool:
        """Whether a module of the program, or an object of one of its classes, has no such name,
        whatever any file of it does.
        """
        if name in self.bindable or any(self.heap.read((made.number, n)) for n in ("__getattr__", ELEMENTS)):
            return False
        return made.kind == "pymodule" or (
            made.kind == "instance" and isinstance(node, ast.Attribute) and self._only_named(made)
        )

    def _only_named(self, made: Object) -> bool:
        """Whether an object has no attributes but those that the program names: its classes are
        plain ones, and nothing sets attributes by computed names.
        """
        cls = self.class_of(made)
        if cls is None or self.sets_by_name or self.method_of(made, "__getattribute__") is not None:
            return False
        parts: ClassParts = cls.extra
        if parts.kinds or parts.foreign or parts.unknown:
            return False
        classes = [self.heap.objects[n] for n in parts.order]
        nodes = [c.extra.node for c in classes]
        plain = not any(n.decorator_list or n.keywords for n in nodes)
        return plain and not any(self.heap.read((c.number, ELEMENTS)) for c in classes)

    @cached_property
    @abstractmethod
    def sets_by_name(self) -> bool:
        """Whether something in the files of the program sets attributes by names that it computes."""

    def _held_or_else(
        self, held: Value, shared: Value | None, made: Object, name: str, node: ast.AST, frame: Frame
    ) -> Value:
        """An attribute that an object may hold, or else what its class says."""
        why, own = divergence.presence(held), self.bound(held)
        if made.many:
            why = None
        found: list[Value] = []

        def holds() -> bool:
            found.append(own)
            return True

        def lacks() -> bool:
            if shared:
                found.append(self.bind_method(shared, made, node, frame))
            else:
                found.append(self._else_of(made, name, node, frame) or NOTHING)
            return bool(found[-1])

        self.branch([holds, lacks] if own else [lacks], why)
        out = join(*found)
        return divergence.differing(out, why) if why is not None and out else out

    def _else_of(self, made: Object, name: str, node: ast.AST, frame: Frame) -> Value | None:
        """An attribute that the object itself does not hold."""
        if made.kind == "pymodule":
            if name == "__dict__":
                return self.namespace(made, node, frame)
            return self.submodule(made, name, frame)
        if name in _NAMES and made.kind in ("function", "class"):
            return const(made.name)
        cls = self.class_of(made)
        if name == "__class__":
            self.event("class read", node, frame, of=value(Ref(made.number)))
        if cls is None:
            if name == "__class__":
                plain = made.kind in (*UNSEEN, "partial")
                return SETTING if plain else value(Foreign(made.name))
            given = self.library.attribute(self, Ref(made.number), name, node, frame)
            return given if given is not None else value(Method(Ref(made.number), name))
        found = self.in_class(cls, name)
        if found:
            return self.bind_method(found, made, node, frame)
        parts: ClassParts = cls.extra
        if name == "__dict__" and made.kind == "instance":
            return self.namespace(made, node, frame)
        if name in _GIVEN:
            return value(Ref(cls.number)) if name == "__class__" else SETTING
        items = self._attributes_are_items(made, cls)
        if items and not has_builtin(parts, name):
            return self.item(items, const(name), node, frame)
        getter = self.method_of(made, "__getattr__")
        if parts.kinds or parts.foreign or parts.unknown or made.kind == "class":
            given = self.library.attribute(self, Ref(made.number), name, node, frame)
            if given is None and getter and of_builtins(parts) and not has_builtin(parts, name):
                return self._got(getter, name, node, frame)
            if given is None:
                given = value(Method(Ref(made.number), name))
            return join(given, self._got(getter, name, node, frame)) if getter else given
        if getter is not None:
            return self._got(getter, name, node, frame)
        elements = self.heap.read((made.number, ELEMENTS))  # set under a computed name
        return elements

    def _attributes_are_items(self, made: Object, cls: Object) -> Value:
        """What an object looks for attributes in, as for items: ``__getattr__ = dict.__getitem__``,
        ``self.__dict__ = given``.
        """
        parts: ClassParts = cls.extra
        if not of_builtins(parts):
            return NOTHING
        getters = self.in_class(cls, "__getattr__") or NOTHING
        if any(isinstance(a, Foreign) and a.name in _DICT_GETTERS for a in getters):
            return value(Ref(made.number))
        return self.bound(self.heap.read((made.number, "__dict__")) or NOTHING)

    def _got(self, getter: Bound, name: str, node: ast.AST, frame: Frame) -> Value:
        """What ``__getattr__`` gives."""
        if any(f is self.heap.objects[getter.function].node for f in self.under_way()):
            return NOTHING  # it asks for what is not there yet, which its own attributes are
        arguments = Arguments([value(Const("str", name))])
        return self.call(value(getter), arguments, node, frame)

    @abstractmethod
    def under_way(self) -> list[ast.AST]:
        """The functions that run; parts on calls define it."""

    def _of_super(self, atom: Super, name: str, node: ast.AST, frame: Frame) -> Value:
        made = self.object(atom.receiver)
        cls = self.class_of(made) if made is not None else None
        here = self.heap.objects[atom.cls]
        found = self.in_class(cls or here, name, atom.cls)
        if found and made is not None:
            return self.bind_method(found, made, node, frame)
        return value(Method(atom, name))

    def namespace(self, made: Object, node: ast.AST, frame: Frame) -> Value:
        """``module.__dict__``: a dictionary of what the module binds; of what an object holds, and
        what is stored in that becomes an attribute.
        """
        own = made.number if made.kind == "instance" else None
        new = self.heap.new("dict", "__dict__", node, frame.context, extra=own, key=made.number)
        for name, held in self.heap.names(made.number):
            if isinstance(name, str) and name != ELEMENTS:
                self.heap.write((new.number, Const("str", name)), held)
        computed = self.heap.read((made.number, ELEMENTS)) if own is not None else None
        if computed:
            self.heap.widen((new.number, ELEMENTS), computed)
            self.heap.widen((new.number, KEYS), SETTING)
        return value(Ref(new.number))

    def submodule(self, made: Object, name: str, frame: Frame) -> Value | None:
        """A name of a module of the program that it does not bind: what a star import brings."""
        stars = self.heap.read((made.number, "*")) or NOTHING
        libraries = [a for a in sorted(stars, key=repr) if isinstance(a, Foreign)]
        return value(Foreign(f"{libraries[-1].name}.{name}")) if libraries else None
