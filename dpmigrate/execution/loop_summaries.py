"""Loops that are come to again with all that they read as it was, and what they did then.

A loop round others has turns until nothing changes. What its later turns change is often nothing that
an inner loop reads: that does then what it did before, and is not executed once more. Without this
the cost of loops inside of each other is the product of their turns.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.activations import Summary
from dpmigrate.execution.control import Raised
from dpmigrate.execution.loops import LoopParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.values import NOTHING

#: summaries of one loop in one context
SUMMARIES = 4
#: no frame: the variables of the function whose loop it is are read and written as all else
_NO_FRAME = 0


class LoopSummaryParts(LoopParts):
    """A loop is executed once for each context, and again where what it read has changed."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._loop_summaries: dict[object, list[Summary]] = {}

    def _for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
        return self._once(node, frame, lambda: super(LoopSummaryParts, self)._for(node, frame))

    def _while(self, node: ast.While, frame: Frame) -> bool:
        return self._once(node, frame, lambda: super(LoopSummaryParts, self)._while(node, frame))

    def _once(self, node: ast.stmt, frame: Frame, run: Callable[[], bool]) -> bool:
        """Execute a loop, or do what it did where it read the same; whether it comes to its end.

        One that is the outermost of its function is not looked up: its function has a summary.
        """
        if not frame.loops or self.turns:
            return run()
        key = (id(node), frame.context, frame.number, self.regime, self.heap.variant)
        if self._did(key):
            return True
        ways = self._ways_out(frame)
        alive, summary = self._summary_of(run)
        if alive and ways == self._ways_out(frame) and not self.under_assumption:
            held = self._loop_summaries.setdefault(key, [])
            held[:] = [summary, *held[: SUMMARIES - 1]]
        return alive

    def _ways_out(self, frame: Frame) -> tuple[object, ...]:
        """What a loop that only comes to its end leaves as it is."""
        ways = (len(frame.returns), len(frame.breaks), len(frame.continues))
        return (*ways, self.endless, tuple(self.control))

    def _did(self, key: object) -> bool:
        """Whether there is a summary that holds here, which is carried out then."""
        return self.done_again(self._loop_summaries.get(key, ())) is not None

    def _summary_of(self, run: Callable[[], bool]) -> tuple[bool, Summary]:
        heap = self.heap
        heap.reading()
        heap.mark()
        raised: dict[Raised, None] = {}
        self.leaving.append((len(self.control), raised))
        finished = False
        try:
            alive = run()
            finished = True
        finally:
            self.leaving.pop()
            if not finished:
                heap.rollback()
        places, _ = heap.adopt()
        writes = {at: heap.read(at) for at in places}
        made = heap.made_since()
        reads = heap.read_since(_NO_FRAME)
        return alive, Summary(reads, writes, NOTHING, made, tuple(raised))
