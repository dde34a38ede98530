"""An execution that says through which loaders and shares of them the program goes."""

from __future__ import annotations

import ast
from typing import TypeGuard

from dpmigrate.execution.machine import Frame
from dpmigrate.execution.samples import COUNTED
from dpmigrate.execution.values import NOTHING, Atom, Data, Ref, Value
from dpmigrate.judge.choosing import Choosing
from dpmigrate.judge.notes import ONE_BY_ONE, SHARE, is_loader


def _counts(a: Atom) -> TypeGuard[Data]:
    """Whether a number is a count of turns, in which no data of these are."""
    return isinstance(a, Data) and a.origin is not None and a.origin.word == COUNTED and not a.sources


class Passing(Choosing):
    """What is gone through is a loader or a share, behind whatever shows or counts it."""

    def _added_in_turn(
        self, target: ast.expr, left: Value, right: Value, node: ast.AugAssign | ast.BinOp, frame: Frame
    ) -> Value:
        """What is added to a sum; a count is one of what is gone through, as a sum of its data is."""
        made = super()._added_in_turn(target, left, right, node, frame)
        over = frozenset(a.object for a in self._over() if isinstance(a, Ref))
        return tuple(a._replace(sources=over) if _counts(a) else a for a in made)

    def _over(self) -> Value:
        """The loaders and shares that are gone through."""
        return tuple(Ref(n) for n in sorted({n for g in self.going for n in self.gone_through(g.iterable)}))

    def gone_through(self, iterable: Value) -> set[int]:
        """The loaders and shares behind an iterable: ``tqdm(enumerate(loader))``."""
        found: set[int] = set()
        for made in self.objects(iterable):
            if is_loader(self, made) or made.name == SHARE:
                found.add(made.number)
            for name in list(self.heap.fields.get(made.number, ())):
                if isinstance(name, str) and name.startswith("source"):
                    found |= self.gone_through(self.heap.read((made.number, name)) or NOTHING)
        return found

    def _as_they_come(self, iterable: Value) -> bool:
        """Whether an iterable is sure to give the batches of loaders one by one: ``tqdm(enumerate(loader))``."""
        if not iterable:
            return False
        for atom in iterable:
            made = self.object(atom)
            if made is None or is_loader(self, made):
                if made is None:
                    return False
                continue
            fields = (n for n in list(self.heap.fields.get(made.number, ())) if isinstance(n, str) and n.startswith("source"))
            inner = [held for n in fields if (held := self.heap.read((made.number, n)))]
            if not (made.kind == "bar" or made.name in ONE_BY_ONE) or not inner or not all(map(self._as_they_come, inner)):
                return False
        return True
