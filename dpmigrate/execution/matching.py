"""``match``: patterns tried one after the other (PEP 634, https://peps.python.org/pep-0634/)."""

from __future__ import annotations

import ast

from dpmigrate.execution.branches import Chain
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.patterns import Capture, PatternParts
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import NOTHING, Value, const


class MatchParts(PatternParts):
    """``match`` and its cases."""

    def _match(self, node: ast.Match, frame: Frame) -> bool:
        subject = self.evaluate(node.subject, frame)
        return self._cases(node, 0, subject, frame) if subject else False

    def _cases(
        self, node: ast.Match, index: int, subject: Value, frame: Frame, chain: Chain | None = None
    ) -> bool:
        """The cases from one on; the next ones are tried where this one does not match.

        The names of a pattern are bound where all of it fits, before its guard is asked.
        """
        if index == len(node.cases):
            return True
        case = node.cases[index]
        found = Capture()
        answer = self.fits(case.pattern, subject, found, frame)
        if answer is False:
            return self._cases(node, index + 1, subject, frame, chain)
        chosen = self._doubt(found.asked, case.pattern) if answer is None else None
        self.heap.mark()
        tested = self._captured(case, found, frame)
        truth = self.truth(tested) if case.guard is not None else True
        guarded = self.parting(tested, case.guard) if case.guard is not None else None
        entered = self.heap.rollback()
        if not tested:
            return False
        if answer is True and truth is True:
            self.heap.apply([entered])
            return self.block(case.body, frame)

        def inside() -> bool:
            self.heap.apply([entered])
            if case.guard is not None:
                self.refine(case.guard, True, frame)
            return self.block(case.body, frame)

        def as_entered() -> bool:
            self.heap.apply([entered])
            return True

        def outside(chain: Chain | None) -> bool:
            if case.guard is not None and truth is not True:
                if answer is True:
                    as_entered()
                else:  # the guard says no, or nothing is bound
                    self.branch([as_entered, lambda: True], chosen)
            return self._cases(node, index + 1, subject, frame, chain)

        if truth is False:
            return outside(chain)
        self.event("branch", case.pattern, frame, test=subject)
        return self.first_or_rest(inside, outside, chosen or guarded, frame, chain)

    def _captured(self, case: ast.match_case, found: Capture, frame: Frame) -> Value:
        """Bind what a pattern has captured, and ask its guard; NOTHING: that does not come back."""
        for name, held in found.names.items():
            self.bind(name, held, frame)
        if case.guard is None:
            return const(True)
        return self.condition(self.evaluate(case.guard, frame), case.guard, frame)

    def _doubt(self, asked: list[Value], pattern: ast.pattern) -> Parting | None:
        """Why a pattern fits on some ranks alone."""
        return next((p for v in asked if v != NOTHING and (p := self.parting(v, pattern))), None)
