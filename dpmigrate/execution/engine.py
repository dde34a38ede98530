"""Executes a program: the one entry of this package."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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

    def run(self) -> Execution:
        """Execute the script; what ends it early is in the trace."""
        with _deep():
            try:
                self.run_module(len(self.program.parts) - 1, "__main__")
                self.call_back()
            except Exhausted as e:
                self.trace.ended = str(e)
            except RecursionError:
                self.trace.ended = "the program is nested too deeply"
        return self


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
