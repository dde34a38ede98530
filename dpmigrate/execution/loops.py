"""``for`` and ``while``: what a loop goes over, and whether it has a turn for certain."""

from __future__ import annotations

import ast
import math
from dataclasses import replace

from dpmigrate.execution import divergence, going, placements, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.containers import TAKEN
from dpmigrate.execution.machine import PROCESS, Frame, Going
from dpmigrate.execution.names import LISTED, SOME
from dpmigrate.execution.objects import LENGTH, Delta, Location, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.turns import TurnParts
from dpmigrate.execution.values import (
    ONE_SAMPLE,
    SETTING,
    Const,
    Data,
    Origin,
    Value,
    placement_of,
    value,
)

#: literal sequences up to this length are gone through one by one
UNROLLED = 6
#: loops over numbers inside of each other, up to this many turns of the innermost
UNROLLED_TOGETHER = 16
#: and up to this one where each turn sets an attribute whose name it computes
UNROLLED_NAMES = 128


class LoopParts(TurnParts):
    """``for`` and ``while``."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: the iterators of which the first element is taken
        self.fresh: frozenset[int] = frozenset()
        #: whether the turns of a loop set attributes by computed names
        self._setting: dict[ast.AST, bool] = {}
        #: the nodes of what loops go through
        self._within: dict[ast.AST, frozenset[ast.AST]] = {}

    def _for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
        iterable = self.evaluate(node.iter, frame)
        if not iterable:
            return False
        return self.go_over(node, iterable, frame)

    def go_over(self, node: ast.For | ast.AsyncFor, iterable: Value, frame: Frame) -> bool:
        """The turns of a ``for`` loop over something."""
        iterable = self._iterator(iterable, node, frame)
        known = self._one_by_one(node, iterable, frame)
        generator = self._generator(iterable)
        parted = self.trips(iterable, node)
        if known is None and parted is None and samples.through(self, iterable):
            parted = Parting(Origin(node, ONE_SAMPLE), True, turns=True, samples=True)
        self.event("loop", node, frame, iterable=iterable)
        self.library.begun(self, iterable, node.iter, frame)
        turns = len(known) if known else 1
        loop = Going(node.target, iterable, self.heap.level + 1, frame.number, node.body, turns=turns)
        self.going.append(loop)
        try:
            if known is not None:
                return self._loop(node, frame, known=known)
            if generator is not None:
                return self._loop_over(node, generator, frame)
            return self._through(iterable, node, frame, parted)
        finally:
            self.going.pop()
            going.ended(self, loop)

    def _one_by_one(
        self, node: ast.For | ast.AsyncFor, iterable: Value, frame: Frame
    ) -> list[Value] | None:
        """What a loop goes through, where each turn is executed by itself."""
        if self._sets_names(node):
            return self.known_elements(iterable, UNROLLED_NAMES)
        known = self.known_elements(iterable, LISTED)
        if known is None or (len(known) <= UNROLLED and not self._too_many(known)):
            return known
        return known if going.chooses_layers(self, node, known, frame) else None

    def _too_many(self, known: list[Value]) -> bool:
        """Whether a loop over numbers is one of several inside of each other, as those of a search
        for the best settings, which have many turns together.
        """
        together = len(known) * math.prod(g.turns for g in self.going)
        return together > UNROLLED_TOGETHER and all(
            isinstance(a, Const) and not isinstance(a.value, str | None) for v in known for a in v
        )

    def _sets_names(self, node: ast.For | ast.AsyncFor) -> bool:
        """Whether the turns of a loop set attributes by computed names and do little else: taken
        together, each attribute would hold what any of them is given.
        """
        known = self._setting.get(node)
        if known is None:
            known = self._setting[node] = self._finds_names(node)
        return known

    def _finds_names(self, node: ast.For | ast.AsyncFor) -> bool:
        within = [n for s in node.body for n in ast.walk(s)]
        called = [n.func for n in within if isinstance(n, ast.Call)]
        sets = any(
            f.id == "setattr" if isinstance(f, ast.Name)
            else isinstance(f, ast.Attribute) and self.library.sets_attribute(f.attr)
            for f in called
        )  # fmt: skip
        return sets and not any(isinstance(n, ast.For | ast.AsyncFor | ast.While) for n in within)

    def _through(
        self, iterable: Value, node: ast.For | ast.AsyncFor, frame: Frame, parted: Parting | None
    ) -> bool:
        """A loop over what is not known one by one."""
        of_samples = parted is not None and parted.samples
        # the first turn of a loop over samples is one like the others
        fresh = frozenset() if of_samples else self._fresh(iterable, node.iter)

        def take(turn: int) -> Value:
            before, self.fresh = self.fresh, fresh if turn == 0 else frozenset()
            self._asks("loop" if turn else "begins")
            self.later = turn > 0
            element = self.elements(iterable, node.iter, frame)
            self.asking, self.later, self.fresh = "", False, before
            if self.ended_by is not None:  # as if they had left it by ``break``
                self._mark(frame.loops[-1][2], self.ended_by)
                self.ended_by = None
            return (samples.element(self, element, node.iter) if of_samples else element) or SETTING

        sure = (of_samples and samples.some(self, iterable)) or self._has_turns(iterable)
        passed: Delta | None = None if sure else {}
        return self._loop(node, frame, take=take, parted=parted, passed=passed)

    def _asks(self, who: str) -> None:
        """The next element is asked for."""
        self.asking, self.ended_by = who, None

    def _fresh(self, iterable: Value, begun: ast.expr) -> frozenset[int]:
        """The iterators that a loop goes through and that are made for it: they begin with it."""
        found: set[int] = set()
        within = self._within.get(begun)
        if within is None:
            within = self._within[begun] = frozenset(ast.walk(begun))
        for made in self.objects(iterable):
            if made.node in within and len(iterable) == 1:
                found.add(made.number)
                for name in list(self.heap.fields.get(made.number, ())):
                    held = self.heap.read((made.number, name))
                    if isinstance(name, str) and name.startswith("source") and held:
                        found |= self._fresh(held, begun)
        return frozenset(found)

    def _has_turns(self, iterable: Value) -> bool:
        """Whether a loop has a turn for certain: by a constant length, or as a library says."""
        found = self.objects(iterable)
        return len(found) == len(iterable) and all(map(self._has_turn, found))

    def _has_turn(self, made: Object) -> bool:
        n = self.heap.read((made.number, LENGTH))
        known = n and len(n) == 1 and isinstance(n[0], Const) and n[0].value not in (0, None)
        return bool(known or self.heap.read((made.number, SOME)))

    def _iterator(self, iterable: Value, node: ast.For | ast.AsyncFor, frame: Frame) -> Value:
        """Of an instance whose ``__iter__`` is a generator, that generator."""
        made = self.object(iterable[0]) if len(iterable) == 1 else None
        method = self.method_of(made, "__iter__") if made is not None else None
        if method is None or not self.heap.objects[method.function].extra.names.generator:
            return iterable
        return self.call(value(method), Arguments(), node.iter, frame)

    def _generator(self, iterable: Value) -> Object | None:
        """The generator of the program that a loop goes through."""
        if len(iterable) == 1:
            made = self.object(iterable[0])
            if made is not None and made.kind == "generator":
                return made
        return None

    def trips(self, iterable: Value, node: ast.AST) -> Parting | None:
        """Why the ranks may go through different numbers of turns."""
        for atom in iterable:
            made = self.object(atom)
            if made is not None:
                count = self.count(made)
                parted = (self.parting(count, node) or divergence.by_padding(count, node)) if count else None
                if parted is not None and placement_of(count) == placements.SUM:
                    parted = replace(parted, turns=True, in_turn=False)
            elif isinstance(atom, Data) and atom.placement.kind is Kind.ROWS:
                if atom.placement.ragged:
                    parted = Parting(atom.origin or Origin(node, "rows"), True)
                else:  # it goes over another axis than that of the samples
                    padded = atom.placement.padded and atom.placement.axis
                    parted = Parting(Origin(node, divergence.PADDING), True, padding=True) if padded else None
            else:
                parted = self.parting((atom,), node)
            if parted is not None:
                return parted
        return None

    def _while(self, node: ast.While, frame: Frame) -> bool:
        return self._loop(node, frame)

    def _loop_over(self, node: ast.For | ast.AsyncFor, generator: Object, frame: Frame) -> bool:
        """A loop over a generator of the program: its body runs where the generator yields."""
        outer = (frame.breaks, frame.continues)
        frame.breaks, frame.continues = [], []
        slot = len(self.control)
        taken = self.heap.read((generator.number, TAKEN))  # which items are left is not known
        self.control += [self.parting(taken, node) if taken else None, None]
        watch = self.heap.watch() if taken else {}
        self.heap.mark()
        level = self.heap.level
        frame.loops.append((level, level, slot))

        def consume(given: Value) -> bool:
            self.heap.mark()
            frame.loops[-1] = (level, self.heap.level, slot)
            frame.continues = []
            self.control[slot + 1] = None
            self.assign(node.target, given or SETTING, node, frame)
            before = (len(frame.returns), len(frame.breaks), 0)
            ends = self.block(node.body, frame)
            # the generator has come here on some ranks alone
            some = (p for p in self.control[slot + 2 :] if p is not None and not p.alike)
            self.left_by_some(before, next(some, None), frame)
            delta = self.heap.rollback()
            outcomes = [*([delta] if ends else []), *frame.continues]
            self.heap.apply(outcomes, self.merging(self.control[slot + 1]))
            self.control[slot + 1] = None
            return bool(outcomes)

        returns = len(frame.returns)
        modes = self._modes()
        try:
            ended = self.generate(generator, consume, node, frame)
        finally:
            frame.loops.pop()
            reason = self.control[slot]
            del self.control[slot:]
            breaks, (frame.breaks, frame.continues) = frame.breaks, outer
            delta = self.heap.rollback()
        # a generator that is left at a yield is closed, which ends what it has entered
        for left in (*breaks, *(d for _, d in frame.returns[returns:])):
            left.update({at: v for at, v in modes.items() if at in left})
        outcomes = [*self._otherwise(node, [delta] if ended else [], frame, reason, reason if breaks else None), *breaks]
        if taken:
            self.interrupted(self.heap.watched(watch))
            return True
        self.heap.apply(outcomes, self.merging(reason))
        return bool(outcomes)

    def _modes(self) -> dict[Location, Value | None]:
        """The modes of the process, which ``with`` changes."""
        names = self.heap.fields.get(PROCESS, {})
        return {
            (PROCESS, n): self.heap.read((PROCESS, n))
            for n in names
            if isinstance(n, str) and n.startswith("mode ")
        }
