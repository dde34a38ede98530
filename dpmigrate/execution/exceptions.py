"""``try``, ``with`` and the ways out of them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.guards import (
    EVERY,
    LEAVES,
    Catches,
    Guard,
    Guarding,
    asks_plainly,
    caught,
    guarding,
    never,
)
from dpmigrate.execution.lazily import LazyParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Delta, Location, Object
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Ref,
    Value,
    value,
)

#: the mark of a context manager of a library that ends exceptions of its body; its ``extra`` are
#: their names
SWALLOWS = "swallows"
#: ways out of one statement that are kept apart
APART = 4


class ExceptionParts(LazyParts):
    """Handlers, and what is done on the way out."""

    def _try(self, node: ast.Try | ast.TryStar, frame: Frame) -> bool:
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
        exits = self._exits(frame)
        where = item.context_expr
        found = self._each(manager, lambda atom: self._enter(atom, where, frame), where)
        if item.optional_vars is not None:
            self.assign(item.optional_vars, found or SETTING, node, frame)
        watch = self.heap.watch()
        self.heap.mark()
        swallows = any(self._swallows(a) for a in manager)
        guard = (self._suppressed(manager), never) if swallows else None
        alive, reason = self._guarded(lambda: self._context(node, index + 1, frame), guard)
        written = self.heap.watched(watch)
        delta = self.heap.rollback()

        def leave() -> bool:
            self._each(manager, lambda atom: self._leave(atom, where, frame), where)
            return True

        self._leaving(exits, frame, lambda d, at: self._left(d, at, leave))
        outcomes: list[Delta] = []
        if alive:
            self.heap.mark()
            self.heap.apply([delta])
            leave()
            outcomes.append(self.heap.rollback())
        if any(self._method(a, "__exit__") for a in manager):
            self.heap.mark()
            self.interrupted(written)
            answer = self._each(manager, lambda atom: self._leave(atom, where, frame, raised=True), where)
            after = self.heap.rollback()
            if self.truth(answer) is not False:
                outcomes.append(after)  # the exception may end here
        elif swallows:
            self.heap.mark()
            self.interrupted(written)
            outcomes.append(self.heap.rollback())
        self.heap.apply(outcomes, self.merging(reason))
        return bool(outcomes)

    def _swallows(self, atom: Atom) -> bool:
        """Whether a context manager may end an exception of its body."""
        made = self.object(atom)
        method = self.method_of(made, "__exit__") if made is not None else None
        if method is not None:
            body = self.heap.objects[method.function].extra.node
            returned = [n.value for n in ast.walk(body) if isinstance(n, ast.Return)]
            return any(v is not None and not (isinstance(v, ast.Constant) and not v.value) for v in returned)
        return made is not None and SWALLOWS in made.marks

    def _suppressed(self, manager: Value) -> Catches:
        """What context managers catch: all, or what ``suppress`` is given."""
        given = [o.extra for o in self.objects(manager) if SWALLOWS in o.marks]
        whole = len(given) < len(manager) or any(names is None for names in given)
        return caught(set(EVERY) if whole else {n for names in given for n in names})

    def _each(self, manager: Value, run: Callable[[Atom], Value], node: ast.AST) -> Value:
        """Do something with each context manager that a value may be."""
        return self.each_of(manager, run, self.which(manager, node))

    def _leave(self, atom: Atom, node: ast.AST, frame: Frame, *, raised: bool = False) -> Value:
        method = self._method(atom, "__exit__")
        if method is not None:
            return self.call(method, Arguments([SETTING if raised else NONE] * 3), node, frame)
        self.library.left(self, atom, node, frame)
        return NONE

    def _method(self, atom: Atom, name: str) -> Value | None:
        made = self.object(atom) if isinstance(atom, Ref) else None
        method = self.method_of(made, name) if made is not None else None
        return value(method) if method is not None else None

    def _enter(self, atom: Atom, node: ast.AST, frame: Frame) -> Value:
        method = self._method(atom, "__enter__")
        if method is not None:
            return self.call(method, Arguments(), node, frame)
        given = self.library.entered(self, atom, node, frame)
        return given if given is not None else (atom,)

    def _inside(
        self, node: ast.With | ast.AsyncWith, index: int, generator: Object, frame: Frame
    ) -> bool:
        """A context manager written as a generator: the body runs where it yields."""
        ends: list[bool] = []
        exits = self._exits(frame)
        where = node.items[index].context_expr

        def consume(given: Value) -> bool:
            target = node.items[index].optional_vars
            if target is not None:
                self.assign(target, given or SETTING, node, frame)
            ends.append(self._context(node, index + 1, frame))
            return True

        def leave(delta: Delta, level: int) -> Delta | None:
            """The generator once more, with a way out in place of the body."""
            after: Delta | None = None

            def out(given: Value) -> bool:
                self.heap.apply([delta])
                return True

            def finished() -> None:
                nonlocal after
                after = self.heap.since(level)

            self.heap.mark()
            self.generate(generator, out, where, frame, finished=finished)
            self.heap.rollback()
            return after

        self.heap.mark()
        self.generate(generator, consume, where, frame)
        normal = self.heap.rollback()
        self._leaving(exits, frame, leave)
        self.heap.apply([normal])
        # an exception of the body may end in a handler round the ``yield``
        return any(ends) or not ends or _catches_where_it_yields(generator)


def _catches_where_it_yields(generator: Object) -> bool:
    """Whether a generator has a handler for exceptions that come from where it yields."""
    body = generator.extra.function.extra.node
    return any(
        isinstance(n, ast.Try | ast.TryStar) and n.handlers
        and any(isinstance(x, ast.Yield) for s in n.body for x in ast.walk(s))
        for n in ast.walk(body)
    )  # fmt: skip
