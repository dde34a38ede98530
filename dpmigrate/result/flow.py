"""What each name may be where it is read: the definitions that reach it, and whether it may have no value.

One pass over the statements of each frame (``variables``), with a state of one bit for each definition that may be the last one of
its variable; ways that meet are joined by *or*. It is the classic analysis of reaching definitions (Aho, Lam, Sethi, Ullman:
Compilers, 9.2.4), structured by statements. At the head of a loop all definitions in the loop are taken to reach it, which saves
going round and is exact but for a variable that the loop deletes and binds again.

What is assumed: a ``with`` block ends with its exceptions, unless its manager is called ``suppress`` or ``raises``; a call of
``sys.exit`` or of a function of the file that never returns does not return; interrupts between two statements do not occur.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpmigrate.result.variables import (
    Comprehension,
    Definition,
    Frame,
    FunctionNode,
    Key,
    LoopNode,
    Scope,
    Variable,
    Variables,
    elements,
    evaluated_first,
)

_ENDS = frozenset({"sys.exit", "os._exit", "os.abort", "exit", "quit"})
_SWALLOWS = frozenset({"suppress", "raises"})
_WAYS = ("raised", "broken", "continued", "returned")
_IDLE = (ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop)


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """A place at which a variable is read that may have no value; ``within``: the call of a function of the file that reads it, else the name itself."""

    path: str  # of the scope whose variable it is
    name: str
    node: ast.expr
    key: Key
    frame: Frame


@dataclass(slots=True)
class _Ways:
    """The states with which a block is left other than at its end."""

    raised: int = 0
    broken: int = 0
    continued: int = 0
    returned: int = 0


@dataclass(slots=True)
class _Watch:
    """A question about one read: may the program go on, from there, without coming to a read of the variable that it had before?

    ``old`` says of a node that reads (or binds: True) the variable whether it was there before.
    """

    read: Read
    old: Callable[[ast.AST, bool], bool]
    bit: int
    escaped: bool = False


class Flow:
    """The data flow of one file.

    ``learning``: after a name was read it has a value, so that only the first of several reads is unbound; without, each is told
    to which a variable may come that no other code has given a value: ``x = f(x)`` gives it none, since it fails first.
    """

    def __init__(self, tree: ast.Module, *, learning: bool = True) -> None:
        self.variables = Variables(tree)
        self.learning = learning
        self.unbound: list[Read] = []
        self._reaching: dict[ast.AST, tuple[Frame, int]] = {}
        self._found: set[tuple[ast.AST, str]] = set()
        self._functions = self._known_functions()
        self._read_by: dict[str, frozenset[str]] = {}
        self._bound_by: dict[str, set[str]] = {}
        self._returning: set[str] = set()
        frames = self.variables.frames
        self._done: set[Frame] = set()
        for frame in (*frames[1:], frames[0]):
            self._learn(frame, _Run(self, frame).all())
            self._done.add(frame)

    # ------------------------------------------------------------------ answers
    def reaching(self, name: ast.Name) -> list[Definition]:
        """The definitions of the variable that may hold where the name is read, deletions left out; empty for what is of another frame."""
        if name not in self._reaching:
            return []
        frame, state = self._reaching[name]
        return [
            d
            for i, d in enumerate(frame.definitions)
            if d is not None and state >> i & 1 and not d.unbinds
        ]

    def goes_on(self, read: Read, old: Callable[[ast.AST, bool], bool]) -> bool:
        """Whether a program in which the variable has no value may go on from the read, if that is left out, without coming to another for which ``old`` holds.

        Loops run at least once: a program whose loops do nothing is nobody's.
        """
        watch = _Watch(read, old, len(read.frame.definitions))
        ends = _Run(self, read.frame, watch).all()
        return watch.escaped or bool((ends.returned >> watch.bit) & 1)

    # ------------------------------------------------------------------ functions that are called by their names
    def _known_functions(self) -> dict[str, list[Frame]]:
        """The functions of the module that run when they are called: generators and decorated ones do as they like."""
        frames = {f.node: f for f in self.variables.frames}
        module = self.variables.module
        made: dict[str, list[ast.AST]] = {}
        for d in module.definitions:
            if d is not None and d.key[0] is module.scope and d.node is not module.node:
                made.setdefault(d.key[1], []).append(d.node)
        plain = {
            name: nodes
            for name, nodes in made.items()
            if all(isinstance(n, ast.FunctionDef) and not n.decorator_list for n in nodes)
        }
        return {
            name: [frames[n] for n in nodes]
            for name, nodes in plain.items()
            if not any(frames[n].generates for n in nodes)
        }

    def _learn(self, frame: Frame, ends: _Ways) -> None:
        """Note what a function has bound of the module's when it returns, if it ever does."""
        name = getattr(frame.node, "name", "")
        if frame not in self._functions.get(name, ()) or not ends.returned:
            return
        bound = {
            key[1]
            for key, v in frame.variables.items()
            if key[0].kind == "module" and not ends.returned & v.without
        }
        self._bound_by[name] = bound & self._bound_by.get(name, bound)
        self._returning.add(name)

    def called(self, call: ast.Call, scope: Scope) -> str | None:
        """The function of the module that a call by a name means."""
        if not isinstance(call.func, ast.Name) or call.func.id not in self._functions:
            return None
        return call.func.id if scope.owner(call.func.id) is self.variables.module.scope else None

    def read_by(self, name: str) -> frozenset[str]:
        """The module's variables that a function, and all that it calls by their names, may read."""
        if name not in self._read_by:
            todo, seen, found = [name], {name}, set()
            while todo:
                frames = list(self._functions[todo.pop()])
                while frames:
                    frame = frames.pop()
                    frames += frame.inner
                    found |= frame.reads
                    new = (frame.called & self._functions.keys()) - seen
                    todo += new
                    seen |= new
            self._read_by[name] = frozenset(found)
        return self._read_by[name]

    def bound_by(self, name: str) -> set[str]:
        """The module's variables that have a value when the function returns."""
        return self._bound_by.get(name, set())

    def returns(self, name: str) -> bool:
        """Whether a call of the function may come back."""
        return name in self._returning or any(f not in self._done for f in self._functions[name])

    # ------------------------------------------------------------------ what the runs find
    def found(self, read: Read) -> None:
        """Note a read without a value, once."""
        if (read.node, read.name) not in self._found:
            self._found.add((read.node, read.name))
            self.unbound.append(read)

    def note(self, node: ast.AST, frame: Frame, state: int) -> None:
        """Note the definitions that reach a read."""
        before = self._reaching[node][1] if node in self._reaching else 0
        self._reaching[node] = frame, before | state


