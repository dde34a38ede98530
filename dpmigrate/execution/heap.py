"""The store: objects by where they were made, their fields, and an undo journal.

A branch of the program is executed as: mark, run, roll back to what was written (a delta); the
deltas of all branches are then joined. So a branch costs what it writes, and not the size of the
store.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dpmigrate.execution import identity
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    UNBOUND,
    Atom,
    Const,
    Data,
    Items,
    Ref,
    Unbound,
    Value,
    join,
    one_value,
    same,
    value,
)

#: a place in the store: (owner, name)
Location = tuple[int, Hashable]
Delta = dict[Location, Value | None]
#: the name of what a container holds under keys that are not known
ELEMENTS = "*"
#: the field that holds how many items a list has, where they are kept one by one
LENGTH = "#length"
#: the field that holds keys of a dictionary that are not known one by one
KEYS = "#keys"
#: the field that says why ranks may have the keys of a dictionary in another order
ORDER = "#order"
_COUNTS = (LENGTH, KEYS, ORDER)
#: the name of the number of fields that an object ever had: who goes through all of them reads it
FIELDS = "#fields"

#: the field that an object has from the moment it is made
EXISTS = "#exists"
_EXISTING: Value = (Unbound("made"),)


@dataclass(slots=True, eq=False)
class Object:
    """What never changes of an object; its fields are in the store.

    ``kind`` is a word of the machine (``function``, ``class``, ``instance``, ``list`` …) or of a
    library (``module``, ``loader``, ``optimizer`` …); ``many`` says that one place made several of
    them.
    """

    number: int
    kind: str
    name: str
    node: ast.AST | None
    context: int
    extra: Any = None
    many: bool = False
    #: something other than a local variable holds it, so that an earlier one may be alive
    kept: bool = False
    #: what held earlier ones holds what is made of them instead: those are held no more
    let_go: bool = False
    #: an iterator that only local variables hold: what it goes over is held as long as they live
    passing: bool = False
    marks: set[str] = field(default_factory=set)
    #: the object in whose place it was made, or the first of a chain of them
    root: int = 0


#: objects that are scopes: what they hold, names hold
SCOPES = ("function", "pymodule")
#: objects of which several made at one place are told apart by their fields
_WEAK = ("instance", "list", "dict", "set", "any")
#: objects of code that is not seen: a call of any method may change any field
UNSEEN = ("opaque", "any")
#: objects that may be made for one statement only
_OWN = (*_WEAK, "slice", "iterator", "bar", "backward")
#: objects that do not keep alive what they go over
_PASSING = "iterator"
_HOLDING = (Ref, Items, Data)
_WITH_TENSORS = (Data, Items)
_WRITTEN: Value = (Unbound("written"),)


class Asked(NamedTuple):
    """In place of a name: whether what is stored there may be an atom."""

    name: Hashable
    atom: Atom


_YES: Value = (Unbound("yes"),)


class _Narrowed(tuple[Atom, ...]):
    """A value of which a test has said more."""

    __slots__ = ()


class Heap:
    """Objects and their fields; all writes are journalled."""

    def __init__(self) -> None:
        self.objects: dict[int, Object] = {}
        self.fields: dict[int, dict[Hashable, None]] = {}
        self._store: dict[Location, Value] = {}
        self._journals: list[Delta] = [{}]
        self._first: list[list[Location]] = [[]]
        self._numbers: dict[Hashable, int] = {}
        self._reads: list[dict[Location, Value | None]] = []
        self._watches: list[dict[Location, Value]] = []
        self._made: list[set[int]] = []
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
        #: the statement under way
        self.at: ast.AST | None = None

    # ------------------------------------------------------------ objects

    def number(self, key: Hashable) -> int:
        """A number for a key, always the same one."""
        return self._numbers.setdefault(key, len(self._numbers) + 1)

    def new(
        self, kind: str, name: str, node: ast.AST | None, context: int, *, extra: Any = None,
        key: Hashable = None,
    ) -> Object:  # fmt: skip
        """The object that a place makes in a context; made once more, it is empty and many."""
        of = () if self.variant is None else (self.variant,)
        number = self.number(("object", id(node), context, kind, key, *of))
        if self._made:
            self._made[-1].add(number)
        made = self.objects.get(number)
        if made is None:
            made = self.objects[number] = Object(number, kind, name, node, context, extra)
            made.passing = kind == _PASSING
            self.write((number, EXISTS), _EXISTING)
            return made
        made.extra = extra if extra is not None else made.extra
        made.many = True
        # an earlier one may be alive: what is written into the new one is added to its fields
        weak = made.kind in _WEAK
        stays = weak and (made.kept or self._named(number) > (context not in self.merged))
        made.kept = made.kept or stays
        for f in [f for f in self.fields.get(number, ()) if (number, f) in self._store]:
            if not stays or (isinstance(f, str) and f.startswith("mode ")):
                if weak and not made.let_go:
                    self.write((-number, f), self._store[(number, f)])
                self.write((number, f), None)
        made.let_go = False
        self.write((number, EXISTS), _EXISTING)
        return made

    def in_place_of(
        self, old: Object, node: ast.AST, context: int, given: Iterable[int]
    ) -> Object:
        """A new list or dictionary in the place of another one, to be filled with ``widen``. Where a
        turn of a loop is given what an earlier one has made here, the same object is made once more:
        else there were ever more.

        ``given`` are the numbers of all containers that are replaced together. Where that object is
        another one of them, it is not emptied: it stands for both.
        """
        root = old.root if old.root and old.node is node else old.number
        others = (self.objects[n] for n in given if n != old.number)
        earlier = next((o for o in others if o.root == root and o.node is node), None)
        if earlier is not None:
            self._either(earlier, old)
            return earlier
        made = self.new(old.kind, old.name, node, context, key=("in place of", root))
        made.root = root
        return made

    def _either(self, made: Object, other: Object) -> None:
        """Let a container stand for another one too, which may have other keys and another length."""
        own, more = dict(self.names(made.number)), dict(self.names(other.number))
        for name in [n for n in (own | more) if not (n in own and n in more)]:
            self.widen((made.number, name), (UNBOUND,))
        self.widen((made.number, LENGTH if made.kind == "list" else KEYS), SETTING)
        self.widen((made.number, ELEMENTS), join(*(v for k, v in own.items() if k not in _COUNTS)))

    def _named(self, number: int) -> int:
        """How many variables of the calls under way hold an object, or iterators over it."""
        wanted, found = self._through(number), 0
        for scope in self.scopes:
            for name in self.fields.get(scope, ()):
                for ref in self._store.get((scope, name)) or ():
                    if ref in wanted:
                        found += 1
                        break
        return found

    def _through(self, number: int) -> list[Ref]:
        """An object, and the iterators that go over it, also through others."""
        found = [number]
        for one in found:
            found += sorted(self._over.get(one, set()) - set(found))
        return [Ref(n) for n in found]

    def let_go(self, number: int) -> None:
        """Only a local variable holds an object any more."""
        made = self.objects[number]
        made.kept, made.let_go = False, True

    def keep(self, v: Value) -> None:
        """The objects of a value are held by more than local variables."""
        for atom in v:
            if type(atom) is Ref:
                made = self.objects[atom.object]
                made.kept = True
                if made.passing:  # with all that it goes over
                    made.passing = False
                    for _, held in list(self.peek(made.number)):
                        self.keep(held)
                if made.many and -atom.object in self.fields:
                    self._revive(atom.object)
            elif isinstance(atom, Items):
                for item in atom.items:
                    self.keep(item)

    def _revive(self, number: int) -> None:
        """An object of which a new one was made is still held: it has its fields again."""
        for name in self.fields[-number]:
            old = self._store.get((-number, name))
            if old is not None:
                self.write((-number, name), None)
                self.widen((number, name), old)

    def put(self, location: Location, new: Value) -> None:
        """Store a value in a field; where there may be several objects, beside what is there."""
        made = self.objects.get(location[0])
        if made is not None and made.many and made.kept and made.kind in _WEAK:
            self.widen(location, new)
        else:
            self.write(location, new)

    def names(self, owner: int) -> Iterator[tuple[Hashable, Value]]:
        """The fields of an object that hold something, in the order in which they were first
        written.
        """
        self.read((owner, FIELDS))
        for name in list(self.fields.get(owner, ())):
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
        if self._reads and self._reads[-1].get(location) is not _WRITTEN:
            asked = (location[0], Asked(location[1], atom))
            self._reads[-1].setdefault(asked, _YES if found else None)
        return found

    def write(self, location: Location, new: Value | None) -> None:
        """Store a value, or take away what is stored."""
        if new is SETTING or type(new) is _Narrowed:
            new = (*new,)  # two writes are two values
        self._store_at(location, new)

    def narrow(self, location: Location, kept: Value) -> None:
        """A test says more of what is stored: that is no other value."""
        self._store_at(location, _Narrowed(kept))

    def _store_at(self, location: Location, new: Value | None) -> None:
        if new and type(new) is not _Narrowed:
            new = self._identified(location, new)
        store = self._store
        journal = self._journals[-1]
        if location not in journal:
            journal[location] = store.get(location)
        if self._reads and location not in self._reads[-1]:
            self._reads[-1][location] = _WRITTEN
            self._first[-1].append(location)
        for watch in self._watches:
            watch[location] = join(watch.get(location, NOTHING), new or value(UNBOUND))
        owner, name = location
        if new is None:
            store.pop(location, None)
        else:
            store[location] = new
            holder = self.objects.get(owner)
            if holder is None:
                pass
            elif holder.passing:
                for atom in new:
                    if isinstance(atom, Ref):
                        self._over.setdefault(atom.object, set()).add(owner)
            elif holder.kind not in SCOPES:
                self.keep(new)
        known = self.fields.get(owner)
        if known is None:
            known = self.fields[owner] = {}
        if name not in known:
            known[name] = None
            store[(owner, FIELDS)] = value(Const("int", len(known)))

    def _identified(self, location: Location, new: Value) -> Value:
        """A value that a place is given: which tensors are in it, and where they are held."""
        if not any(type(a) in _WITH_TENSORS for a in new):
            return new
        fresh: list[int] = []

        def number(path: tuple[int, ...]) -> int:
            fresh.append(self.number(("tensor", location, path, id(self.at))))
            return fresh[-1]

        new = identity.held_at(new, number, ())
        for made in fresh:  # an earlier one of the same place and statement is another one
            for other in [p for p in self.fields.get(-made, ()) if p != location]:
                held = self._store.get(other)  # type: ignore[call-overload]
                if held and made in identity.is_held(held):
                    old = self.number(("an earlier", made))
                    self._store_at(other, identity.renumbered(held, made, old))  # type: ignore[arg-type]
        for one in identity.is_held(new):
            known = self.fields.setdefault(-one, {})
            if location not in known:
                known[location] = None
                self._store[(-one, FIELDS)] = value(Const("int", len(known)))
        return new

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

    def commit(self) -> Delta:
        """End a branch and keep what it wrote; the result is the journal: what was there before."""
        journal = self._journals.pop()
        first = self._first.pop()
        self._first[-1] += first
        outer = self._journals[-1]
        for at, old in journal.items():
            outer.setdefault(at, old)
        return journal

    def _unmark(self) -> None:
        """What only the branch has written first is not written, as far as what follows is
        concerned.
        """
        first = self._first.pop()
        if self._reads:
            noted = self._reads[-1]
            for at in first:
                if noted.get(at) is _WRITTEN:
                    del noted[at]

    def since(self, level: int) -> Delta:
        """What was written since there were ``level`` marks."""
        return {at: self._store.get(at) for journal in self._journals[level:] for at in journal}

    def written_since(self, level: int, at: Location) -> bool:
        """Whether a place was written since there were ``level`` marks."""
        return any(at in journal for journal in self._journals[level - 1 :])

    def apply(
        self,
        deltas: Iterable[Delta],
        merged: Callable[[Value], Value] | None = None,
        widen: Callable[[Value, Value], Value] | None = None,
    ) -> bool:
        """Set the store to the join of several outcomes of one state; whether that changes
        anything.

        ``merged`` is applied to what the outcomes do not agree on, ``widen`` to what is new then
        and what was there. A name that only some of them bind may be unbound afterwards.
        """
        outcomes = list(deltas)
        private: dict[int, bool] = {}
        changed = False
        some = self.by_some()
        if len(outcomes) == 1:
            for at, new in outcomes[0].items():
                old = self._store.get(at)
                if new is not old and not same(new, old):
                    changed = True
                    self._store_at(at, new)
                elif new and (at[1] == EXISTS or (some and self._anew(at, new))):
                    self.write(at, (*new,))  # made once more, or another value that looks the same
            return changed
        by: dict[Location, list[int]] = {}  # which of the outcomes have written a place
        for i, outcome in enumerate(outcomes):
            for at in outcome:
                by.setdefault(at, []).append(i)
        reads = self._reads[-1] if self._reads else None
        # which of the objects that some of them have made were there before
        there = {at[0]: self._store.get(at) for at in by if at[1] == EXISTS}
        for at, writers in by.items():
            old = self._store.get(at)
            found = [outcomes[i][at] for i in writers]
            if len(writers) < len(outcomes):
                if reads is not None and at not in reads:
                    if at[0] not in private:
                        private[at[0]] = self._private(at[0])
                    if not private[at[0]]:
                        reads[at] = old  # an outcome leaves it as it was
                found.insert(0 if writers[0] else len(found), old)
            first = found[0]
            for f in found:
                if f is not first and not (same(f, first) and (merged is None or one_value(f))):
                    exists = there.get(at[0], self._store.get((at[0], EXISTS)))
                    new = self._either_of(at, old, exists, outcomes, by)
                    if merged is not None:
                        new = merged(new)
                    break
            else:
                new = first
            if new is old or same(new, old):
                if new and some and self._anew(at, new):
                    # what a test has narrowed is no other value
                    if any(type(outcomes[i][at]) is not _Narrowed for i in writers):
                        self.write(at, (*new,))  # another value that looks the same
                continue
            if new is not None and widen is not None:
                new = widen(new, old or NOTHING)
                if same(new, old):
                    continue
            changed = True
            self.write(at, new)
        return changed

    @staticmethod
    def _anew(at: Location, new: Value | None) -> bool:
        """Whether an outcome that looks like what was there is another value."""
        return at[0] >= 0 and type(new) is not _Narrowed and not one_value(new)

    def _private(self, number: int) -> bool:
        """Whether an object of a call under way is made by it and held by nothing else: what an
        earlier one of the same place had been does not matter then.
        """
        made = self.objects.get(number)
        if made is None or number not in self._made[-1] or made.kept or made.kind not in _OWN:
            return False
        wanted = Ref(number)
        for scope in self.scopes[:-1]:
            for name in self.fields.get(scope, ()):
                held = self._store.get((scope, name))
                if held is not None and wanted in held:
                    return False
        return True

    def _either_of(
        self, at: Location, old: Value | None, there: Value | None, outcomes: list[Delta],
        by: dict[Location, list[int]],
    ) -> Value:  # fmt: skip
        """What the outcomes hold at a place, joined: a field of an object that one of them has not
        made is not unbound there. ``there`` says whether it was before, ``by`` which of the
        outcomes have written a place, by number.
        """
        made = (at[0], EXISTS)
        known = at[0] in self.objects

        def unbound(numbers: Iterable[int]) -> bool:
            return not known or any(outcomes[i].get(made, there) is not None for i in numbers)

        new, after = NOTHING, 0
        for i in (*by[at], len(outcomes)):
            if after < i:  # these leave it as it was
                if old is not None:
                    new = _joined_often(new, old, i - after)
                elif known and there is None:  # they are asked that may have made it
                    if unbound(n for n in by.get(made, ()) if after <= n < i):
                        new = join(new, value(UNBOUND))
                elif unbound(range(after, i)):
                    new = join(new, value(UNBOUND))
            if i < len(outcomes):
                held = outcomes[i][at]
                if held is not None:
                    new = join(new, held)
                elif unbound((i,)):
                    new = join(new, value(UNBOUND))
            after = i + 1
        return new

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

    # ------------------------------------------------------------ calls

    def reading(self) -> None:
        """Begin to note what is read and which objects are made, for the summary of a call."""
        self._reads.append({})
        self._first.append([])
        self._made.append(set())

    def made_since(self) -> frozenset[int]:
        """The objects that were made since then."""
        made = frozenset(self._made.pop())
        if self._made:
            self._made[-1].update(made)
        return made

    def remake(self, made: frozenset[int]) -> None:
        """Take over which objects a summary has made."""
        for number in made:
            self.objects[number].many = True
        if self._made:
            self._made[-1].update(made)

    def read_since(self, own: int) -> Delta:
        """End it: what was read before it was written, but for the fields of ``own``, the call's
        frame.
        """
        noted = self._reads.pop()
        self._first.pop()
        if self._reads:
            outer = self._reads[-1]
            for at, found in noted.items():
                if at[0] != own and at not in outer and not _written_before(at, outer):
                    outer[at] = found
                    if found is _WRITTEN:
                        self._first[-1].append(at)
        return {at: v for at, v in noted.items() if v is not _WRITTEN and at[0] != own}

    def unchanged(self, reads: Delta) -> bool:
        """Whether all that a call had read is as it was."""
        held = self._store.get
        for at, found in reads.items():
            if type(at[1]) is Asked:
                now = _YES if at[1].atom in (held((at[0], at[1].name)) or NOTHING) else None
            else:
                now = held(at)
            if now is not found and not same(now, found):
                return False
        return True

    def note(self, reads: Delta) -> None:
        """Take over what a summary had read."""
        if self._reads:
            noted = self._reads[-1]
            for at, found in reads.items():
                if not _written_before(at, noted):
                    noted.setdefault(at, found)

    # ------------------------------------------------------------ exceptions

    def watch(self) -> dict[Location, Value]:
        """Begin to note every value that is written: a handler may start after each of them."""
        self._watches.append({})
        return self._watches[-1]

    @property
    def watching(self) -> bool:
        """Whether a ``try`` is under way."""
        return bool(self._watches)

    def watched(self, watch: dict[Location, Value]) -> dict[Location, Value]:
        """End it: all values that were written, by place."""
        self._watches = [w for w in self._watches if w is not watch]
        return watch


def _written_before(at: Location, noted: Delta) -> bool:
    """Whether a question is one of what was written before it was asked."""
    return type(at[1]) is Asked and noted.get((at[0], at[1].name)) is _WRITTEN


def _joined_often(v: Value, more: Value, times: int) -> Value:
    """A value joined with another one as many times, or until that changes nothing."""
    for _ in range(times):
        both = join(v, more)
        if both is v:
            break
        v = both
    return v
