"""One pass over the statements of a frame, with a state of one bit for each definition.

Ways that meet are joined by *or*; a state of 0 is a place that is never reached. It is the classic
analysis of reaching definitions (Aho, Lam, Sethi, Ullman: Compilers, 9.2.4), structured by
statements. At the head of a loop all definitions in the loop are taken to reach it, which saves
going round and is exact but for a variable that the loop deletes and binds again.

What is assumed: a ``with`` block ends with its exceptions, unless its manager is called
``suppress`` or ``raises``; a call of ``sys.exit`` or of a function of the file that never returns
does not return; interrupts between two statements do not occur.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from dpmigrate.result.evaluation import Evaluation, Ways
from dpmigrate.result.scopes import FunctionNode, LoopNode, evaluated_first

_SWALLOWS = frozenset({"suppress", "raises"})
_WAYS = ("raised", "broken", "continued", "returned")


class Run(Evaluation):
    """One pass over a frame."""

    def all(self) -> Ways:
        """Go through the frame; its ways out, a normal end among those that return."""
        node = self.frame.node
        if isinstance(node, ast.Lambda):
            end = self.expr(node.body, self.frame.entry)
        else:
            end = self.block(node.body, self.frame.entry)  # type: ignore[attr-defined]
        self.ways.returned |= end
        return self.ways

    def block(self, body: Sequence[ast.stmt], state: int) -> int:
        for statement in body:
            state = self.stmt(statement, state)
        return state

    def stmt(self, node: ast.stmt, state: int) -> int:
        if not state:
            return 0
        method = _STATEMENTS.get(type(node))
        if method is not None:
            return method(self, node, state)
        for child in ast.iter_child_nodes(node):  # Expr, Pass, Import
            state = self.expr(child, state)
        return state

    # ------------------------------------------------------------------ statements that bind
    def assign_(self, node: ast.Assign, state: int) -> int:
        lacking = self._lacking(node, state)
        state = self.expr(node.value, state)
        for target in node.targets:
            state = self.target(target, state)
        return state | lacking if state else 0

    def _lacking(self, node: ast.Assign, state: int) -> int:
        """Where nothing is learned: that a variable which is made of itself has had no value."""
        target = node.targets[0]
        if (
            self.flow.learning
            or not isinstance(target, ast.Name)
            or not _surely_reads(node.value, target.id)
        ):
            return 0
        definition = self.frame.definitions[self.frame.at[target, False]]
        return state & self.frame.variables[definition.key].without if definition is not None else 0

    def annassign_(self, node: ast.AnnAssign, state: int) -> int:
        in_function = self.scope.kind == "function"
        if node.value is not None:
            state = self.target(node.target, self.expr(node.value, state))
        elif not isinstance(node.target, ast.Name):
            state = self.expr(node.target, state)
        return (
            state
            if in_function or self.flow.variables.late_annotations
            else self.expr(node.annotation, state)
        )

    def augassign_(self, node: ast.AugAssign, state: int) -> int:
        if isinstance(node.target, ast.Name):
            state = self.expr(node.value, self.read(node.target, state))
            self.ways.raised |= state
            return self.bind(node.target, state) if self.flow.learning else state
        return self.expr(node.value, self.expr(node.target, state))

    def delete_(self, node: ast.Delete, state: int) -> int:
        for target in node.targets:
            state = self._deleted(target, state)
        return state

    def _deleted(self, target: ast.AST, state: int) -> int:
        if isinstance(target, ast.Name):
            return self.bind(target, self.read(target, state), unbinds=True)
        if isinstance(target, ast.Tuple | ast.List):
            for t in target.elts:
                state = self._deleted(t, state)
            return state
        return self.expr(target, state)

    def import_(self, node: ast.Import | ast.ImportFrom, state: int) -> int:
        self.ways.raised |= state
        for alias in node.names:
            if alias.name != "*":
                state = self.bind(alias, state)
                self.ways.raised |= state
        return state

    def functiondef_(self, node: FunctionNode, state: int) -> int:
        for e in evaluated_first(node, late=self.flow.variables.late_annotations):
            state = self.expr(e, state)
        self.ways.raised |= state
        return self.bind(node, state)

    def classdef_(self, node: ast.ClassDef, state: int) -> int:
        for e in evaluated_first(node, late=self.flow.variables.late_annotations):
            state = self.expr(e, state)
        around, self.scope = self.scope, self.flow.variables.scopes[node]
        state = self.block(node.body, state)
        self.scope = around
        self.ways.raised |= state
        return self.bind(node, state)

    def typealias_(self, node: ast.AST, state: int) -> int:
        return self.bind(node.name, state)  # type: ignore[attr-defined]

    # ------------------------------------------------------------------ statements that leave
    def return_(self, node: ast.Return, state: int) -> int:
        self.ways.returned |= self.expr(node.value, state)
        return 0

    def raise_(self, node: ast.Raise, state: int) -> int:
        state = self.expr(node.cause, self.expr(node.exc, state))
        self.ways.raised |= state
        return 0

    def break_(self, node: ast.Break, state: int) -> int:
        self.ways.broken |= state
        return 0

    def continue_(self, node: ast.Continue, state: int) -> int:
        self.ways.continued |= state
        return 0

    def assert_(self, node: ast.Assert, state: int) -> int:
        yes, no = self.test(node.test, state)
        no = self.expr(node.msg, no)
        self.ways.raised |= no
        return yes

    # ------------------------------------------------------------------ branches
    def if_(self, node: ast.If, state: int) -> int:
        yes, no = self.test(node.test, state)
        return self.block(node.body, yes) | self.block(node.orelse, no)

    def match_(self, node: ast.Match, state: int) -> int:
        state = self.expr(node.subject, state)
        done = 0
        for case in node.cases:
            inner = self._pattern(case.pattern, state)
            # a name is bound where a pattern fits; where it does not, a part of it may have been
            missed = 0 if _fits_all(case.pattern) else state | inner
            if case.guard is not None:
                inner, no = self.test(case.guard, inner)
                missed |= no
            done |= self.block(case.body, inner)
            state = missed
        return done | state

    def _pattern(self, node: ast.AST, state: int) -> int:
        for child in ast.iter_child_nodes(node):
            state = (
                self._pattern(child, state)
                if isinstance(child, ast.pattern)
                else self.expr(child, state)
            )
        self.ways.raised |= state
        return self.bind(node, state) if (node, False) in self.frame.at else state

    # ------------------------------------------------------------------ loops
    def _loop(self, node: LoopNode, state: int, turn: Callable[[int], tuple[int, int]]) -> int:
        """``turn`` gives, for a state at the head, those in which the body begins and the loop ends
        by itself.
        """
        outer = self.ways.broken, self.ways.continued
        head = state | self.frame.ranges[node]
        self.ways.broken = self.ways.continued = 0
        begun, _ = turn(head)
        end = self.block(node.body, begun) | self.ways.continued
        if self.watch is not None and (end & ~head) >> self.watch.bit & 1:
            head |= 1 << self.watch.bit
            begun, _ = turn(head)
            end = self.block(node.body, begun) | self.ways.continued
        broken = self.ways.broken
        self.ways.broken, self.ways.continued = outer
        _, ended = turn(head if self.watch is None else end)
        return self.block(node.orelse, ended) | broken

    def for_(self, node: ast.For | ast.AsyncFor, state: int) -> int:
        state = self.expr(node.iter, state)

        def turn(head: int) -> tuple[int, int]:
            self.ways.raised |= head
            return self.target(node.target, head), head

        return self._loop(node, state, turn)

    def while_(self, node: ast.While, state: int) -> int:
        return self._loop(node, state, lambda head: self.test(node.test, head))

    # ------------------------------------------------------------------ with, try
    def with_(self, node: ast.With | ast.AsyncWith, state: int) -> int:
        swallows = False
        for item in node.items:
            manager = (
                item.context_expr.func
                if isinstance(item.context_expr, ast.Call)
                else item.context_expr
            )
            swallows |= (
                manager.attr if isinstance(manager, ast.Attribute) else getattr(manager, "id", "")
            ) in _SWALLOWS
            state = self.expr(item.context_expr, state)
            self.ways.raised |= state
            if item.optional_vars is not None:
                state = self.target(item.optional_vars, state)
        outer, self.ways.raised = self.ways.raised, 0
        end = self.block(node.body, state)
        if swallows:
            end |= self.ways.raised
        self.ways.raised |= outer | end
        return end

    def try_(self, node: ast.Try, state: int) -> int:
        if not node.finalbody:
            return self._caught(node, state)
        outer, self.ways = self.ways, Ways()
        end = self._caught(node, state)
        inner, self.ways = self.ways, outer
        for way in _WAYS:
            left = self.block(node.finalbody, getattr(inner, way))  # which may leave by itself
            setattr(self.ways, way, getattr(self.ways, way) | left)
        return self.block(node.finalbody, end)

    def _caught(self, node: ast.Try, state: int) -> int:
        outer, self.ways.raised = self.ways.raised, 0
        end = self.block(node.body, state)
        raised, self.ways.raised = self.ways.raised, outer
        end = self.block(node.orelse, end)
        for handler in node.handlers:
            end |= self._handler(handler, raised)
            if handler.type is None:
                raised = 0
        self.ways.raised |= raised
        return end

    def _handler(self, node: ast.ExceptHandler, state: int) -> int:
        state = self.expr(node.type, state)
        if node.name is None or not state:
            return self.block(node.body, state)
        outer, self.ways = self.ways, Ways()
        end = self.block(node.body, self.bind(node, state))
        inner, self.ways = self.ways, outer
        for way in _WAYS:
            setattr(
                self.ways,
                way,
                getattr(self.ways, way) | self.bind(node, getattr(inner, way), unbinds=True),
            )
        return self.bind(node, end, unbinds=True)


def _surely_reads(node: ast.expr, name: str) -> bool:
    """Whether evaluating the expression reads the name: as what is called, an argument, what an
    attribute or item is taken of.
    """
    if isinstance(node, ast.Call):
        return any(
            _surely_reads(e, name)
            for e in (node.func, *node.args, *(k.value for k in node.keywords))
        )
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        return _surely_reads(node.value, name)
    return isinstance(node, ast.Name) and node.id == name


def _fits_all(pattern: ast.pattern) -> bool:
    """``case _:``, ``case name:``, and alternatives of which one is that."""
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None or _fits_all(pattern.pattern)
    return isinstance(pattern, ast.MatchOr) and any(_fits_all(p) for p in pattern.patterns)


_Step = Callable[[Run, Any, int], int]
_STATEMENTS: dict[type[ast.AST], _Step] = {
    ast.Assign: Run.assign_,
    ast.AnnAssign: Run.annassign_,
    ast.AugAssign: Run.augassign_,
    ast.Delete: Run.delete_,
    ast.Import: Run.import_,
    ast.ImportFrom: Run.import_,
    ast.FunctionDef: Run.functiondef_,
    ast.AsyncFunctionDef: Run.functiondef_,
    ast.ClassDef: Run.classdef_,
    ast.Return: Run.return_,
    ast.Raise: Run.raise_,
    ast.Break: Run.break_,
    ast.Continue: Run.continue_,
    ast.Assert: Run.assert_,
    ast.If: Run.if_,
    ast.Match: Run.match_,
    ast.For: Run.for_,
    ast.AsyncFor: Run.for_,
    ast.While: Run.while_,
    ast.With: Run.with_,
    ast.AsyncWith: Run.with_,
    ast.Try: Run.try_,
    ast.TryStar: Run.try_,
}
if hasattr(ast, "TypeAlias"):  # from Python 3.12 on
    _STATEMENTS[ast.TypeAlias] = Run.typealias_
