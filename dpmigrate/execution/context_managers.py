"""``with``: context managers, and what they do where their body ends."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.exceptions import ExceptionParts
from dpmigrate.execution.guards import (
    EVERY,
    Catches,
    caught,
    never,
)
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import Delta, Object
from dpmigrate.execution.values import (
    NONE,
    SETTING,
    Atom,
    Ref,
    Value,
    value,
)

#: the mark of a context manager of a library that ends exceptions of its body; its ``extra`` are
#: their names
SWALLOWS = "swallows"


class ContextParts(ExceptionParts):
    """What a ``with`` does on the ways in and out of its body."""

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
