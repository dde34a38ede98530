"""Names and what assignments bind."""

from __future__ import annotations

import ast
import builtins
from abc import abstractmethod
from collections.abc import Container, Iterable, Iterator
from functools import cached_property

from dpmigrate.execution import divergence
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame, Machine
from dpmigrate.execution.objects import ELEMENTS, LENGTH, Location, Object
from dpmigrate.execution.scopes import Names, names_of
from dpmigrate.execution.trace import Call
from dpmigrate.execution.values import (
    NOTHING,
    UNBOUND,
    Const,
    Data,
    Foreign,
    Items,
    Ref,
    Value,
    value,
)

_BUILTINS = frozenset(dir(builtins))


class NameParts(Machine):
    """Scopes as Python has them: local, enclosing functions, module, builtins."""

    def names_of(self, node: ast.AST) -> Names:
        """The names of a scope, computed once."""
        known: dict[int, tuple[ast.AST, Names]] = self.__dict__.setdefault("_names_of", {})
        found = known.get(id(node))
        if found is None:
            found = known[id(node)] = (node, names_of(node))
        return found[1]

    def place(self, name: str, frame: Frame) -> Location:
        """Where a name of a scope is stored."""
        names = frame.names
        if frame.number == frame.module or name in names.globals:
            return (frame.module, name)
        if name in names.bound:
            return (frame.number, name)
        for owner, outer in frame.outer:
            if name in outer.bound:
                return (owner, name)
            if name in outer.globals:
                break
        return (frame.module, name)

    def name(self, node: ast.Name, frame: Frame) -> Value:
        """What a name means here."""
        at = self.place(node.id, frame)
        found = self.heap.read(at)
        if found is None and frame.in_class and at[0] == frame.number:
            at = (frame.module, node.id)  # a class body falls through to the module
            found = self.heap.read(at)
        if found is not None:
            if UNBOUND not in found:
                return found
            if self.bound(found):
                self.may_raise(divergence.presence(found), "UnboundLocalError")
                self.event("maybe unbound", node, frame)
                self.heap.narrow(at, self.bound(found))  # else this path ends here
                return self.bound(found)
        if at[0] == frame.module:
            outside = self._outside(node.id, frame)
            if outside is not None:
                return outside
        self.event("unbound", node, frame)
        self.fails("NameError")
        if self.heap.watching or (frame.arms and node.id not in self.bindable):
            return NOTHING  # it raises: a handler goes on, or this way ends here, another one goes on
        return self.miss(f"the name {node.id} is not bound", node, frame)

    def _outside(self, name: str, frame: Frame) -> Value | None:
        """A builtin, or what a star import of a library may bring."""
        stars = self.heap.read((frame.module, "*")) or NOTHING
        maybe: list[str] = []
        for atom in sorted(stars, key=repr):
            if isinstance(atom, Foreign):
                brings = self.library.exported(atom.name, name)
                if brings:
                    return value(Foreign(f"{atom.name}.{name}"))
                if brings is None:
                    maybe.append(atom.name)
        if name in _BUILTINS:
            return value(Foreign(f"builtins.{name}"))
        return value(Foreign(f"{maybe[-1]}.{name}")) if maybe else None

    @cached_property
    @abstractmethod
    def bindable(self) -> Container[str]:
        """The names that something in the files of the program may bind."""

    def bind(self, name: str, new: Value, frame: Frame) -> None:
        """Bind a name in a scope."""
        at = self.place(name, frame)
        if frame.weak and at[0] == frame.number and new:
            self.heap.widen(at, new)
        else:
            self.heap.write(at, new or None)

    def assign(self, target: ast.expr, new: Value, node: ast.AST, frame: Frame) -> None:
        """Give a target a value."""
        match target:
            case ast.Name():
                self.bind(target.id, new, frame)
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, new, node, frame)
            case ast.Starred():
                self.assign(target.value, new, node, frame)
            case ast.Attribute():
                owner = self.evaluate(target.value, frame)
                self.set_attribute(owner, target.attr, new, target, frame)
                if target.attr == "data":
                    self.replace_elements(target.value, owner, new, node, frame)
            case ast.Subscript():
                owner = self.evaluate(target.value, frame)
                self.set_item(owner, self.evaluate(target.slice, frame), new, target, frame)

    def _unpack(self, targets: list[ast.expr], new: Value, node: ast.AST, frame: Frame) -> None:
        stars = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
        new = new if stars else _fitting(new, len(targets))
        known = self.known_elements(new)
        if known is not None and not stars and len(known) == len(targets):
            given = known
        elif known is not None and stars and len(known) >= len(targets) - 1:
            first, last = stars[0], len(targets) - stars[0] - 1
            middle = known[first : len(known) - last]
            given = [*known[:first], self.listed(middle, targets[first], frame)]
            given += known[len(known) - last :] if last else []
        elif sizes := self.library.unpacked(
            self, new, len(targets), stars[0] if stars else None, node, frame
        ):
            given = sizes
        elif one_by_one := self._each_unpacked(new, len(targets), stars, node, frame):
            given = one_by_one
        else:
            self.may_raise(self.parting(self.counts([new]), node), "ValueError")
            self.library.begun(self, new, node, frame)
            behind = stars[0] if stars else len(targets)
            given = []
            for i, t in enumerate(targets):
                index = i if i <= behind else i - len(targets)
                given.append(self._part(new, index, t, node, frame))
        for target, part in zip(targets, given, strict=True):
            self.assign(target, part, node, frame)

    def _each_unpacked(
        self, new: Value, count: int, stars: list[int], node: ast.AST, frame: Frame
    ) -> list[Value]:
        """The parts of a value that may be one of several tuples, or the results of a network; none
        where one of them is gone through item by item.
        """
        found: list[list[Value]] = []
        for atom in new if len(new) > 1 and not stars else ():
            if isinstance(atom, Items) and len(atom.items) == count:
                found.append(list(atom.items))
            elif parts := self.library.unpacked(self, value(atom), count, None, node, frame):
                found.append(parts)
            else:
                return []
        return [join(*each) for each in zip(*found, strict=True)]

    def _part(self, new: Value, index: int, target: ast.expr, node: ast.AST, frame: Frame) -> Value:
        """One target's part of what is not known item by item."""
        if isinstance(target, ast.Starred):
            each = [self.elements(new, node, frame)]
            return self.listed(each, target, frame, exact=False, by=[new])
        gone = tuple(a for a in new if self.library.draws(self, (a,)))  # no items: gone through
        rest = tuple(a for a in new if a not in gone)
        found = self.elements(gone, node, frame) if gone else NOTHING
        return join(found, self.item(rest, value(Const("int", index)), node, frame))

    def listed(
        self,
        values: list[Value],
        node: ast.AST,
        frame: Frame,
        *,
        exact: bool = True,
        kind: str = "list",
        by: Iterable[Value] = (),
    ) -> Value:
        """A new list of values; not ``exact``: any number of each, as many as ``by`` has items."""
        made = self.heap.new(kind, kind, node, frame.context)
        count = value(Const("int", len(values)))
        before = self.heap.read((made.number, LENGTH)) if made.many else None
        if exact and len(values) <= LISTED and before in (None, count):
            for i, v in enumerate(values):
                self.heap.put((made.number, i), v)
            if self.heap.read((made.number, ELEMENTS)) is None:
                self.heap.write((made.number, LENGTH), count)
        else:
            if before is not None:
                self.collapse(made, changed=False)
            if values:
                self.heap.put((made.number, ELEMENTS), join(*values))
            count = self.counts(by) or (self.apart_in(join(*values)) if kind == "set" else NOTHING)
            if count:
                self.heap.put((made.number, LENGTH), count)
        return value(Ref(made.number))

    def turn_context(self, node: ast.AST, turn: int, frame: Frame) -> int:
        """The context of one turn of a loop that is gone through item by item: what it makes is
        its own.
        """
        number = self.heap.number(("turn", frame.context, id(node), turn))
        self.trace.calls.setdefault(number, Call(frame.context, node, f"turn {turn}"))
        return number

    @abstractmethod
    def counts(self, sources: Iterable[Value]) -> Value:
        """How many items there are of what is made of some sources, where that differs."""

    @abstractmethod
    def apart_in(self, v: Value) -> Value:
        """How many items a set has of values that differ between ranks."""

    @abstractmethod
    def collapse(self, made: Object, *, changed: bool = True) -> None:
        """From now on the items of a list are not kept one by one; ``changed``: nor is there one
        for each sample.
        """

    def scopes(self, frame: Frame) -> Iterator[tuple[int, Names]]:
        """The function scopes that a function defined here sees, the innermost first."""
        if frame.number != frame.module and not frame.in_class:
            yield (frame.number, frame.names)
        yield from frame.outer


#: lists of up to this length are kept item by item
LISTED = 12
#: the field of what has an item for certain, however many there are
SOME = "#some"


def _fitting(v: Value, count: int) -> Value:
    """What of a value goes into ``count`` targets: where it may be a tuple of so many items, others
    and tensors, which would have to hold so many samples, would stop the program.
    """
    if not any(isinstance(a, Items) and len(a.items) == count for a in v):
        return v
    return tuple(
        a
        for a in v
        if not (isinstance(a, Items) and len(a.items) != count)
        and not (isinstance(a, Data) and a.kind == "tensor")
    )
