"""An execution that says of draws whether all ranks draw the same numbers in training."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Bound, Value, const, data, known
from dpmigrate.judge.cached import last_name
from dpmigrate.judge.notes import BEGUN, DOWN, GIVEN_SAMPLES, GROUP, OWN_IN_TRAINING, SHARE, UP
from dpmigrate.judge.telling import Telling
from dpmigrate.library.batches import divided
from dpmigrate.library.sites import GRAD
from dpmigrate.library.streams import GENERATOR, OWN, SEEDED


class Drawing(Telling):
    """An execution in which draws say whether all ranks draw the same numbers in training.

    That is put together where they draw: events that happen on several ways join their values.
    """

    #: functions that libraries call for each sample, while they are called
    of_samples: frozenset[ast.AST] = frozenset()

    def _draws_alike(self, values: Mapping[str, Value]) -> bool:
        """Whether a draw, or a layer that drops, gives the same numbers on all ranks in training."""
        if not self.heap.holds(BEGUN, const(True)[0]):
            return False
        trains = self.heap.read(GRAD) != const(False)  # an evaluation may draw the same
        if "training" in values and not (trains and const(True)[0] in values["training"]):
            return False
        stream = str(known(values.get("stream", const("torch"))))
        if stream == GENERATOR:
            return trains and values.get("same") == const(True)
        own = self.heap.read(OWN[stream]) or const(False)
        return const(False)[0] in own or (trains and SEEDED[0] in own)

    def _for_samples(self, made: Value, over: Value) -> bool:
        """Whether numbers are drawn for the samples of a batch: as many as these, or several while the
        rank goes through its own batches. A single number may be for all samples together.
        """
        drawn = data(made)
        if any(d.placement.kind is Kind.ROWS for d in drawn):
            return True
        own = any(o.name == SHARE or divided(self, o) for o in self.objects(over))
        return own and any(d.kind != "number" and d.axes != 0 for d in drawn)

    def _in_sample(self) -> bool:
        """Whether a data set is being asked for a sample, or one is transformed."""
        names = {getattr(f, "name", "") for f in self.under_way()}
        return "__getitem__" in names or bool(self.of_samples & set(self.under_way()))

    def call_back(self) -> None:
        """Workers, transforms, hooks and handlers are called while the program trains: the group is
        up then, and the ranks draw as they do in training.
        """
        before = {at: self.heap.read(at) for at in (GROUP, *OWN.values())}
        if before[GROUP] == DOWN:
            self.heap.write(GROUP, UP)
        for stream, at in OWN_IN_TRAINING.items():
            if own := self.heap.read(at):
                self.heap.write(OWN[stream], own)
        self.of_samples = frozenset(self._transforms())
        super().call_back()
        for at, held in before.items():
            if held:
                self.heap.write(at, held)

    def _transforms(self) -> Iterator[ast.AST]:
        """The functions and the ``__call__`` of objects that libraries have for the samples."""
        for atom, node in (*self.handed.items(), *self._special()):
            number = atom.function if isinstance(atom, Bound) else getattr(atom, "object", None)
            made = self.heap.objects[number] if number is not None else None
            named = {k.arg for k in getattr(node, "keywords", ())} | {last_name(getattr(node, "func", None))}
            if made is not None and (made.name == "__call__" or named & set(GIVEN_SAMPLES)):
                yield made.extra.node
