"""``try``, ``with`` and the ways out of them."""

from __future__ import annotations

import ast

from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.heap import Delta, Location
from dpmigrate.execution.loops import LoopParts
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    UNBOUND,
    Ref,
    Value,
    join,
    value,
)


class ExceptionParts(LoopParts):
    """Handlers, and what is done on the way out."""

    def _try(self, node: ast.Try | ast.TryStar, frame: Frame) -> bool:
        self.heap.watch()
        self.heap.mark()
        alive = self.block(node.body, frame)
        if alive and node.orelse:
            alive = self.block(node.orelse, frame)
        delta = self.heap.rollback()
        written = self.heap.watched()
        outcomes = [delta] if alive else []
        for handler in node.handlers:
            after = self._handler(handler, written, frame)
            if after is not None:
                outcomes.append(after)
        if outcomes:
            self.heap.apply(outcomes)
        if node.finalbody:
            ends = self.block(node.finalbody, frame)
            return bool(outcomes) and ends
        return bool(outcomes)

    def _handler(
        self, handler: ast.ExceptHandler, written: dict[Location, Value], frame: Frame
    ) -> Delta | None:
        """What a handler leaves; it may start after any write of the ``try``. None: it does not
        end.
        """
        self.heap.mark()
        for at, seen in written.items():
            held = self.heap.read(at)
            self.heap.write(at, join(held if held is not None else value(UNBOUND), seen))
        kind = self.evaluate(handler.type, frame) if handler.type is not None else NOTHING
        if handler.name:
            self.bind(handler.name, SETTING, frame)
        self.event("handler", handler, frame, caught=kind)
        ends = self.block(handler.body, frame)
        delta = self.heap.rollback()
        return delta if ends else None

    def _with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> bool:
        return self._context(node, 0, frame)

    def _context(self, node: ast.With | ast.AsyncWith, index: int, frame: Frame) -> bool:
        """The items of a ``with`` from one on, and its body."""
        if index == len(node.items):
            return self.block(node.body, frame)
        item = node.items[index]
        manager = self.evaluate(item.context_expr, frame)
        if not manager:
            return False
        generator = self._generator(manager)
        if generator is not None:
            return self._inside(node, index, generator, frame)
        before = self._modes()
        exits = (len(frame.returns), len(frame.breaks), len(frame.continues))
        found = [self._enter(a, item.context_expr, frame) for a in manager]
        if item.optional_vars is not None:
            self.assign(item.optional_vars, join(*found) or SETTING, node, frame)
        alive = self._context(node, index + 1, frame)
        for atom in manager:
            method = self._method(atom, "__exit__")
            if method is not None:
                given = Arguments([NONE, NONE, NONE])
                self.call(method, given, item.context_expr, frame)
            else:
                self.library.left(self, atom, item.context_expr, frame)
        self._restore(before, exits, frame)
        return alive

    def _method(self, atom: object, name: str) -> Value | None:
        made = self.object(atom) if isinstance(atom, Ref) else None
        method = self.method_of(made, name) if made is not None else None
        return value(method) if method is not None else None

    def _enter(self, atom: object, node: ast.AST, frame: Frame) -> Value:
        method = self._method(atom, "__enter__")
        if method is not None:
            return self.call(method, Arguments(), node, frame)
        given = self.library.entered(self, atom, node, frame)  # type: ignore[arg-type]
        return given if given is not None else (atom,)  # type: ignore[return-value]

    def _inside(
        self, node: ast.With | ast.AsyncWith, index: int, generator: object, frame: Frame
    ) -> bool:
        """A context manager written as a generator: the body runs where it yields."""
        ends: list[bool] = []

        def consume(given: Value) -> bool:
            target = node.items[index].optional_vars
            if target is not None:
                self.assign(target, given or SETTING, node, frame)
            ends.append(self._context(node, index + 1, frame))
            return True

        where = node.items[index].context_expr
        self.generate(generator, consume, where, frame)  # type: ignore[arg-type]
        return any(ends) or not ends

    def _modes(self) -> dict[Location, Value | None]:
        """The modes of the process that ``with`` may change."""
        names = self.heap.fields.get(PROCESS, {})
        return {(PROCESS, n): self.heap.read((PROCESS, n)) for n in names if isinstance(n, str)}

    def _restore(
        self, before: dict[Location, Value | None], exits: tuple[int, int, int], frame: Frame
    ) -> None:
        """What leaves a ``with`` by return, break or continue leaves its modes as well."""
        deltas = [d for _, d in frame.returns[exits[0] :]]
        deltas += [*frame.breaks[exits[1] :], *frame.continues[exits[2] :]]
        for delta in deltas:
            for at in list(delta):
                if at[0] == PROCESS and isinstance(at[1], str) and at[1].startswith("mode "):
                    delta[at] = before.get(at)
