"""The store: fields of objects, an undo journal of what is written, and notes of what is read.

A branch of the program is executed as: mark, run, roll back to what was written (a delta); the
deltas of all branches are then joined. So a branch costs what it writes, and not the size of the
store.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from dpmigrate.execution import identity
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import EXISTS, FIELDS, SCOPES, Delta, Location, Object
from dpmigrate.execution.placements import EQUAL
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    UNBOUND,
    Atom,
    Const,
    Data,
    Differs,
    Items,
    Method,
    Ref,
    Unbound,
    Value,
    value,
)

#: what may hold objects or tensors
_HOLDING = (Ref, Items, Data)
_WITH_TENSORS = (Data, Items)
#: in the notes of what is read: the place was written first
WRITTEN: Value = (Unbound("written"),)


class Asked(NamedTuple):
    """In place of a name: whether what is stored there may be an atom."""

    name: Hashable
    atom: Atom


class Own(NamedTuple):
    """In a scope: what a call has stored in an attribute of the object whose method it is."""

    object: int
    name: Hashable


#: what such a question found
YES: Value = (Unbound("yes"),)


class Narrowed(tuple[Atom, ...]):
    """A value of which a test has said more."""

    __slots__ = ()


def held_in(v: Value) -> Iterator[int]:
    """The objects that a value may be, hold in a tuple or be a method of."""
    for a in v:
        while type(a) is Method:
            a = a.receiver
        if type(a) is Ref:
            yield a.object
        elif type(a) is Items:
            for inner in a.items:
                yield from held_in(inner)


class Store:
    """Fields of objects; all writes are journalled."""

    def __init__(self) -> None:
        self.objects: dict[int, Object] = {}
        self.fields: dict[int, dict[Hashable, None]] = {}
        self._store: dict[Location, Value] = {}
        #: how many places were gone through (``budget``)
        self.work = 0
        self._journals: list[Delta] = [{}]
        self._first: list[list[Location]] = [[]]
        self._numbers: dict[Hashable, int] = {}
        self._reads: list[dict[Location, Value | None]] = []
        self._watches: list[dict[Location, Value]] = []
        self._made: list[set[int]] = []
        #: the last value of each place whose tensors are known to be held there
        self._placed: dict[Location, Value] = {}
        self._held: identity.Held = {}
        #: the containers and objects that have ever held an object; None where it was something else
        self._holders: dict[int, set[int | None]] = {}
        #: iterators over objects, while local variables alone hold them
        self._over: dict[int, set[int]] = {}
        #: which of several things an expression is evaluated for: what it makes of each is apart
        self.variant: Hashable = None
        #: whether only some ranks are here: what they write is another value then
        self.by_some: Callable[[], bool] = lambda: False
        #: the scopes of the calls under way
        self.scopes: list[int] = []
        #: contexts that several places of calls share: what they have made may be alive
        self.merged: set[int] = set()
        #: the scopes of calls that have stored something in an attribute of their own object, by attributes
        self.own: dict[Location, dict[int, None]] = {}
        #: the places that have ever held a result of code that is not seen, by its number
        self.results: dict[int, dict[Location, None]] = {}
        #: the statement under way
        self.at: ast.AST | None = None
        #: how many times outcomes of branches that make different objects were joined
        self.joined = 0
        #: places of which each value is noted that differs between ranks, by the statement that stored it
        self.noted: dict[Location, dict[ast.AST | None, dict[Atom, None]]] = {}
        #: tensors that make each place such a one in which they are stored
        self.to_note: set[int] = set()

    # ------------------------------------------------------------ objects

    def number(self, key: Hashable) -> int:
        """A number for a key, always the same one."""
        return self._numbers.setdefault(key, len(self._numbers) + 1)

    def keep(self, v: Value, holder: int | None = None) -> None:
        """The objects of a value are held by more than local variables: by ``holder``."""
        for atom in v:
            if type(atom) is Ref:
                made = self.objects[atom.object]
                made.kept = True
                self._holders.setdefault(atom.object, set()).add(holder)
                if made.passing:  # with all that it goes over
                    made.passing = False
                    for _, held in list(self.peek(made.number)):
                        self.keep(held)
                if made.many and -atom.object in self.fields:
                    self._revive(atom.object)
            elif isinstance(atom, Items):
                for item in atom.items:
                    self.keep(item, holder)

    def _revive(self, number: int) -> None:
        """An object of which a new one was made is still held: it has its fields again."""
        for name in self.fields[-number]:
            old = self._store.get((-number, name))
            if old is not None:
                self.write((-number, name), None)
                self.widen((number, name), old)

    def names(self, owner: int) -> Iterator[tuple[Hashable, Value]]:
        """The fields of an object that hold something, in the order in which they were first
        written.
        """
        self.read((owner, FIELDS))
        names = list(self.fields.get(owner, ()))
        self.work += len(names)
        for name in names:
            found = self.read((owner, name))
            if found and name != EXISTS:
                yield name, found

    def peek(self, owner: int) -> Iterator[tuple[Hashable, Value]]:
        """The fields of an object that hold objects or data; who looks is not noted."""
        store = self._store
        for name in self.fields.get(owner, ()):
            for a in store.get((owner, name)) or ():
                if type(a) in _HOLDING:
                    yield name, store[(owner, name)]
                    break

    # ------------------------------------------------------------ fields

    def read(self, location: Location) -> Value | None:
        """What is stored there, and None where nothing is."""
        found = self._store.get(location)
        if self._reads:
            self._reads[-1].setdefault(location, found)
        return found

    def holds(self, location: Location, atom: Atom) -> bool:
        """Whether what is stored there may be an atom; nothing else of it is read."""
        found = atom in (self._store.get(location) or NOTHING)
        if self._reads and self._reads[-1].get(location) is not WRITTEN:
            asked = (location[0], Asked(location[1], atom))
            self._reads[-1].setdefault(asked, YES if found else None)
        return found

    def write(self, location: Location, new: Value | None) -> None:
        """Store a value, or take away what is stored."""
        if new is SETTING or type(new) is Narrowed:
            new = (*new,)  # two writes are two values
        self._store_at(location, new)

    def narrow(self, location: Location, kept: Value) -> None:
        """A test says more of what is stored: that is no other value."""
        self._store_at(location, Narrowed(kept))

    def write_again(self, location: Location, new: Value | None) -> None:
        """Store what a call that was executed before has left: what it has only shown is no other value."""
        if type(new) is Narrowed:
            self.narrow(location, new)
        else:
            self.write(location, new)

    def store_own(self, location: Location, new: Value, scope: int) -> None:
        """Note what the call of a scope has stored in an attribute of its object, until anybody else stores there."""
        self.own.setdefault(location, {})[scope] = None
        self.write((scope, Own(*location)), new)

    def _store_at(self, location: Location, new: Value | None) -> None:
        for scope in self.own.get(location, ()) if self.own else ():
            at = (scope, Own(*location))
            if at in self._store:
                self._store_at(at, None)
        holds = False
        for a in new or NOTHING:
            if type(a) in _HOLDING:
                holds = True
                break
        if new and holds and type(new) is not Narrowed:
            new = self._identified(location, new)
        if self.noted and new and location in self.noted and type(new) is not Narrowed:
            self._note(location, new)
        store = self._store
        old = store.get(location)
        if type(new) is Narrowed and type(old) is not Narrowed and location in self._journals[-1]:
            new = (*new,)  # the branch has written it before: to others it is another value
        self._journals[-1].setdefault(location, old)
        if self._reads and location not in self._reads[-1]:
            self._reads[-1][location] = WRITTEN
            self._first[-1].append(location)
        if self._watches and type(new) is not Narrowed:  # what is known better is no other value
            watch = self._watches[-1]
            watch[location] = join(watch.get(location, NOTHING), new or value(UNBOUND))
        owner, name = location
        if new is None:
            store.pop(location, None)
        else:
            store[location] = new
            if self.results and new:
                for number in held_in(new):
                    if number in self.results:
                        self.results[number][location] = None
            holder = self.objects.get(owner) if holds else None
            if holder is None:
                pass
            elif holder.passing:
                for atom in new:
                    if isinstance(atom, Ref):
                        self._over.setdefault(atom.object, set()).add(owner)
            elif holder.kind not in SCOPES:
                self.keep(new, owner)
        if old is None:  # it may be the first time that the object has this field
            known = self.fields.get(owner)
            if known is None:
                known = self.fields[owner] = {}
            if name not in known:
                known[name] = None
                store[(owner, FIELDS)] = value(Const("int", len(known)))

    def _identified(self, location: Location, new: Value) -> Value:
        """A value that a place is given: which tensors are in it, and where they are held."""
        for a in new:
            if type(a) in _WITH_TENSORS:
                break
        else:
            return new
        if self._placed.get(location) is new:
            return new
        fresh: list[int] = []

        def number(path: tuple[int, ...]) -> int:
            fresh.append(self.number(("tensor", location, path, id(self.at))))
            return fresh[-1]

        new, tensors = identity.held_at(new, number, self._held)
        for made in fresh:  # an earlier one of the same place and statement is another one
            for other in [p for p in self.fields.get(-made, ()) if p != location]:
                held = self._store.get(other)  # type: ignore[call-overload]
                if held and identity.holds(held, made, self._held):
                    old = self.number(("an earlier", made))
                    self.narrow(other, identity.renumbered(held, made, old))  # type: ignore[arg-type]
        for one in tensors:
            known = self.fields.setdefault(-one, {})
            if location not in known:
                known[location] = None
                self._store[(-one, FIELDS)] = value(Const("int", len(known)))
        self._placed[location] = new
        if self.to_note and not tensors.isdisjoint(self.to_note):
            holder = self.objects.get(location[0])
            if holder is not None and holder.kind not in SCOPES:
                self.noted.setdefault(location, {})
        return new

    def _note(self, location: Location, new: Value) -> None:
        """Note what of a value differs between ranks, in a place of which that is wanted."""
        own = [a for a in new if type(a) is Differs or (type(a) is Data and a.placement.kind not in EQUAL and not a.whole)]
        if own:
            self.noted[location].setdefault(self.at, {}).update(dict.fromkeys(own))

    def holders(self, tensor: int) -> list[Location]:
        """The places that have held a tensor."""
        self.read((-tensor, FIELDS))
        return list(self.fields.get(-tensor, ()))  # type: ignore[arg-type]

    def changed(self, location: Location) -> None:
        """What is stored there is another value, which looks the same."""
        held = self.read(location)
        if held is not None:
            self.write(location, (*held,))

    def widen(self, location: Location, more: Value) -> None:
        """Store what was there or something else."""
        held = self.read(location) or NOTHING
        both = join(held, more)
        self.write(location, (*both,) if both is held else both)

    # ------------------------------------------------------------ branches

    @property
    def level(self) -> int:
        """How many marks are open; for ``since``."""
        return len(self._journals)

    def mark(self) -> None:
        """Begin a branch."""
        self._journals.append({})
        self._first.append([])

    def rollback(self) -> Delta:
        """End a branch: the store is as it was, and the result is what the branch wrote."""
        journal = self._journals.pop()
        self._unmark()
        store = self._store
        delta = {at: store.get(at) for at in journal}
        for at, old in journal.items():
            if old is None:
                store.pop(at, None)
            else:
                store[at] = old
        return delta

    def is_last(self, delta: Delta) -> bool:
        """Whether a way out of the branch under way has written all that the branch has."""
        journal, held = self._journals[-1], self._store.get
        return len(journal) == len(delta) and all(held(at) is v for at, v in delta.items())

    def _unmark(self) -> None:
        """What only the branch has written first is not written, as far as what follows is
        concerned.
        """
        first = self._first.pop()
        if self._reads:
            noted = self._reads[-1]
            for at in first:
                if noted.get(at) is WRITTEN:
                    del noted[at]

    def since(self, level: int) -> Delta:
        """What was written since there were ``level`` marks; what a branch within has only shown of a value that was written before is no less another one."""
        written: Delta = {}
        for journal in self._journals[level:]:
            for at, old in journal.items():
                new = self._store.get(at)
                if type(new) is Narrowed and at in written and not type(old) is type(written[at]) is Narrowed:
                    new = (*new,)
                written[at] = new
        self.work += len(written) // 8
        return written

    def written_since(self, level: int, at: Location) -> bool:
        """Whether a place was written since there were ``level`` marks."""
        return any(at in journal for journal in self._journals[level - 1 :])

    @contextmanager
    def outside(self) -> Iterator[None]:
        """What is written here stays, whatever becomes of the branches under way: an import runs
        once.
        """
        held = (self._journals, self._first, self._reads, self._watches, self._made)
        self._journals, self._first, self._reads, self._watches, self._made = [{}], [[]], [], [], []
        try:
            yield
        finally:
            self._journals, self._first, self._reads, self._watches, self._made = held