class _Run:
    """One pass over a frame. A state of 0 is a place that is never reached."""

    def __init__(self, flow: Flow, frame: Frame, watch: _Watch | None = None) -> None:
        self.flow = flow
        self.frame = frame
        self.watch = watch
        self.ways = _Ways()
        self.scope = frame.scope

    def all(self) -> _Ways:
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

    # ------------------------------------------------------------------ events
    def _bind(self, node: ast.AST, state: int, *, unbinds: bool = False) -> int:
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

    def _read(self, node: ast.Name, state: int) -> int:
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
        if node is None or not state or isinstance(node, _IDLE):
            return state
        if isinstance(node, ast.Name):
            return (
                self._read(node, state)
                if isinstance(node.ctx, ast.Load)
                else self._bind(node, state)
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
        return self._bind(node.target, self.expr(node.value, state))

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
        """The elements, as a loop; those of a generator expression are evaluated here too, for which its first use has to wait."""
        first, *others = node.generators
        state = self.expr(first.iter, state)
        around, self.scope = self.scope, self.flow.variables.scopes[node]
        inner = self._target(first.target, state)
        skipped = 0
        for test in first.ifs:
            inner, no = self.test(test, inner)
            skipped |= no
        for generator in others:
            inner = self.expr(generator.iter, inner)
            skipped |= inner
            inner = self._target(generator.target, inner)
            for test in generator.ifs:
                inner, no = self.test(test, inner)
                skipped |= no
        for element in elements(node):
            inner = self.expr(element, inner)
        self.scope = around
        return state | inner | skipped

    def _target(self, node: ast.AST, state: int) -> int:
        """Assign to a target."""
        if isinstance(node, ast.Name):
            return self._bind(node, state)
        if isinstance(node, ast.Tuple | ast.List):
            self.ways.raised |= state
            for t in node.elts:
                state = self._target(t, state)
            return state
        return (
            self._target(node.value, state)
            if isinstance(node, ast.Starred)
            else self.expr(node, state)
        )

    # ------------------------------------------------------------------ statements that bind
    def assign_(self, node: ast.Assign, state: int) -> int:
        lacking = self._lacking(node, state)
        state = self.expr(node.value, state)
        for target in node.targets:
            state = self._target(target, state)
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
            state = self._target(node.target, self.expr(node.value, state))
        elif not isinstance(node.target, ast.Name):
            state = self.expr(node.target, state)
        return (
            state
            if in_function or self.flow.variables.late_annotations
            else self.expr(node.annotation, state)
        )

    def augassign_(self, node: ast.AugAssign, state: int) -> int:
        if isinstance(node.target, ast.Name):
            state = self.expr(node.value, self._read(node.target, state))
            self.ways.raised |= state
            return self._bind(node.target, state) if self.flow.learning else state
        return self.expr(node.value, self.expr(node.target, state))

    def delete_(self, node: ast.Delete, state: int) -> int:
        for target in node.targets:
            state = self._deleted(target, state)
        return state

    def _deleted(self, target: ast.AST, state: int) -> int:
        if isinstance(target, ast.Name):
            return self._bind(target, self._read(target, state), unbinds=True)
        if isinstance(target, ast.Tuple | ast.List):
            for t in target.elts:
                state = self._deleted(t, state)
            return state
        return self.expr(target, state)

    def import_(self, node: ast.Import | ast.ImportFrom, state: int) -> int:
        self.ways.raised |= state
        for alias in node.names:
            if alias.name != "*":
                state = self._bind(alias, state)
                self.ways.raised |= state
        return state

    def functiondef_(self, node: FunctionNode, state: int) -> int:
        for e in evaluated_first(node, late=self.flow.variables.late_annotations):
            state = self.expr(e, state)
        self.ways.raised |= state
        return self._bind(node, state)

    def classdef_(self, node: ast.ClassDef, state: int) -> int:
        for e in evaluated_first(node, late=self.flow.variables.late_annotations):
            state = self.expr(e, state)
        around, self.scope = self.scope, self.flow.variables.scopes[node]
        state = self.block(node.body, state)
        self.scope = around
        self.ways.raised |= state
        return self._bind(node, state)

    def typealias_(self, node: ast.AST, state: int) -> int:
        return self._bind(node.name, state)  # type: ignore[attr-defined]

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
        return self._bind(node, state) if (node, False) in self.frame.at else state

    # ------------------------------------------------------------------ loops
    def _loop(self, node: LoopNode, state: int, turn: Callable[[int], tuple[int, int]]) -> int:
        """``turn`` gives, for a state at the head, those in which the body begins and the loop ends by itself."""
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
            return self._target(node.target, head), head

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
                state = self._target(item.optional_vars, state)
        outer, self.ways.raised = self.ways.raised, 0
        end = self.block(node.body, state)
        if swallows:
            end |= self.ways.raised
        self.ways.raised |= outer | end
        return end

    def try_(self, node: ast.Try, state: int) -> int:
        if not node.finalbody:
            return self._caught(node, state)
        outer, self.ways = self.ways, _Ways()
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
        outer, self.ways = self.ways, _Ways()
        end = self.block(node.body, self._bind(node, state))
        inner, self.ways = self.ways, outer
        for way in _WAYS:
            setattr(
                self.ways,
                way,
                getattr(self.ways, way) | self._bind(node, getattr(inner, way), unbinds=True),
            )
        return self._bind(node, end, unbinds=True)


def _surely_reads(node: ast.expr, name: str) -> bool:
    """Whether evaluating the expression reads the name: as what is called, an argument, what an attribute or item is taken of."""
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


_Step = Callable[[_Run, Any, int], int]
_STATEMENTS: dict[type[ast.AST], _Step] = {
    ast.Assign: _Run.assign_,
    ast.AnnAssign: _Run.annassign_,
    ast.AugAssign: _Run.augassign_,
    ast.Delete: _Run.delete_,
    ast.Import: _Run.import_,
    ast.ImportFrom: _Run.import_,
    ast.FunctionDef: _Run.functiondef_,
    ast.AsyncFunctionDef: _Run.functiondef_,
    ast.ClassDef: _Run.classdef_,
    ast.Return: _Run.return_,
    ast.Raise: _Run.raise_,
    ast.Break: _Run.break_,
    ast.Continue: _Run.continue_,
    ast.Assert: _Run.assert_,
    ast.If: _Run.if_,
    ast.Match: _Run.match_,
    ast.For: _Run.for_,
    ast.AsyncFor: _Run.for_,
    ast.While: _Run.while_,
    ast.With: _Run.with_,
    ast.AsyncWith: _Run.with_,
    ast.Try: _Run.try_,
    ast.TryStar: _Run.try_,
}
if hasattr(ast, "TypeAlias"):  # from Python 3.12 on
    _STATEMENTS[ast.TypeAlias] = _Run.typealias_
_EXPRESSIONS: dict[type[ast.AST], _Step] = {
    ast.BoolOp: _Run.boolop_,
    ast.IfExp: _Run.ifexp_,
    ast.NamedExpr: _Run.namedexpr_,
    ast.Lambda: _Run.lambda_,
    ast.Call: _Run.call_,
    **dict.fromkeys(
        (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), _Run.comprehension_
    ),
}
