"""An execution that notes which exceptions of the training are handled, and what the handlers do."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.guards import Guarding
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Delta, Location
from dpmigrate.execution.trace import Event, Parting
from dpmigrate.execution.values import Value, const

#: what ends the program
_ENDS = ("exit", "_exit", "quit", "abort")


class Handling(Execution):
    """Handlers round backward passes are noted where they go on, and where they train."""

    #: how many backward passes there were, and whether the last ``try`` held one
    _passes, _guards_training = 0, False

    def event(self, kind: str, node: ast.AST, frame: Frame, **values: Value) -> Event:
        """An event; backward passes are counted."""
        self._passes += kind == "backward"
        return super().event(kind, node, frame, **values)

    def _guarded(self, run: Callable[[], bool], guard: Guarding | None) -> tuple[bool, Parting | None]:
        before = self._passes
        found = super()._guarded(run, guard)
        self._guards_training = self._passes > before
        return found

    def _handler(
        self, handler: ast.ExceptHandler, written: dict[Location, Value], frame: Frame
    ) -> Delta | None:
        guards, before = self._guards_training, self._passes
        delta = super()._handler(handler, written, frame)
        self._guards_training = guards  # the handlers of one try follow each other
        if guards:
            again, ends = self._passes > before, self._raises_again(handler, frame) or _exits(handler)
            self.event("judge handler", handler, frame, trains=const(again), ends=const(ends))
        return delta


def _exits(handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends the program."""
    calls = (n.func for s in handler.body for n in ast.walk(s) if isinstance(n, ast.Call))
    return any((f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")) in _ENDS for f in calls)
