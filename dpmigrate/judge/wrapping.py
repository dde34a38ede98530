"""An execution that follows models and their wrappers: moves, frozen layers, passes."""

from __future__ import annotations

import ast

from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import NOTHING, Atom, Const, Foreign, Ref, Value, const, data, value
from dpmigrate.judge import overtaken
from dpmigrate.judge.batch_norms import layers, observing
from dpmigrate.judge.notes import (
    AT_WRAP,
    AWAY,
    FRESH,
    FROZEN,
    LATE,
    MOVED,
    PASSED,
    STATISTICS,
    SYNCHRONISED,
    USED,
    wrappers,
)
from dpmigrate.judge.unscaling import Unscaling
from dpmigrate.library.module_tree import owned


def _is_type(atom: Atom) -> bool:
    """Whether it is a type of numbers and no device: ``model.to(torch.bfloat16)``."""
    return isinstance(atom, Foreign) and atom.name.startswith("torch.") and "." not in atom.name[6:]


class Wrapping(Unscaling):
    """Models and their wrappers, as they are moved, frozen, called and differentiated."""

    #: whether all that is called may be is of one kind: a wrapper, and not the bare model as well
    sole = True

    def _wrapped(self, wrapper: Value, model: Value) -> None:
        """Keeps which layers are frozen when DDP looks for parameters that get gradients: none
        where it is shown all of them (``thaws``).
        """
        if any(self.heap.read((w.number, "thaws")) == const(True) for w in self.objects(wrapper)):
            return
        for made in self.objects(model):
            for number in owned(self, made.number):
                frozen = self.heap.read((number, FROZEN))
                self.heap.write((number, AT_WRAP), frozen or const(False))

    def _moved(self, model: Value, place: Value, node: ast.AST, frame: Frame) -> None:
        """A model is moved; a wrapper whose model was not moved before is told."""
        if place and all(_is_type(a) for a in place):
            return
        if place == const("cpu"):
            parts = {n for made in self.objects(model) for n in owned(self, made.number)}
            if any(self._held(n, MOVED) for n in parts):
                mark = self.heap.new("mark", "move", node, frame.context, key="away")
                for number in wrappers(self):
                    if parts & {number, *owned(self, number)}:
                        self.heap.widen((number, AWAY), value(Ref(mark.number)))
            return
        for made in self.objects(model):
            parts = owned(self, made.number)
            inner = self.objects(self.heap.read((made.number, "module")) or NOTHING)
            # of what is not seen it is known alone that it was what a move gave: by an object of unseen code, or what it computes
            moved = any(self._held(n, MOVED) for n in (*parts, *(o.number for o in inner)))
            given = any(o.kind in ("opaque", "any") and o.name.rpartition(".")[2] in ("to", "cuda") for o in inner)
            before = not inner or moved or given
            if self.sole and made.name in SYNCHRONISED and not before:
                super().event("judge moved", node, frame, wrapper=model)
            for number in parts:
                self.heap.write((number, MOVED), const(True))

    def _wanted(self, target: Value, flag: Value, node: ast.AST, frame: Frame) -> None:
        """Layers are frozen, or get gradients again: noted, and whether they are wrapped then."""
        tops = {o.number for o in self.objects(target)} | {n for d in data(target) for n in d.reached}
        for number in sorted({n for top in tops for n in owned(self, top)}):
            at_wrap = self.heap.read((number, AT_WRAP))
            if at_wrap and flag != const(False):
                super().event("judge thawed", node, frame, at_wrap=at_wrap)
            frozen = join(const(True), const(False)) if flag not in (const(True), const(False)) else const(flag == const(False))
            self.heap.write((number, FROZEN), frozen)

    def _updated(self, wrapper: Object, training: Value) -> None:
        """A forward of a wrapper: what BatchNorm keeps is rank 0's, and then each rank's own where
        it trains.
        """
        own = training == const(True) and self.heap.read((wrapper.number, "sync_bn")) is None
        known = {k for _, k in layers(self, {wrapper.number})} if own else set()
        if training == const(True) and observing(self, {wrapper.number}):
            known.add(True)
        # of a model whose code is not seen it may be so
        kept = const(True in known) if known != {False} else join(const(True), const(False))
        self.heap.write((wrapper.number, STATISTICS), kept)

    def _differentiated(self, loss: Value, node: ast.AST, frame: Frame) -> None:
        """Notes of each wrapper, by its number, that a backward goes through whether another one
        did before.
        """
        through = {n for d in data(loss) for n in d.reached}
        through_wrappers = sorted(n for n in through if self.heap.objects[n].name in SYNCHRONISED)
        passed = {str(n): self.heap.read((n, PASSED)) or FRESH for n in through_wrappers}
        super().event("judge backward", node, frame, **passed)
        for number in through_wrappers:
            for mark in self.objects(self.heap.read((number, AWAY)) or NOTHING):
                assert mark.node is not None
                super().event("judge away", mark.node, frame, wrapper=value(Ref(number)))
            self.heap.write((number, PASSED), USED)
            overtaken.differentiated(self, number)
            seen = [n for n in sorted(owned(self, number)) if self._held(n, AT_WRAP) == {False}]
            late = [n for n in seen if self._held(n, FROZEN) == {True}]
            # where all are frozen DDP waits for none
            for part in late if len(late) < len(seen) else ():
                self.heap.widen((part, LATE), const(True))

    def _held(self, number: int, field: str) -> set[object]:
        """The constants in a field of an object."""
        return {a.value for a in self.heap.read((number, field)) or () if isinstance(a, Const)}
