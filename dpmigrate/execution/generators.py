"""Generators of the program: their consumer runs where they yield."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution import divergence, samples
from dpmigrate.execution.caches import CacheParts
from dpmigrate.execution.classes import FunctionParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.objects import LENGTH, Location, Object
from dpmigrate.execution.summaries import Suspended
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import NONE, NOTHING, SETTING, UNBOUND, Value, const, value

#: the field of a generator that has given all its values
SPENT = "#spent"
#: that a later turn of a loop asks a generator, whose body is executed from its beginning once more:
#: what had been begun in it before goes on; behind the first atom are those of who takes note of it
RESUMED = (PROCESS, "resumed")


class GeneratorParts(CacheParts):
    """``yield``, and loops over what is yielded."""

    def yields(self, given: Value, node: ast.AST, frame: Frame) -> bool:
        return frame.consumer(given) if frame.consumer is not None else True

    def interrupted(self, written: dict[Location, Value]) -> None:
        """The state after any of some writes."""
        for at, seen in written.items():
            held = self.heap.read(at)
            self.heap.write(at, join(held if held is not None else value(UNBOUND), seen))

    def somehow(self, run: Callable[[], Value], parted: Parting | None) -> Value:
        """Something that is begun, and done as far as is not known; ``parted``: further on some ranks."""
        found: list[Value] = []

        def begun() -> bool:
            watch = self.heap.watch()
            self.heap.mark()
            found.append(run())
            written = self.heap.watched(watch)
            self.heap.rollback()
            self.interrupted(written)
            return True

        self.branch([begun, lambda: True], parted)
        return found[0]

    def yields_from(self, source: Value, node: ast.YieldFrom, frame: Frame) -> Value:
        """``yield from``: each value of another iterable; gives what a generator returns."""
        made = self.object(source[0]) if len(source) == 1 else None
        if made is not None and made.kind == "generator":
            results: list[Value] = []
            ended = self.generate(made, lambda v: self.yields(v, node, frame), node, frame, results)
            return join(*results) if ended else NOTHING
        listed = self.known_elements(source)
        if listed is not None:
            return NONE if all(self.yields(v, node, frame) for v in listed) else NOTHING

        self.library.begun(self, source, node, frame)

        def turn() -> bool:
            return self.yields(self.elements(source, node, frame) or SETTING, node, frame)

        return NONE if self.repeat(turn, node, self.trips(source, node)) else NOTHING

    def generate(
        self,
        made: Object,
        consumer: Callable[[Value], bool],
        node: ast.AST,
        frame: Frame,
        results: list[Value] | None = None,
        finished: Callable[[], None] | None = None,
    ) -> bool:
        """Run a generator; each value that it yields goes to the consumer, which may stop it.

        Whether it may come to its own end. What it returns is added to ``results``;
        ``finished`` is called in the state in which it ends.
        """
        suspended: Suspended = made.extra
        function = suspended.function
        parts: FunctionParts = function.extra
        if self.heap.read((made.number, SPENT)) == const(True):
            return True
        if self.under_way().count(parts.node) >= 2:
            deeper = self.miss("a generator runs within itself", node, frame)
            return self.repeat(lambda: consumer(deeper), node, None)
        context = self.context(function, suspended.receiver, suspended.arguments, node, frame)
        given = suspended.arguments
        if suspended.receiver is not None:
            given = given.after(value(suspended.receiver))
        inner = self.frame_of(function, suspended.receiver, context)
        depth = len(self._stack)

        def consume(v: Value) -> bool:
            # what the consumer does is not done by the generator
            own = self._stack[depth:]
            del self._stack[depth:]
            try:
                return consumer(v)
            finally:
                self._stack += own

        inner.consumer = consume
        self.heap.mark()
        inner.level = self.heap.level
        self._begin(inner, parts)
        try:
            self.bind_arguments(function, given, inner)
            body = parts.node.body
            alive = self.block(body, inner) if isinstance(body, list) else True
            if finished is not None:
                finished()
        finally:
            parted = self._end()
            delta = self.heap.rollback()
        if results is not None:
            results += [*([NONE] if alive else []), *(v for v, _ in inner.returns)]
        outcomes = [*([delta] if alive else []), *(d for _, d in inner.returns)]
        self.heap.apply(outcomes or [delta], self.merging(parted))
        if outcomes:
            self.heap.write((made.number, SPENT), const(True))
        return bool(outcomes)

    def yielded(self, made: Object, node: ast.AST, frame: Frame) -> Value:
        found: list[Value] = []

        outside, depth = len(self.turns), len(self.control)
        apart: list[Parting] = []

        def take(v: Value) -> bool:
            # what a turn of the generator gives is of no turn here
            found.append(samples.after_turn(v) if len(self.turns) > outside else v)
            apart.extend(p for p in self.control[depth:] if p is not None)
            return True

        spent = self.heap.read((made.number, SPENT))
        resumed, outer = self.later, self.heap.read(RESUMED)
        self.later = False
        if resumed:
            self.heap.write(RESUMED, const(True))
        self.generate(made, take, node, frame)
        if resumed:
            self.heap.write(RESUMED, outer or const(False))
        # it may be asked for its next value, so that it is not known to be spent
        self.heap.write((made.number, SPENT), spent)
        if apart:  # some ranks get more
            self.heap.write((made.number, LENGTH), divergence.differing(SETTING, apart[0]))
        return join(*found)
