"""``try``, and the ways out of a body that is guarded."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable

from dpmigrate.execution import same_imports
from dpmigrate.execution.control import Raised
from dpmigrate.execution.guards import (
    LEAVES,
    Guard,
    Guarding,
    asks_plainly,
    caught_alone,
    guarding,
    never,
)
from dpmigrate.execution.lazily import LazyParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Delta, Location
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Value,
)

#: ways out of one statement that are kept apart
APART = 4


class ExceptionParts(LazyParts):
    """Handlers, and what is done on the way out."""

    def _try(self, node: ast.Try | ast.TryStar, frame: Frame) -> bool:
        way = same_imports.found(node, lambda dotted: self.path_of_module(dotted, frame))
        if way is not None:
            return self.block(node.body if way else node.handlers[0].body, frame)
        exits = self._exits(frame)
        watch = self.heap.watch()
        self.heap.mark()
        raising = [h for h in node.handlers if self._raises_again(h, frame)]
        guard = guarding(node.handlers, raising) if node.handlers else None
        alive, reason = self._guarded(lambda: self.block(node.body, frame), guard)
        written = self.heap.watched(watch)
        if alive and node.orelse:
            self.control.append(reason)
            alive = self.block(node.orelse, frame)
            self.control.pop()
        delta = self.heap.rollback()
        outcomes = [delta] if alive else []
        before = self._exits(frame)
        self.control.append(reason)
        for handler in node.handlers:
            after = self._handler(handler, written, frame)
            if after is not None:
                outcomes.append(after)
        self.control.pop()
        self.left_by_some(before, reason, frame)
        if node.finalbody:
            if not outcomes and exits == self._exits(frame):
                self.heap.mark()
                self.interrupted(written)
                self.block(node.finalbody, frame)
                self.heap.rollback()
            body = node.finalbody
            self._leaving(
                exits, frame, lambda d, at: self._left(d, at, lambda: self.block(body, frame))
            )
        if outcomes:
            # who is left where each handler raises again has come to the end of the body
            left = reason if len(raising) < len(node.handlers) else None
            self.heap.apply(outcomes, self.merging(left))
        return bool(outcomes) and (not node.finalbody or self.block(node.finalbody, frame))

    def _raises_again(self, handler: ast.ExceptHandler, frame: Frame) -> bool:
        """Whether a handler ends in an exception for certain where several ranks run: in ``raise``, or
        in one under ``if ddp.world_size() > 1``.
        """
        for stmt in handler.body:
            if isinstance(stmt, ast.If) and asks_plainly(stmt.test):
                self.heap.mark()
                known = self.truth(self.evaluate(stmt.test, frame))
                self.heap.rollback()
                if known is True and isinstance(stmt.body[0], ast.Raise):
                    return True
            if isinstance(stmt, ast.Raise):
                return True
            if any(isinstance(n, LEAVES) for n in ast.walk(stmt)):
                return False
        return False

    def _guarded(self, run: Callable[[], bool], guard: Guarding | None) -> tuple[bool, Parting | None]:
        """Run what is guarded by handlers; whether it comes to its end, and why some ranks alone may
        have raised an exception.
        """
        depth, raised, implied = len(self.control), len(self.raised), len(self.implied)
        self.control.append(None)
        if guard is not None:
            self.tries.append(Guard(depth, *guard))
        alive = run()
        self.control.pop()
        # what no handler catches goes through to what is round it
        reasons = [p for at, p in self.raised[raised:] if at >= depth]
        reasons += [p for at, p in self.implied[implied:] if at == depth]
        if guard is not None:
            self.tries.pop()
        return alive, next(iter(reasons), None)

    def until_it_ends(
        self, ask: Callable[[], Value], ends: str, asking: str, node: ast.AST, frame: Frame
    ) -> Value:
        """What an iterator of the program gives whoever goes through it. The exception by which it
        ends leads out of the loop, with what is written on that way; where some ranks alone may come
        to it, they leave the loop before the others. Whoever asks by ``next()`` gets the exception.
        """
        if asking == "next":
            return ask()
        noted: dict[Raised, None] = {}
        found: list[Value] = []

        def run() -> bool:
            found.append(ask())
            return bool(found[-1])

        self.leaving.append((len(self.control) + 1, noted))
        watch = self.heap.watch()
        self.heap.mark()
        self.ending.append(ends)
        try:
            alive, reason = self._guarded(run, (caught_alone(ends), never))
        finally:
            self.ending.pop()
            self.leaving.pop()
            written = self.heap.watched(watch)
            delta = self.heap.rollback()
        if not any(one.kind == ends for one in noted):
            self.heap.apply([delta])
            return found[0]
        self.heap.mark()
        self.interrupted(written)
        ended = self.heap.rollback()
        self.heap.apply([*([delta] if alive else []), ended], self.merging(reason))
        if reason is not None:
            if asking not in ("begins", "loop"):
                return self.miss("an iterator that some ranks alone may come to the end of", node, frame)
            self.ended_by = reason
        return found[0]

    @staticmethod
    def _exits(frame: Frame) -> tuple[int, int, int]:
        """How many ways out of a scope, a loop and a turn there are so far."""
        return (len(frame.returns), len(frame.breaks), len(frame.continues))

    def _leaving(
        self,
        before: tuple[int, int, int],
        frame: Frame,
        leave: Callable[[Delta, int], Delta | None],
    ) -> None:
        """What is done on the way out by ``return``, ``break`` and ``continue``.

        ``leave`` gives what such a way has written, behind what is done on it; None: it ends there.
        """
        results = frame.returns[before[0] :]
        del frame.returns[before[0] :]
        if len(results) > APART:
            merged = self._joined([d for _, d in results], frame, frame.level - 1)
            results = [(v, merged) for v in dict.fromkeys(v for v, _ in results)]
        kept: list[tuple[Value, Delta]] = []
        done: dict[int, Delta | None] = {}
        for given, delta in results:
            if id(delta) not in done:
                done[id(delta)] = leave(delta, frame.level - 1)
            after = done[id(delta)]
            if after is not None:
                kept.append((given, after))
        frame.returns += kept
        if not frame.loops:
            return
        for held, first, level in (
            (frame.breaks, before[1], frame.loops[-1][0] - 1),
            (frame.continues, before[2], frame.loops[-1][1] - 1),
        ):
            deltas = held[first:]
            del held[first:]
            if len(deltas) > APART:
                deltas = [self._joined(deltas, frame, level)]
            after_each = [leave(d, level) for d in deltas]
            held += [d for d in after_each if d is not None]

    def _joined(self, deltas: list[Delta], frame: Frame, level: int) -> Delta:
        """Several ways out as one."""
        self.heap.mark()
        self.heap.apply(deltas)
        merged = self.heap.since(level)
        self.heap.rollback()
        return merged

    def _left(self, delta: Delta, level: int, run: Callable[[], bool]) -> Delta | None:
        """A way out behind what is done on it; None where that goes another way."""
        self.heap.mark()
        self.heap.apply([delta])
        ends = run()
        after = self.heap.since(level)
        self.heap.rollback()
        return after if ends else None

    def _handler(
        self, handler: ast.ExceptHandler, written: dict[Location, Value], frame: Frame
    ) -> Delta | None:
        """What a handler leaves; it may start after any write of the ``try``. None: it does not
        end.
        """
        self.heap.mark()
        self.interrupted(written)
        kind = self.evaluate(handler.type, frame) if handler.type is not None else NOTHING
        if handler.name:
            self.bind(handler.name, SETTING, frame)
        self.event("handler", handler, frame, caught=kind)
        ends = self.block(handler.body, frame)
        if handler.name and ends:
            self.bind(handler.name, NOTHING, frame)
        delta = self.heap.rollback()
        return delta if ends else None

    # ------------------------------------------------------------ defined by later parts

    @abstractmethod
    def path_of_module(self, dotted: str, frame: Frame) -> tuple[str, ...]:
        """The folders and the name of the file of the program that a scope imports by a name; empty
        where it is none.
        """
