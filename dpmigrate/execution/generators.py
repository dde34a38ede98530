"""Generators of the program: their consumer runs where they yield."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.attributes import FunctionParts
from dpmigrate.execution.heap import Object
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.summaries import SummaryParts, Suspended
from dpmigrate.execution.values import (
    Value,
    join,
    value,
)


class GeneratorParts(SummaryParts):
    """``yield``, and loops over what is yielded."""

    def yields(self, given: Value, node: ast.AST, frame: Frame) -> bool:
        if frame.consumer is not None:
            return frame.consumer(given)
        frame.yields.append(given)
        return True

    def generate(
        self, made: Object, consumer: Callable[[Value], bool], node: ast.AST, frame: Frame
    ) -> None:
        """Run a generator; each value that it yields goes to the consumer, which may stop it."""
        suspended: Suspended = made.extra
        function = suspended.function
        parts: FunctionParts = function.extra
        if parts.node in self._stack and self._stack.count(parts.node) >= 2:
            return
        context = self.context(function, suspended.receiver, node, frame)
        given = suspended.arguments
        if suspended.receiver is not None:
            given = given.after(value(suspended.receiver))
        inner = self.frame_of(function, suspended.receiver, context)
        inner.consumer = consumer
        self.heap.mark()
        inner.level = self.heap.level
        self._begin(inner, parts)
        try:
            self.bind_arguments(function, given, inner)
            alive = (
                self.block(parts.node.body, inner)
                if not isinstance(parts.node, ast.Lambda)
                else True
            )
        finally:
            parted = self._end()
            delta = self.heap.rollback()
        outcomes = [*([delta] if alive else []), *(d for _, d in inner.returns)]
        self.heap.apply(outcomes or [delta], self.merging(parted))

    def yielded(self, made: Object, node: ast.AST, frame: Frame) -> Value:
        found: list[Value] = []

        def take(v: Value) -> bool:
            found.append(v)
            return True

        self.generate(made, take, node, frame)
        return join(*found)
