"""The turns of a loop: the first one, then others until nothing changes.

The first turn is executed by itself: what it binds is bound in those after it, and a counter has
its first value there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution import divergence, samples
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.matching import MatchParts
from dpmigrate.execution.objects import Delta
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NOTHING,
    Const,
    Value,
)
from dpmigrate.execution.widening import ROUNDS, widening

#: texts of which a turn takes one or another, each looked at by itself
CASES = 4


class TurnParts(MatchParts):
    """What a loop does in its turns, whatever it goes over."""

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, *,
        known: list[Value] | None = None, take: Callable[[int], Value] | None = None,
        parted: Parting | None = None, passed: Delta | None = None,
    ) -> bool:  # fmt: skip
        """Turns of a loop until nothing changes; literal sequences item by item.

        ``passed`` is what the loop leaves where it has no turn; None where it has one.
        """
        outer = (frame.breaks, frame.continues)
        frame.breaks = []
        slot = len(self.control)
        self.control += [parted, None]
        self.heap.mark()
        level = self.heap.level
        if parted is not None and parted.samples:
            self.over_samples, self.samples_since = slot, level
        frame.loops.append((level, level, slot))
        alive, endless = True, False
        returned = len(frame.returns)
        taken, left = 0, 0  # turns that came to their end, and breaks of the first
        tested: Delta = {}  # what the test of a while loop writes
        finished = False
        try:
            turns = known if known is not None else [NOTHING] * ROUNDS
            for turn, element in enumerate(turns):
                if known is None:
                    left = len(frame.breaks) if turn == 1 else left
                    del frame.breaks[left:]
                frame.continues = []
                if isinstance(node, ast.While):
                    self.heap.mark()
                    test = self.condition(self.evaluate(node.test, frame), node.test, frame)
                    tested = self.heap.rollback()
                    truth = self.truth(test)
                    if turn == 0 and test and truth is not True:
                        passed = tested
                    endless = truth is True
                    if truth is False or not test:
                        alive = bool(test)
                        break
                    doubt = self.parting(test, node.test) or divergence.by_padding(test, node)
                    if doubt is not None:
                        self._mark(slot, doubt)
                    self.event("branch", node, frame, test=test)
                together = self._together(slot)
                changed = self._turn(node, frame, turn, element, known, take, tested)
                if not isinstance(node, ast.While) and (known is None or turn < len(known) - 1):
                    self.going[-1].left |= len(frame.breaks) + len(frame.returns) > returned
                if changed is None:
                    alive = known is None  # no turn ends: those before it do
                    break
                taken += 1
                if together and not self._together(slot):
                    continue  # some ranks have left: the next turn is taken by the others alone
                if known is None and turn and not changed:
                    break
            else:
                if known is None:
                    self.unsettled()
            self.heap.apply([tested])
            finished = True
        finally:
            frame.loops.pop()
            if self.over_samples == slot:
                self.over_samples = None
            reason = self.control[slot]
            del self.control[slot:]
            breaks, (frame.breaks, frame.continues) = frame.breaks, outer
            if not finished:
                self.heap.rollback()
        ends: list[Delta] = []
        comes_out = alive and not endless and (taken > 0 or known is not None)
        if comes_out and passed is None and not breaks and not node.orelse:
            self.heap.adopt()
            return True
        delta = self.heap.rollback()
        if comes_out:
            ends.append(delta)
        if passed is not None:
            ends.append(passed)
        left_by = reason if breaks else None  # the others do not come to the end
        outcomes = [*self._otherwise(node, ends, frame, reason, left_by), *breaks]
        self.endless = self.endless or (endless and taken > 0 and not outcomes)
        sums = parted is None or not parted.samples
        self.heap.apply(outcomes or self.last(delta), self.merging_turns(reason, sums=sums))
        return bool(outcomes)

    def _together(self, slot: int) -> bool:
        """Whether no rank has left a loop before the others."""
        reason = self.control[slot]
        return reason is None or reason.alike

    def merging_turns(
        self, parted: Parting | None, *, sums: bool = True
    ) -> Callable[[Value], Value] | None:
        """What becomes of values of a loop with another number of turns on each rank: ``sums`` of
        the rank's part stay what they are, but for those of some of its samples.
        """
        if parted is None:
            return None
        return lambda v: divergence.differing(v, parted, keep_sums=sums)

    def _otherwise(
        self, node: ast.For | ast.AsyncFor | ast.While, ends: list[Delta], frame: Frame,
        reason: Parting | None, left_by: Parting | None,
    ) -> list[Delta]:  # fmt: skip
        """What the loop leaves where it ends by itself, after its ``else``, to which some ranks do
        not come where they have left it.
        """
        if not node.orelse or not ends:
            return ends
        self.heap.mark()
        self.heap.apply(ends, self.merging_turns(reason))
        self.control.append(left_by)
        alive = self.block(node.orelse, frame)
        self.control.pop()
        after = self.heap.rollback()
        return [after] if alive else []

    def _turn(
        self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, turn: int, element: Value,
        known: list[Value] | None, take: Callable[[int], Value] | None, tested: Delta,
    ) -> bool | None:  # fmt: skip
        """One turn; whether it changed anything, None where none comes to its end."""
        outside = frame.context
        if known is not None:
            frame.context = self.turn_context(node, turn, frame)
        try:
            return self._one_turn(node, frame, turn, element, known, take, tested)
        finally:
            frame.context = outside

    def _one_turn(
        self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame, turn: int, element: Value,
        known: list[Value] | None, take: Callable[[int], Value] | None, tested: Delta,
    ) -> bool | None:  # fmt: skip
        level, _, slot = frame.loops[-1]
        self.heap.mark()
        frame.loops[-1] = (level, self.heap.level, slot)
        reason, of_samples = self.control[slot], self.over_samples == slot
        own = of_samples or (reason is not None and reason.turns)
        if own:
            self.turns.append(self.heap.level)
        if isinstance(node, ast.While):
            self.heap.apply([tested])
            self.refine(node.test, True, frame)
            ends = self.block(node.body, frame)
        else:
            given = element if take is None else take(turn)
            ends = self._case_by_case(node, given, frame)
        if own:
            self.turns.pop()
        reason = self.control[slot + 1]
        if ends and not frame.continues and not of_samples and (known is not None or turn == 0):
            self.control[slot + 1] = None
            return self.heap.adopt()[1]
        delta = self.heap.rollback()
        self.control[slot + 1] = None
        outcomes = [*([delta] if ends else []), *frame.continues]
        if of_samples:
            outcomes = samples.ended(self, outcomes)
        if not outcomes:
            return None
        if known is not None or turn == 0:
            return self.heap.apply(outcomes, self.merging(reason))
        if reason is not None:
            self.heap.mark()
            self.heap.apply(outcomes, self.merging(reason))
            outcomes = [self.heap.rollback()]
        return self._settle([{}, *outcomes], turn, self.control[slot], node)

    def _case_by_case(self, node: ast.For | ast.AsyncFor, given: Value, frame: Frame) -> bool:
        """The body for what a turn takes; for each of a few texts by itself, since a phase decides
        over what a turn goes and what it does there. Whether it comes to its end.
        """
        words = all(isinstance(a, Const) and a.type == "str" for a in given)
        if not words or not 1 < len(given) <= CASES or not isinstance(node.target, ast.Name):
            self.assign(node.target, given, node, frame)
            return self.block(node.body, frame)
        outside, outcomes = frame.context, []
        for number, atom in enumerate(given):
            frame.context = self.turn_context(node, number, frame)
            self.heap.mark()
            self.assign(node.target, (atom,), node, frame)
            ends = self.block(node.body, frame)
            delta = self.heap.rollback()
            outcomes += [delta] if ends else []
            frame.context = outside
        self.heap.apply(outcomes)
        return bool(outcomes)

    def repeat(self, turn: Callable[[], bool], node: ast.AST, parted: Parting | None) -> bool:
        """Turns without ``break`` until nothing changes; whether one of them comes to its end."""
        self.control.append(parted)
        alive = True
        for n in range(ROUNDS):
            self.heap.mark()
            alive = turn()
            delta = self.heap.rollback()
            if not alive or not self._settle([delta, {}], n, parted, node):
                break
        else:
            self.unsettled()
        self.control.pop()
        return alive

    def _settle(
        self, outcomes: list[Delta], turn: int, parted: Parting | None, node: ast.AST
    ) -> bool:
        """Join what a turn leaves with what was; whether that changes anything."""
        sums = parted is None or parted.turns or self.over_samples is None
        return self.heap.apply(outcomes, self.merging_turns(parted, sums=sums), widening(turn, node))

    def _break(self, node: ast.Break, frame: Frame) -> bool:
        if frame.loops:
            frame.breaks.append(self.heap.since(frame.loops[-1][0] - 1))
        return False

    def _continue(self, node: ast.Continue, frame: Frame) -> bool:
        if frame.loops:
            frame.continues.append(self.heap.since(frame.loops[-1][1] - 1))
        return False
