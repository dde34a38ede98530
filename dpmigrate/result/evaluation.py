"""What evaluating an expression does to a state: reads and bindings, in the order of Python.

A state has a bit for each definition that may be the last one of its variable; 0 is a place that is
never reached.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmigrate.result.scopes import IDLE, Comprehension, Frame, Key, Variable, elements

if TYPE_CHECKING:
    from dpmigrate.result.flow import Flow

_ENDS = frozenset({"sys.exit", "os._exit", "os.abort", "exit", "quit"})


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """A place at which a variable is read that may have no value; ``within``: the call of a
    function of the file that reads it, else the name itself.
    """

    path: str  # of the scope whose variable it is
    name: str
    node: ast.expr
    key: Key
    frame: Frame


@dataclass(slots=True)
class Ways:
    """The states with which a block is left other than at its end."""

    raised: int = 0
    broken: int = 0
    continued: int = 0
    returned: int = 0


@dataclass(slots=True)
class Watch:
    """A question about one read: may the program go on, from there, without coming to a read of the
    variable that it had before?

    ``old`` says of a node that reads (or binds: True) the variable whether it was there before.
    """

    read: Read
    old: Callable[[ast.AST, bool], bool]
    bit: int
    escaped: bool = False


class Evaluation:
    """Evaluates the expressions of a frame, and collects the states in which it is left."""

    def __init__(self, flow: Flow, frame: Frame, watch: Watch | None = None) -> None:
        self.flow = flow
        self.frame = frame
        self.watch = watch
        self.ways = Ways()
        self.scope = frame.scope

    # ------------------------------------------------------------------ events
    def bind(self, node: ast.AST, state: int, *, unbinds: bool = False) -> int:
        bit = self.frame.at[node, unbinds]
        definition = self.frame.definitions[bit]
        if not state or definition is None:
            return state
        variable = self.frame.variables[definition.key]
        watch = self.watch
        if (
            watch is not None
            and watch.read.key == definition.key
            and state >> watch.bit & 1
            and watch.old(node, True)
        ):
            watch.escaped = True
        return state & ~variable.every | 1 << bit

    def read(self, node: ast.Name, state: int) -> int:
        owner = self.scope.owner(node.id)
        variable = self.frame.variables.get((owner, node.id)) if owner is not None else None
        self.ways.raised |= state
        if variable is None or owner is None or not state:
            return state
        if self.watch is None:
            self.flow.note(node, self.frame, state & variable.every)
        return self._asked((owner, node.id), variable, node, state, surely=True)

    def _asked(
        self, key: Key, variable: Variable, node: ast.expr, state: int, *, surely: bool
    ) -> int:
        """The variable is read here; not ``surely`` by a function that may come by without."""
        watch = self.watch
        if watch is not None and key == watch.read.key:
            if node is watch.read.node:
                return state | 1 << watch.bit
            return state & ~(1 << watch.bit) if surely and watch.old(node, False) else state
        if variable.judged and watch is None and (state & variable.without or variable.taken):
            self.flow.found(Read(key[0].path, key[1], node, key, self.frame))
        if not surely or not self.flow.learning:
            return state
        known = state & ~variable.without
        return known if known & variable.every or variable.given else 0

    # ------------------------------------------------------------------ expressions
    def expr(self, node: ast.AST | None, state: int) -> int:
        """Evaluate; the state after it."""
        if node is None or not state or isinstance(node, IDLE):
            return state
        if isinstance(node, ast.Name):
            return (
                self.read(node, state) if isinstance(node.ctx, ast.Load) else self.bind(node, state)
            )
        method = _EXPRESSIONS.get(type(node))
        if method is not None:
            return method(self, node, state)
        for child in ast.iter_child_nodes(node):
            state = self.expr(child, state)
        self.ways.raised |= state
        return state

    def test(self, node: ast.expr, state: int) -> tuple[int, int]:
        """Evaluate a test; the states in which it is true, and false."""
        if isinstance(node, ast.Constant):
            return (state, 0) if node.value else (0, state)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.test(node.operand, state)[::-1]
        if isinstance(node, ast.BoolOp):
            going, leaving = state, 0
            for value in node.values:
                yes, no = self.test(value, going)
                going, left = (yes, no) if isinstance(node.op, ast.And) else (no, yes)
                leaving |= left
            return (going, leaving) if isinstance(node.op, ast.And) else (leaving, going)
        state = self.expr(node, state)
        return state, state

    def boolop_(self, node: ast.BoolOp, state: int) -> int:
        yes, no = self.test(node, state)
        return yes | no

    def ifexp_(self, node: ast.IfExp, state: int) -> int:
        yes, no = self.test(node.test, state)
        return self.expr(node.body, yes) | self.expr(node.orelse, no)

    def namedexpr_(self, node: ast.NamedExpr, state: int) -> int:
        return self.bind(node.target, self.expr(node.value, state))

    def lambda_(self, node: ast.Lambda, state: int) -> int:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            state = self.expr(default, state)
        return state

    def call_(self, node: ast.Call, state: int) -> int:
        for child in ast.iter_child_nodes(node):
            state = self.expr(child, state)
        self.ways.raised |= state
        if not state or self._ends(node):
            return 0
        function = self.flow.called(node, self.scope)
        if function is None:
            return state
        module = self.flow.variables.module.scope
        for name in sorted(self.flow.read_by(function)) if self.frame.scope is module else ():
            if (variable := self.frame.variables.get((module, name))) is not None:
                state = self._asked((module, name), variable, node, state, surely=False)
        for name in self.flow.bound_by(function):
            if (variable := self.frame.variables.get((module, name))) is not None:
                state &= ~variable.without
        return state if self.flow.returns(function) else 0

    def _ends(self, call: ast.Call) -> bool:
        words = ast.unparse(call.func) if isinstance(call.func, ast.Attribute | ast.Name) else ""
        if words not in _ENDS:
            return False
        return "." in words or self.scope.owner(words) is None

    def comprehension_(self, node: Comprehension, state: int) -> int:
        """The elements, as a loop; those of a generator expression are evaluated here too, for
        which its first use has to wait.
        """
        first, *others = node.generators
        state = self.expr(first.iter, state)
        around, self.scope = self.scope, self.flow.variables.scopes[node]
        inner = self.target(first.target, state)
        skipped = 0
        for test in first.ifs:
            inner, no = self.test(test, inner)
            skipped |= no
        for generator in others:
            inner = self.expr(generator.iter, inner)
            skipped |= inner
            inner = self.target(generator.target, inner)
            for test in generator.ifs:
                inner, no = self.test(test, inner)
                skipped |= no
        for element in elements(node):
            inner = self.expr(element, inner)
        self.scope = around
        return state | inner | skipped

    def target(self, node: ast.AST, state: int) -> int:
        """Assign to a target."""
        if isinstance(node, ast.Name):
            return self.bind(node, state)
        if isinstance(node, ast.Tuple | ast.List):
            self.ways.raised |= state
            for t in node.elts:
                state = self.target(t, state)
            return state
        return (
            self.target(node.value, state)
            if isinstance(node, ast.Starred)
            else self.expr(node, state)
        )


_EXPRESSIONS: dict[type[ast.AST], Callable[[Evaluation, Any, int], int]] = {
    ast.BoolOp: Evaluation.boolop_,
    ast.IfExp: Evaluation.ifexp_,
    ast.NamedExpr: Evaluation.namedexpr_,
    ast.Lambda: Evaluation.lambda_,
    ast.Call: Evaluation.call_,
    **dict.fromkeys(
        (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), Evaluation.comprehension_
    ),
}
