"""``owner.name = new``: instances, setters of properties, descriptors, ``__setattr__``."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution import divergence, own_attributes
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.attributes import AttributeParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import ELEMENTS, Location, Object
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    UNBOUND,
    Atom,
    Bound,
    Const,
    Differs,
    Foreign,
    Method,
    Ref,
    Super,
    Unbound,
    Value,
    const,
    value,
)


class AttributeStoreParts(AttributeParts):
    """Attributes, written."""

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
        own_attributes.stored(self, made, name, new, node, frame)

    def _setter(self, cls: Object, name: str) -> Object | None:
        """The setter of a property of this name."""
        found = self.in_class(cls, name) or NOTHING
        if not any("property" in f.marks for f in self.objects(found)):
            return None
        setters = self.in_class(cls, f"{name}.setter") or NOTHING
        return next(iter(self.objects(setters)), None)
