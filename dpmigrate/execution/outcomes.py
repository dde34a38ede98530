"""The outcomes of branches: how the store comes to hold what they wrote, joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dpmigrate.execution.joins import join, one_value, same
from dpmigrate.execution.objects import CHOSEN, EXISTS, OF_ONE_STATEMENT, Delta, Location
from dpmigrate.execution.store import WRITTEN, Narrowed, Store, held_in
from dpmigrate.execution.values import NOTHING, UNBOUND, Ref, Value, value


def _excludes(own: dict[int, frozenset[int]], other: dict[int, frozenset[int]]) -> bool:
    """Whether two objects never exist both: one branch, executed once, makes them in different arms."""
    return any(not arms & other.get(branch, arms) for branch, arms in own.items())


def _joined_often(v: Value, more: Value, times: int) -> Value:
    """A value joined with another one as many times, or until that changes nothing."""
    for _ in range(times):
        both = join(v, more)
        if both is v:
            break
        v = both
    return v


class Outcomes(Store):
    """A store that takes over what branches have written."""

    def apply(
        self,
        deltas: Iterable[Delta],
        merged: Callable[[Value], Value] | None = None,
        widen: Callable[[Value, Value], Value] | None = None,
        of: Sequence[int] = (),
    ) -> bool:
        """Set the store to the join of several outcomes of one state; whether that changes
        anything.

        ``merged`` is applied to what the outcomes do not agree on, ``widen`` to what is new then
        and what was there. A name that only some of them bind may be unbound afterwards.
        ``of``: the object that exists in each outcome (0: none is known). Those that never exist
        beside it are not there, so that they keep nothing of what was.
        """
        outcomes = list(deltas)
        private: dict[int, bool] = {}
        changed = False
        some = self.by_some()
        if len(outcomes) == 1:
            self.work += 2 * len(outcomes[0])
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
        self.work += 3 * len(by)
        reads = self._reads[-1] if self._reads else None
        # which of the objects that some of them have made were there before
        there = {at[0]: self._store.get(at) for at in by if at[1] == EXISTS}
        self._tell_arms([n for n, was in there.items() if was is None], by, len(outcomes))
        # and which an earlier turn has made, and nothing holds in the outcomes that do not make them anew
        gone = {n for n, was in there.items() if was is not None and self._gone(n, outcomes)}
        for at, writers in by.items():
            old = was = self._store.get(at)
            if at[0] in gone and at[1] != EXISTS:
                was = None
            found = [outcomes[i][at] for i in writers]
            among = self._present(at[0], writers, of) if of and len(writers) < len(outcomes) else None
            if len(writers) < (len(outcomes) if among is None else len(among)):
                if reads is not None and at not in reads:
                    if at[0] not in private:
                        private[at[0]] = self._private(at[0])
                    if not private[at[0]]:
                        reads[at] = old  # an outcome leaves it as it was
                found.insert(0 if writers[0] else len(found), was)
            first = found[0]
            # what a test has narrowed is no other value
            narrowed = all(type(outcomes[i][at]) is Narrowed for i in writers)
            for f in found:
                if f is not first and not (same(f, first) and (merged is None or one_value(f))):
                    exists = there.get(at[0], self._store.get((at[0], EXISTS))) if at[0] not in gone else None
                    if among is None:
                        new = self._either_of(at, was, exists, outcomes, by)
                    else:
                        ways = {k: [j for j, i in enumerate(among) if i in by[k]] for k in (at, (at[0], EXISTS)) if k in by}
                        new = self._either_of(at, was, exists, [outcomes[i] for i in among], ways)
                    if merged is not None and not narrowed:
                        new = merged(new)
                    break
            else:
                new = first
            if new is old or same(new, old):
                if new and some and not narrowed and self._anew(at, new):
                    self.write(at, (*new,))  # another value that looks the same
                continue
            if new is not None and widen is not None:
                new = widen(new, old or NOTHING)
                if same(new, old):
                    continue
            changed = True
            if narrowed and new:
                self.narrow(at, new)
            else:
                self.write(at, new)
        return changed

    def adopt(self, own: int | None = None) -> tuple[list[Location], bool]:
        """End a branch that is the only way on and keep what it wrote: which places it has written,
        and whether that changes anything. The fields of ``own``, the frame of a call, are as before.

        It comes to the same as ``rollback`` and ``apply`` one after the other, and costs less.
        """
        journal, first = self._journals.pop(), self._first.pop()
        store, outer = self._store, self._journals[-1]
        noted = self._reads[-1] if self._reads else None
        some = self.by_some()
        restored: set[Location] = set()
        written: list[Location] = []
        changed = False
        self.work += len(journal)
        for at, old in journal.items():
            if at[0] != own:
                written.append(at)
                new = store.get(at)
                if type(new) is Narrowed and at in outer and type(old) is not Narrowed:
                    new = store[at] = (*new,)  # the outer branch has written it
                if new is not old and not same(new, old):
                    changed = True
                    outer.setdefault(at, old)
                    if noted is not None and at not in noted:  # a variable of a call that has ended
                        noted[at] = WRITTEN
                        self._first[-1].append(at)
                    continue
                if new and (at[1] == EXISTS or (some and self._anew(at, new))):
                    if old is None:
                        store.pop(at, None)
                    else:
                        store[at] = old
                    self.write(at, (*new,))  # made once more, or another value that looks the same
                    continue
            if old is None:
                store.pop(at, None)
            else:
                store[at] = old
            restored.add(at)
        if noted is not None:
            outer_first = self._first[-1]
            for at in first:
                if at not in restored:
                    outer_first.append(at)
                elif noted.get(at) is WRITTEN:
                    del noted[at]
        return written, changed

    def _tell_arms(self, made: list[int], by: dict[Location, list[int]], count: int) -> None:
        """Tell objects in which outcomes alone they are made, where different ones make others."""
        chosen = (n for n in made if n in self.objects and self.objects[n].kind in CHOSEN and not self.objects[n].owner)
        arms = {n: frozenset(by[n, EXISTS]) for n in chosen}
        if len(set(arms.values())) > 1:
            self.joined += 1
            for n, own in arms.items():
                if len(own) < count:
                    self.objects[n].arms[self.joined] = own

    def _present(self, number: int, writers: list[int], of: Sequence[int]) -> list[int] | None:
        """The outcomes in which an object may exist; None for all of them."""
        own = self._arms(number)
        if not own:
            return None
        found = [i for i, n in enumerate(of) if i in writers or not n or not _excludes(own, self._arms(n))]
        return found if len(found) < len(of) else None

    def _arms(self, number: int) -> dict[int, frozenset[int]]:
        """The branches that have made an object, or what it is a part of, in some arms alone."""
        made = self.objects.get(number)
        while made is not None and made.owner:
            made = self.objects[made.owner]
        return made.arms if made is not None else {}

    @staticmethod
    def _anew(at: Location, new: Value | None) -> bool:
        """Whether an outcome that looks like what was there is another value."""
        return at[0] >= 0 and type(new) is not Narrowed and not one_value(new)

    def _private(self, number: int) -> bool:
        """Whether an object of a call under way is made by it and held by nothing else: what an
        earlier one of the same place had been does not matter then.
        """
        made = self.objects.get(number)
        if made is None or number not in self._made[-1] or made.kept or made.kind not in OF_ONE_STATEMENT:
            return False
        wanted = Ref(number)
        for scope in self.scopes[:-1]:
            self.work += len(self.fields.get(scope, ())) // 8
            for name in self.fields.get(scope, ()):
                held = self._store.get((scope, name))
                if held is not None and wanted in held:
                    return False
        return True

    def _gone(self, number: int, outcomes: list[Delta]) -> bool:
        """Whether some outcomes make a result anew, and nothing holds the earlier one in the others: what it was
        is never asked for. Objects of other kinds may be asked for by their numbers, and those of shared
        contexts be held by a call under way.
        """
        made = self.objects.get(number)
        if made is None or number not in self.results or made.kept or made.context in self.merged:
            return False
        others = [outcome for outcome in outcomes if (number, EXISTS) not in outcome]
        places = self.results[number]
        self.work += len(places) * len(others) // 8
        return bool(others) and not any(
            number in held_in(outcome.get(at, self._store.get(at)) or NOTHING) for at in places for outcome in others
        )

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
