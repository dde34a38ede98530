"""The heap: objects by where they were made, and notes for calls and handlers.

Their fields are in the ``store``; what branches have written is joined in ``outcomes``.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable
from typing import Any

from dpmigrate.execution.joins import join, same
from dpmigrate.execution.objects import (
    COUNTS,
    ELEMENTS,
    EXISTING,
    EXISTS,
    KEYS,
    LENGTH,
    PASSING,
    RESULTS,
    WEAK,
    Delta,
    Location,
    Object,
)
from dpmigrate.execution.outcomes import Outcomes
from dpmigrate.execution.store import WRITTEN, YES, Asked, held_in
from dpmigrate.execution.values import NOTHING, SETTING, UNBOUND, Items, Ref, Value

#: containers that hold others, and of how many it is looked who holds them
_CONTAINERS, _FEW = ("list", "dict"), 8


class Heap(Outcomes):
    """A store that makes objects, and notes what calls read and what handlers may find."""

    # ------------------------------------------------------------ objects

    def new(
        self, kind: str, name: str, node: ast.AST | None, context: int, *, extra: Any = None,
        key: Hashable = None, read: Iterable[Value] = (),
    ) -> Object:  # fmt: skip
        """The object that a place makes in a context; made once more, it is empty and many, but where
        what is ``read`` while it is filled may be the earlier one.
        """
        of = () if self.variant is None else (self.variant,)
        number = self.number(("object", id(node), context, kind, key, *of))
        if self._made:
            self._made[-1].add(number)
        made = self.objects.get(number)
        if made is None:
            made = self.objects[number] = Object(number, kind, name, node, context, extra)
            made.passing = kind == PASSING
            if kind in RESULTS:
                self.results[number] = {}
            self.write((number, EXISTS), EXISTING)
            return made
        made.extra = extra if extra is not None else made.extra
        made.many = True
        made.kept = made.kept or any(number in held_in(v) for v in read)
        made.arms.clear()
        # an earlier one may be alive: what is written into the new one is added to its fields
        weak = made.kind in WEAK
        if weak and made.kept and self._replaced(number):
            self.let_go(number)
        stays = weak and (made.kept or self._named(number) > (context not in self.merged))
        made.kept = made.kept or stays
        for f in [f for f in self.fields.get(number, ()) if (number, f) in self._store]:
            if not stays or (isinstance(f, str) and f.startswith("mode ")):
                if weak and not made.let_go:
                    self.write((-number, f), self._store[(number, f)])
                self.write((number, f), None)
        made.let_go = False
        self.write((number, EXISTS), EXISTING)
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
        self.widen((made.number, ELEMENTS), join(*(v for k, v in own.items() if k not in COUNTS)))

    def _named(self, number: int) -> int:
        """How many variables of the calls under way hold an object, or iterators over it."""
        wanted, found = self._through(number), 0
        held = self._store.get
        for scope in self.scopes:
            self.work += len(self.fields.get(scope, ())) // 8
            for name in self.fields.get(scope, ()):
                for atom in held((scope, name)) or ():
                    if (type(atom) is Ref and atom.object in wanted) or (type(atom) is Items and any(n in wanted for n in held_in((atom,)))):
                        found += 1
                        break
        return found

    def _replaced(self, number: int) -> bool:
        """Whether an object is held by containers alone that nothing holds any more, or a variable that the statement under
        way gives another value, and does not read: ``parts = {"x": {k: v for k, v in batch.items()}}`` in a loop.
        """
        held = [number]
        for one in held:
            made = self.objects.get(one)
            holders = self._holders.get(one, set()) if made is not None and made.kept else set()
            for holder in holders:
                if holder is None or self.objects[holder].kind not in _CONTAINERS or len(held) > _FEW:
                    return False
                if holder not in held and any(one in held_in(v) for _, v in self.peek(holder)):
                    held.append(holder)
        if any(self._over.get(n) for n in held):
            return False
        names = [(scope, name) for scope in self.scopes for name in self.fields.get(scope, ()) if self._names_one(scope, name, held)]
        return not names or (len(names) == 1 and _gives_anew(self.at, names[0][1]))

    def _names_one(self, scope: int, name: Hashable, wanted: list[int]) -> bool:
        return any(n in wanted for n in held_in(self._store.get((scope, name)) or ()))

    def _through(self, number: int) -> list[int]:
        """An object, and the iterators that go over it, also through others."""
        found = [number]
        for one in found:
            found += sorted(self._over.get(one, set()) - set(found))
        return found

    def let_go(self, number: int) -> None:
        """Only a local variable holds an object any more."""
        made = self.objects[number]
        made.kept, made.let_go = False, True

    def put(self, location: Location, new: Value) -> None:
        """Store a value in a field; where there may be several objects, beside what is there."""
        made = self.objects.get(location[0])
        if made is not None and made.many and made.kept and made.kind in WEAK:
            self.widen(location, new)
        else:
            self.write(location, new)

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
            self.objects[number].arms.clear()
        if self._made:
            self._made[-1].update(made)

    def read_since(self, own: int) -> Delta:
        """End it: what was read before it was written, but for the fields of ``own``, the call's
        frame.
        """
        noted = self._reads.pop()
        self.work += len(noted) // 2
        self._first.pop()
        if self._reads:
            outer = self._reads[-1]
            for at, found in noted.items():
                if at[0] != own and at not in outer and not _written_before(at, outer):
                    outer[at] = found
                    if found is WRITTEN:
                        self._first[-1].append(at)
        return {at: v for at, v in noted.items() if v is not WRITTEN and at[0] != own}

    def unchanged(self, reads: Delta) -> bool:
        """Whether all that a call had read is as it was."""
        held = self._store.get
        self.work += len(reads) // 8
        for at, found in reads.items():
            if type(at[1]) is Asked:
                now = YES if at[1].atom in (held((at[0], at[1].name)) or NOTHING) else None
            else:
                now = held(at)
            if now is not found and not same(now, found):
                return False
        return True

    def note(self, reads: Delta) -> None:
        """Take over what a summary had read."""
        if self._reads:
            noted = self._reads[-1]
            self.work += len(reads) // 4
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
        for i, one in enumerate(self._watches):
            if one is watch:
                del self._watches[i]
                if i:  # what was noted for the inner one alone, the one round it wants too
                    outer = self._watches[i - 1]
                    for at, v in watch.items():
                        outer[at] = join(outer.get(at, NOTHING), v)
                break
        return watch


def _written_before(at: Location, noted: Delta) -> bool:
    """Whether a question is one of what was written before it was asked."""
    return type(at[1]) is Asked and noted.get((at[0], at[1].name)) is WRITTEN


def _gives_anew(statement: ast.AST | None, name: Hashable) -> bool:
    """Whether a statement gives a variable another value, and reads it nowhere."""
    if not isinstance(statement, ast.Assign):
        return False
    named = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name]
    return any(t in named for t in statement.targets) and all(isinstance(n.ctx, ast.Store) for n in named)
