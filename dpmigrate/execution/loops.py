"""Loops: turns until nothing changes."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.branches import BranchParts
from dpmigrate.execution.heap import Delta
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LENGTH
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Data,
    Origin,
    Value,
)
from dpmigrate.execution.widening import counted, widened

#: turns of a loop, after which what still changes is not understood
TURNS = 4
#: literal sequences up to this length are gone through one by one
UNROLLED = 6


class LoopParts(BranchParts):
    """``for`` and ``while``."""

    def _for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
        iterable = self.evaluate(node.iter, frame)
        if not iterable:
            return False
        known = self.known_elements(iterable, UNROLLED)
        generator = self._generator(iterable)
        parted = self._trips(iterable, node)
        self.event("loop", node, frame, iterable=iterable)
        if known is not None:
            return self._loop(node, frame, known=known)
        if generator is not None:
            return self._loop_over(node, generator, frame)

        def take() -> bool:
            element = self.elements(iterable, node.iter, frame)
            self.assign(node.target, element or SETTING, node, frame)
            return True

        return self._loop(node, frame, take=take, parted=parted)

    def _generator(self, iterable: Value) -> object | None:
        """The generator of the program that a loop goes through."""
        if len(iterable) == 1:
            made = self.object(iterable[0])
            if made is not None and made.kind == "generator":
                return made
        return None

    def _trips(self, iterable: Value, node: ast.For | ast.AsyncFor) -> Parting | None:
        """Why the ranks may go through different numbers of turns."""
        for atom in iterable:
            made = self.object(atom)
            if made is not None:
                count = self.heap.read((made.number, LENGTH))
                parted = self.parting(count, node) if count else None
            elif isinstance(atom, Data) and atom.placement.kind is Kind.ROWS:
                ragged = atom.placement.ragged
                parted = Parting(atom.origin or Origin(node, "rows"), True) if ragged else None
            else:
                parted = self.parting((atom,), node)
            if parted is not None:
                return parted
        return None

    def _while(self, node: ast.While, frame: Frame) -> bool:
        return self._loop(node, frame)

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, *,
        known: list[Value] | None = None, take: Callable[[], bool] | None = None,
        parted: Parting | None = None,
    ) -> bool:  # fmt: skip
        """Turns of a loop until nothing changes; literal sequences item by item."""
        outer = (frame.breaks, frame.continues)
        frame.breaks = []
        slot = len(self.control)
        self.control += [parted, None]
        self.heap.mark()
        level = self.heap.level
        frame.loops.append((level, level, slot))
        alive, endless = True, False
        try:
            turns = known if known is not None else [NOTHING] * (TURNS + 1)
            for turn, element in enumerate(turns):
                if known is None:
                    frame.breaks = []
                frame.continues = []
                if isinstance(node, ast.While):
                    test = self.evaluate(node.test, frame)
                    truth = self.truth(test)
                    if truth is False or not test:
                        alive = bool(test)
                        break
                    endless = truth is True
                    doubt = self.parting(test, node.test)
                    if doubt is not None:
                        self._mark(slot, doubt)
                    self.event("branch", node, frame, test=test)
                changed = self._turn(node, frame, turn, element, known, take)
                if changed is None:
                    alive = known is None  # no turn ends; without any the loop is passed by
                    break
                if known is None and not changed:
                    break
        finally:
            frame.loops.pop()
            reason = self.control[slot]
            del self.control[slot:]
            breaks, (frame.breaks, frame.continues) = frame.breaks, outer
            delta = self.heap.rollback()
        outcomes: list[Delta] = []
        if alive and not endless:
            outcomes += self._otherwise(node, delta, frame)
        outcomes += breaks
        self.heap.apply(outcomes, self.merging(reason))
        return bool(outcomes)

    def _otherwise(
        self, node: ast.For | ast.AsyncFor | ast.While, delta: Delta, frame: Frame
    ) -> list[Delta]:
        """What the loop leaves where it ends by itself, after its ``else``."""
        if not node.orelse:
            return [delta]
        self.heap.mark()
        self.heap.apply([delta])
        alive = self.block(node.orelse, frame)
        after = self.heap.rollback()
        return [after] if alive else []

    def _turn(
        self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, turn: int, element: Value,
        known: list[Value] | None, take: Callable[[], bool] | None,
    ) -> bool | None:  # fmt: skip
        """One turn; whether it changed anything, None where none comes to its end."""
        level, _, slot = frame.loops[-1]
        self.heap.mark()
        frame.loops[-1] = (level, self.heap.level, slot)
        if isinstance(node, ast.While):
            self.refine(node.test, True, frame)
        elif known is not None:
            self.assign(node.target, element, node, frame)
        elif take is not None:
            take()
        ends = self.block(node.body, frame)
        delta = self.heap.rollback()
        reason = self.control[slot + 1]
        self.control[slot + 1] = None
        outcomes = [*([delta] if ends else []), *frame.continues]
        if not outcomes:
            return None
        if known is not None:
            return self.heap.apply(outcomes, self.merging(reason))
        if reason is not None:
            self.heap.mark()
            self.heap.apply(outcomes, self.merging(reason))
            outcomes = [self.heap.rollback()]
        parted = self.control[slot]
        widen = counted if turn < TURNS - 1 else lambda v: widened(v, node)
        merged = self.merging(parted)
        if merged is None:
            return self.heap.apply([*outcomes, {}], widen)
        return self.heap.apply([*outcomes, {}], lambda v: widen(merged(v)))

    def _loop_over(self, node: ast.For | ast.AsyncFor, generator: object, frame: Frame) -> bool:
        """A loop over a generator of the program: its body runs where the generator yields."""
        outer = (frame.breaks, frame.continues)
        frame.breaks, frame.continues = [], []
        slot = len(self.control)
        self.control += [None, None]
        self.heap.mark()
        level = self.heap.level
        frame.loops.append((level, level, slot))

        def consume(given: Value) -> bool:
            self.heap.mark()
            frame.loops[-1] = (level, self.heap.level, slot)
            frame.continues = []
            self.assign(node.target, given or SETTING, node, frame)
            ends = self.block(node.body, frame)
            delta = self.heap.rollback()
            outcomes = [*([delta] if ends else []), *frame.continues]
            self.heap.apply(outcomes, self.merging(self.control[slot + 1]))
            return bool(outcomes)

        try:
            self.generate(generator, consume, node, frame)  # type: ignore[arg-type]
        finally:
            frame.loops.pop()
            reason = self.control[slot]
            del self.control[slot:]
            breaks, (frame.breaks, frame.continues) = frame.breaks, outer
            delta = self.heap.rollback()
        outcomes = [*self._otherwise(node, delta, frame), *breaks]
        self.heap.apply(outcomes, self.merging(reason))
        return bool(outcomes)

    def _break(self, node: ast.Break, frame: Frame) -> bool:
        if frame.loops:
            frame.breaks.append(self.heap.since(frame.loops[-1][0] - 1))
        return False

    def _continue(self, node: ast.Continue, frame: Frame) -> bool:
        if frame.loops:
            frame.continues.append(self.heap.since(frame.loops[-1][1] - 1))
        return False
