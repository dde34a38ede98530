"""Attributes: instances, classes, modules, and what libraries give."""

from __future__ import annotations

import ast
import builtins
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dpmigrate.execution import divergence, identity
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import NameParts
from dpmigrate.execution.objects import ELEMENTS, KEYS, UNSEEN, Location, Object
from dpmigrate.execution.scopes import Function, Names
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    RESULTS,
    SETTING,
    UNBOUND,
    Atom,
    Bound,
    Const,
    Data,
    Differs,
    Foreign,
    Items,
    Method,
    Ref,
    Setting,
    Super,
    Unbound,
    Unknown,
    Value,
    const,
    join,
    value,
)

#: the name of a class or a function
_NAMES = ("__name__", "__qualname__")
#: what makes the items of a dictionary its attributes, as ``__getattr__`` of its class
_DICT_GETTERS = ("builtins.dict.__getitem__", "builtins.dict.get")
#: the mark of a property that is asked once, and then held by the object
STORED = "stored property"
#: attributes that every class has
_GIVEN = ("__class__", "__dict__", "__name__", "__module__", "__doc__", "__annotations__")
#: Python's own lists and dictionaries
_PLAIN: dict[str, type] = {"list": list, "dict": dict}
#: objects whose attributes are methods of Python's own containers
CONTAINERS = ("list", "dict", "set", "tuple", "iterator", "generator", "partial")


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


def _missing(made: Object, name: str) -> str:
    return f"{made.name} has no attribute {name} here"


def _of_builtins(parts: ClassParts) -> bool:
    """Whether all library classes that a class derives from are Python's own: ``class Config(dict)``."""
    return not parts.unknown and all(f.startswith("builtins.") for f in parts.foreign)


def _has_builtin(parts: ClassParts, name: str) -> bool:
    classes = (getattr(builtins, f.removeprefix("builtins."), None) for f in parts.foreign)
    return any(c is None or hasattr(c, name) for c in classes)


@dataclass(slots=True, eq=False)
class FunctionParts:
    """What a function object is: its text and the scopes that it sees."""

    node: Function
    outer: tuple[tuple[int, Names], ...]
    module: int
    names: Names
    cls: int | None
    receiver: Atom | None = None


