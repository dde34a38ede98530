"""Executes a program: the one entry of this package."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dpmigrate.execution import budget
from dpmigrate.execution.callbacks import CallbackParts
from dpmigrate.execution.machine import Exhausted, Library
from dpmigrate.program import Program

#: frames of Python that nested programs may take
_RECURSION = 20_000
#: new objects after which Python looks for cycles: an execution makes many objects and hardly a cycle
_COLLECTED = 50_000


class Execution(CallbackParts):
    """A program while it is executed, and what is known of it afterwards."""

    def __init__(self, program: Program, library: Library) -> None:
        super().__init__(library)
        self.program = program
        #: whether it ended for what it has cost
        self.exhausted = False

    def run(self) -> Execution:
        """Execute the script; what ends it early is in the trace."""
        self.allowed = budget.allowed()
        with _deep():
            try:
                self.run_module(len(self.program.parts) - 1, "__main__")
                self.call_back()
            except Exhausted:
                what = "the program and its results take" if self.allowed < budget.STEPS else "the program takes"
                self.trace.ended = f"{what} more steps than the budget has{self._most()}"
                self.exhausted = True
            except RecursionError:
                self.trace.ended = "the program is nested too deeply"
        budget.spend(self.cost)
        return self

    def _most(self) -> str:
        """Where most of the steps were taken, for a sentence."""
        node = max(self.costs, key=lambda n: self.costs[n], default=None)
        if node is None:
            return ""
        line: int = getattr(node, "lineno", 0)
        return f", most of them in {getattr(node, 'name', 'a lambda')} ({self.program.place(line)})"


def execute(program: Program, library: Library) -> Execution:
    """Execute a program on paper, from its first line on."""
    return Execution(program, library).run()


@contextmanager
def _deep() -> Iterator[None]:
    before, (often, *others) = sys.getrecursionlimit(), gc.get_threshold()
    sys.setrecursionlimit(max(before, _RECURSION))
    gc.set_threshold(often and max(often, _COLLECTED), *others)  # 0: it is switched off
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
        gc.set_threshold(often, *others)
