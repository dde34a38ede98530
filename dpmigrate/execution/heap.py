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
from typing import Any

from dpmigrate.execution.values import NOTHING, UNBOUND, Unbound, Value, join, value

#: a place in the store: (owner, name)
Location = tuple[int, Hashable]
Delta = dict[Location, Value | None]
#: the name of what a container holds under keys that are not known
ELEMENTS = "*"


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
    marks: set[str] = field(default_factory=set)


class Reads:
    """What a call read before it wrote it itself: what its summary depends on."""

    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen: dict[Location, Value | None] = {}


_WRITTEN: Value = (Unbound("written"),)


class Heap:
    """Objects and their fields; all writes are journalled."""

    def __init__(self) -> None:
        self.objects: dict[int, Object] = {}
        self.fields: dict[int, dict[Hashable, None]] = {}
        self._store: dict[Location, Value] = {}
        self._journals: list[Delta] = [{}]
        self._numbers: dict[Hashable, int] = {}
        self._reads: list[dict[Location, Value | None]] = []
        self._watches: list[dict[Location, Value]] = []

    # ------------------------------------------------------------ objects

    def number(self, key: Hashable) -> int:
        """A number for a key, always the same one."""
        return self._numbers.setdefault(key, len(self._numbers) + 1)

    def new(
        self, kind: str, name: str, node: ast.AST | None, context: int, *, extra: Any = None,
        key: Hashable = None,
    ) -> Object:  # fmt: skip
        """The object that a place makes in a context; made once more, it is empty and many."""
        number = self.number(("object", id(node), context, kind, key))
        made = self.objects.get(number)
        if made is None:
            made = self.objects[number] = Object(number, kind, name, node, context, extra)
            return made
        made.extra = extra if extra is not None else made.extra
        held = [f for f in self.fields.get(number, ()) if (number, f) in self._store]
        made.many = True
        for f in held:
            self.write((number, f), None)
        return made

    def names(self, owner: int) -> Iterator[tuple[Hashable, Value]]:
        """The fields of an object that hold something, in the order in which they were first
        written.
        """
        for name in list(self.fields.get(owner, ())):
            found = self.read((owner, name))
            if found:
                yield name, found

    # ------------------------------------------------------------ fields

    def read(self, location: Location) -> Value | None:
        """What is stored there, and None where nothing is."""
        found = self._store.get(location)
        if self._reads:
            self._reads[-1].setdefault(location, found)
        return found

    def write(self, location: Location, new: Value | None) -> None:
        """Store a value, or take away what is stored."""
        old = self._store.get(location)
        self._journals[-1].setdefault(location, old)
        if self._reads:
            self._reads[-1].setdefault(location, _WRITTEN)
        for watch in self._watches:
            watch[location] = join(watch.get(location, NOTHING), new or value(UNBOUND))
        if new is None:
            self._store.pop(location, None)
        else:
            self._store[location] = new
        self.fields.setdefault(location[0], {}).setdefault(location[1])

    def widen(self, location: Location, more: Value) -> None:
        """Store what was there or something else."""
        self.write(location, join(self.read(location) or NOTHING, more))

    # ------------------------------------------------------------ branches

    @property
    def level(self) -> int:
        """How many marks are open; for ``since``."""
        return len(self._journals)

    def mark(self) -> None:
        """Begin a branch."""
        self._journals.append({})

    def rollback(self) -> Delta:
        """End a branch: the store is as it was, and the result is what the branch wrote."""
        journal = self._journals.pop()
        delta = {at: self._store.get(at) for at in journal}
        for at, old in journal.items():
            if old is None:
                self._store.pop(at, None)
            else:
                self._store[at] = old
        return delta

    def commit(self) -> Delta:
        """End a branch and keep what it wrote; the result is the journal: what was there before."""
        journal = self._journals.pop()
        outer = self._journals[-1]
        for at, old in journal.items():
            outer.setdefault(at, old)
        return journal

    def since(self, level: int) -> Delta:
        """What was written since there were ``level`` marks."""
        return {at: self._store.get(at) for journal in self._journals[level:] for at in journal}

    def apply(
        self, deltas: Iterable[Delta], merged: Callable[[Value], Value] | None = None
    ) -> bool:
        """Set the store to the join of several outcomes of one state; whether that changes
        anything.

        ``merged`` is applied to what the outcomes do not agree on. A name that only some of them
        bind may be unbound afterwards.
        """
        outcomes = list(deltas)
        changed = False
        for at in dict.fromkeys(at for d in outcomes for at in d):
            old = self._store.get(at)
            found = [d.get(at, old) for d in outcomes]
            first = found[0]
            if all(f == first for f in found[1:]):
                new = first
            else:
                new = join(*[f if f is not None else value(UNBOUND) for f in found])
                if merged is not None:
                    new = merged(new)
            if new != old:
                changed = True
                self.write(at, new)
        return changed

    @contextmanager
    def outside(self) -> Iterator[None]:
        """What is written here stays, whatever becomes of the branches under way: an import runs
        once.
        """
        held = (self._journals, self._reads, self._watches)
        self._journals, self._reads, self._watches = [{}], [], []
        try:
            yield
        finally:
            self._journals, self._reads, self._watches = held

    # ------------------------------------------------------------ calls

    def reading(self) -> None:
        """Begin to note what is read, for the summary of a call."""
        self._reads.append({})

    def read_since(self, own: int) -> Delta:
        """End it: what was read before it was written, but for the fields of ``own``, the call's
        frame.
        """
        noted = self._reads.pop()
        if self._reads:
            outer = self._reads[-1]
            for at, found in noted.items():
                if at[0] != own:
                    outer.setdefault(at, found)
        return {at: v for at, v in noted.items() if v is not _WRITTEN and at[0] != own}

    def unchanged(self, reads: Delta) -> bool:
        """Whether all that a call had read is as it was."""
        store = self._store
        return all(store.get(at) == found for at, found in reads.items())

    def note(self, reads: Delta) -> None:
        """Take over what a summary had read."""
        if self._reads:
            for at, found in reads.items():
                self._reads[-1].setdefault(at, found)

    def drop(self, owner: int) -> None:
        """Forget the fields of a frame that has ended, in the store and the journal."""
        journal = self._journals[-1]
        for name in self.fields.pop(owner, ()):
            self._store.pop((owner, name), None)
            journal.pop((owner, name), None)

    # ------------------------------------------------------------ exceptions

    def watch(self) -> None:
        """Begin to note every value that is written: a handler may start after each of them."""
        self._watches.append({})

    def watched(self) -> dict[Location, Value]:
        """End it: all values that were written, by place."""
        return self._watches.pop()