class AttributeParts(NameParts):
    """``owner.name``, read and written."""

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

    # ------------------------------------------------------------ reading

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
        """The atoms that may have an attribute: where a value may be a tensor, a plain container
        without it would stop the program.
        """
        tensor = any(isinstance(a, Data) and a.kind in ("tensor", RESULTS) for a in owner)
        for atom in owner:
            if atom != UNBOUND and not (tensor and self._lacks(atom, name, node, frame)):
                yield atom

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
        if frame.arms and self._lacks_name(made, name):
            self.event("no attribute", node, frame, owner=value(Ref(made.number)), name=const(name))
            self.fails("AttributeError")
            return NOTHING  # as of a name that nothing binds: this way ends here, another one goes on
        return self.miss(_missing(made, name), node, frame)

    def _lacks_name(self, made: Object, name: str) -> bool:
        """Whether a module of the program has no such name, whatever any file of it does."""
        computed = any(self.heap.read((made.number, n)) for n in ("__getattr__", ELEMENTS))
        return made.kind == "pymodule" and name not in self.bindable and not computed

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
        if items and not _has_builtin(parts, name):
            return self.item(items, const(name), node, frame)
        getter = self.method_of(made, "__getattr__")
        if parts.kinds or parts.foreign or parts.unknown or made.kind == "class":
            given = self.library.attribute(self, Ref(made.number), name, node, frame)
            if given is None and getter and _of_builtins(parts) and not _has_builtin(parts, name):
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
        if not _of_builtins(parts):
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

    # ------------------------------------------------------------ writing

    def set_attribute(
        self, owner: Value, name: str, new: Value, node: ast.AST, frame: Frame
    ) -> None:
        some = self.which(owner, node)
        if some is None and not any(self._sets_itself(o, name) for o in self.objects(owner)):
            # all of the objects that a loop goes through have it in the end: no alternatives
            targets = [a for a in owner if a != UNBOUND]
            for atom in targets:
                self._set_on(atom, name, new, node, frame, weak=len(targets) > 1)
            return

        def stored(atom: Atom) -> Value:
            self._set_on(atom, name, new, node, frame)
            made = self.object(atom)
            if some is not None and made is not None:
                self._differ([(made.number, name)], some)
            return NONE

        self.each_of(owner, stored, some)

    def set_plainly(
        self, owner: Value, key: Value, new: Value, node: ast.AST, frame: Frame
    ) -> None:
        """``object.__setattr__(owner, key, new)``."""
        names = [a.value for a in key if isinstance(a, Const) and isinstance(a.value, str)]
        for made in self.objects(owner):
            if len(names) == len(key) == 1:
                self._store(made, names[0], new, node, frame, plain=True)
            else:  # one of them, or under a name that is not known
                for name in names or [ELEMENTS]:
                    there = self.heap.read((made.number, name)) is not None
                    more = new if there else join(new, value(UNBOUND))
                    self.heap.widen((made.number, name), more)

    def _sets_itself(self, made: Object, name: str) -> bool:
        """Whether the program says itself what storing an attribute of an object does."""
        if made.kind != "instance":
            return False
        cls = self.class_of(made)
        own = self.method_of(made, "__setattr__") is not None
        own = own or (self.descriptors and self._descriptor_of(made, name, "__set__") is not None)
        return own or (cls is not None and self._setter(cls, name) is not None)

    def _set_on(
        self, atom: Atom, name: str, new: Value, node: ast.AST, frame: Frame, *, weak: bool = False
    ) -> None:
        match atom:
            case Ref() if weak:
                there = self.heap.read((atom.object, name)) is not None
                more = new if there else join(new, value(UNBOUND))
                self.heap.widen((atom.object, name), more)
            case Ref():
                self._store(self.heap.objects[atom.object], name, new, node, frame)
            case Foreign():
                self.heap.write((self.heap.number(atom), name), new)
            case Super():
                made = self.object(atom.receiver)
                if made is not None:
                    self._store(made, name, new, node, frame, plain=True)
            case Method() if isinstance(atom.receiver, Ref):
                place = (atom.receiver.object, f"{atom.name}.{name}")
                self.heap.widen(place, new)
        self.event("attribute", node, frame, owner=value(atom), name=const(name), new=new)

    def each_of(self, owner: Value, run: Callable[[Atom], Value], some: Parting | None) -> Value:
        """Do something with each of the things that a value may be, which are alternatives;
        ``some``: why it differs between ranks which one it is.
        """
        targets = [a for a in owner if not isinstance(a, Unbound | Differs)]
        if len(targets) == 1:
            return run(targets[0])
        found: list[Value] = []

        def arm(atom: Atom) -> Callable[[], bool]:
            def alternative() -> bool:
                found.append(run(atom))
                return bool(found[-1])

            return alternative

        if targets:
            self.branch([arm(a) for a in targets], some)
        out = join(*found)
        return divergence.differing(out, some) if some is not None and out else out

    def _differ(self, places: list[Location], parted: Parting) -> None:
        """What is stored in some places is another value on each rank."""
        for at in places:
            held = self.heap.read(at)
            if held:
                self.heap.write(at, divergence.differing(held, parted))

    def which(self, owner: Value, node: ast.AST) -> Parting | None:
        """Why ranks write into different objects."""
        return self.parting(tuple(a for a in owner if isinstance(a, Differs)), node)

    def _store(
        self, made: Object, name: str, new: Value, node: ast.AST, frame: Frame, *,
        plain: bool = False,
    ) -> None:  # fmt: skip
        """Store an attribute; ``plain``: as ``object.__setattr__`` does."""
        cls = self.class_of(made)
        if cls is not None and made.kind == "instance" and not plain:
            own = self.method_of(made, "__setattr__")
            if own is not None:
                self.call(value(own), Arguments([const(name), new]), node, frame)
                return
        said = self._descriptor_of(made, name, "__set__") if self.descriptors else None
        held = self.object(said) if said is not None else None
        method = self.method_of(held, "__set__") if held is not None else None
        if method is not None:
            self.call(value(method), Arguments([value(Ref(made.number)), new]), node, frame)
            return
        if cls is not None and made.kind == "instance":
            setter = self._setter(cls, name)
            if setter is not None:
                self.call(
                    value(Bound(setter.number, Ref(made.number))), Arguments([new]), node, frame
                )
                return
        self.heap.put((made.number, name), new)

    def _setter(self, cls: Object, name: str) -> Object | None:
        """The setter of a property of this name."""
        found = self.in_class(cls, name) or NOTHING
        if not any("property" in f.marks for f in self.objects(found)):
            return None
        setters = self.in_class(cls, f"{name}.setter") or NOTHING
        return next(iter(self.objects(setters)), None)

    def instances_of(self, v: Value) -> Iterator[Object]:
        """The instances of the program's classes that a value may be."""
        return (o for o in self.objects(v) if o.kind == "instance")
