"""Comprehensions: loops that are expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.machine import Frame
from dpmigrate.execution.names import LISTED
from dpmigrate.execution.operators import OperatorParts
from dpmigrate.execution.scopes import Comprehension
from dpmigrate.execution.values import (
    NOTHING,
    Ref,
    Value,
    value,
)


class ComprehensionParts(OperatorParts):
    """List, set and dictionary comprehensions, and generator expressions."""

    def _comprehension(self, node: Comprehension, frame: Frame) -> Value:
        inner = self._inner(node, frame)
        if isinstance(node, ast.DictComp):
            made = self.heap.new("dict", "dict", node, frame.context)
            target = value(Ref(made.number))

            def pair() -> Value:
                key = self.evaluate(node.key, inner)
                self.set_item(target, key, self.evaluate(node.value, inner), node, inner)
                return NOTHING

            self._generate(node.generators, 0, inner, pair, [])
            return target
        found: list[Value] = []
        exact = self._generate(
            node.generators, 0, inner, lambda: self.evaluate(node.elt, inner), found
        )
        kind = "set" if isinstance(node, ast.SetComp) else "list"
        return self.listed(found, node, frame, exact=exact, kind=kind)

    def _inner(self, node: Comprehension, frame: Frame) -> Frame:
        number = self.heap.number(("comprehension", id(node), frame.number))
        names = self.names_of(node)
        inner = Frame(
            number, names, tuple(self.scopes(frame)), frame.module, frame.context,
            level=frame.level, slot=frame.slot, function=frame.function, cls=frame.cls,
            receiver=frame.receiver,
        )  # fmt: skip
        inner.yields, inner.consumer = frame.yields, frame.consumer
        if frame.in_class:
            inner.outer = ((frame.number, frame.names), *frame.outer)
        return inner

    def _generate(
        self, generators: list[ast.comprehension], index: int, frame: Frame,
        element: Callable[[], Value], found: list[Value],
    ) -> bool:  # fmt: skip
        """Run the loops of a comprehension; whether ``found`` are its elements one by one."""
        if index == len(generators):
            found.append(element())
            return True
        generator = generators[index]
        iterable = self.evaluate(generator.iter, frame)
        known = self.known_elements(iterable, LISTED)
        if known is not None:
            exact = True
            for v in known:
                self.assign(generator.target, v, generator.target, frame)
                exact = self._kept(generator, generators, index, frame, element, found) and exact
            return exact
        for _ in range(2):  # what an element leaves behind may change the next one
            self.assign(
                generator.target, self.elements(iterable, generator.iter, frame), generator.target,
                frame,
            )  # fmt: skip
            self._kept(generator, generators, index, frame, element, found)
        return False

    def _kept(
        self, generator: ast.comprehension, generators: list[ast.comprehension], index: int,
        frame: Frame, element: Callable[[], Value], found: list[Value],
    ) -> bool:  # fmt: skip
        sure = True
        for test in generator.ifs:
            truth = self.truth(self.evaluate(test, frame))
            if truth is False:
                return True
            sure = sure and truth is True
            self.refine(test, True, frame)
        return self._generate(generators, index + 1, frame, element, found) and sure
