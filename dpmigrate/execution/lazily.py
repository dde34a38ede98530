"""Generator expressions, ``map`` and ``filter`` whose items are made where they are taken, and what
takes no more of them than it needs: ``any``, ``all``, ``next``, ``in``.

Where making the items does nothing but give values, all of them are made at once. Else it is a
generator, as it is in Python: who takes fewer of its items has done less of what it does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.classes import FunctionParts
from dpmigrate.execution.divergence import in_no_order, presence
from dpmigrate.execution.identity import alike
from dpmigrate.execution.loop_summaries import LoopSummaryParts
from dpmigrate.execution.machine import Frame
from dpmigrate.execution.objects import EXISTS, Delta
from dpmigrate.execution.scopes import Names, names_of
from dpmigrate.execution.summaries import Suspended
from dpmigrate.execution.values import NOTHING, Foreign, Method, Ref, Value, const, value

#: functions that take items until they know what they give
_TAKING = {"builtins.any": "any", "builtins.all": "all", "builtins.next": "next"}
#: what they do
_TEXTS = {
    "any": "for x in it:\n    if x:\n        r = True\n        break\n",
    "all": "for x in it:\n    if not x:\n        r = False\n        break\n",
    "next": "for x in it:\n    r = x\n    break\n",
    "in": "for x in it:\n    if x == y:\n        r = True\n        break\n",
    "map": "def map(f, it):\n    for x in it:\n        yield f(x)\n",
    "map of several": "def map(f, *its):\n    for x in zip(*its):\n        yield f(*x)\n",
    "until": (
        "def until(f, y):\n    while True:\n        x = f()\n        if x == y:\n"
        "            return\n        yield x\n"
    ),
    "takewhile": (
        "def takewhile(f, it):\n    for x in it:\n        if not f(x):\n            return\n"
        "        yield x\n"
    ),
    "filter": "def filter(f, it):\n    for x in it:\n        if f(x):\n            yield x\n",
}
_TAKER = Names(frozenset(("x", "y", "r")))
_BEFORE = {"any": const(False), "all": const(True), "in": const(False)}
Node = TypeVar("Node", bound=ast.AST)
#: the parameter of a generator expression, as Python names it
_SOURCE = ".0"


class LazyParts(LoopSummaryParts):
    """What is made where it is taken."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._written_out: dict[tuple[ast.AST, str], ast.stmt] = {}

    # ------------------------------------------------------------ made where it is taken

    def taken_at_once(self, node: ast.Call, callee: Value) -> None:
        """Note which arguments of a call are gone through by it, to their end."""
        if callee and all(map(self._takes_all, callee)):
            self.at_once.update((*node.args, *(k.value for k in node.keywords)))

    def _takes_all(self, atom: object) -> bool:
        if isinstance(atom, Foreign):
            return self.library.takes_all(atom.name)
        if isinstance(atom, Method):
            made = self.object(atom.receiver)
            return made is None or made.kind in ("list", "dict", "set")
        return False

    def generator_expression(self, node: ast.GeneratorExp, frame: Frame) -> Value:
        """``(f(x) for x in xs)``."""
        if node in self.at_once:
            return self._comprehension(node, frame)
        found = self.harmless(lambda: self._comprehension(node, frame))
        if found is not None:
            return found
        source = self.evaluate(node.generators[0].iter, frame)
        written = self._as_function(node)
        names = names_of(node)
        names = Names(names.bound | {_SOURCE}, closures=names.closures, generator=True)
        parts = FunctionParts(
            written, tuple(self.scopes(frame)), frame.module, names, frame.cls, frame.receiver
        )
        return self._suspended(parts, [source], node, frame)

    def made_later(self, how: str, given: list[Value], node: ast.AST, frame: Frame) -> Value:
        """``map`` and ``filter``, as the generators that they are like."""
        how = "map of several" if how == "map" and len(given) > 2 else how
        written = self._like(how, node)
        assert isinstance(written, ast.FunctionDef)
        parts = FunctionParts(written, (), frame.module, names_of(written), None)
        return self._suspended(parts, given, node, frame)

    def _suspended(
        self, parts: FunctionParts, given: list[Value], node: ast.AST, frame: Frame
    ) -> Value:
        node_of, context = parts.node, frame.context
        function = self.heap.new("function", "generator", node_of, context, key=frame.number)
        function.many, function.extra = False, parts
        made = self.heap.new("generator", "generator", node, frame.context, key=function.number)
        made.extra = Suspended(function, None, Arguments(given))
        return value(Ref(made.number))

    def harmless(self, run: Callable[[], Value]) -> Value | None:
        """What is made here, where making it does nothing else; None: it does, and is undone."""
        events, raised = self.trace.told, len(self.raised) + len(self.implied)
        self.heap.mark()
        found = run()
        delta = self.heap.rollback()
        quiet = events == self.trace.told and raised == len(self.raised) + len(self.implied)
        if not quiet or self._does_more(delta):
            return None
        self.heap.apply([delta])
        return found

    def _does_more(self, delta: Delta) -> bool:
        """Whether something has changed that was there before."""
        made = {owner for owner, name in delta if name == EXISTS}
        seen = {*self.heap.objects, *self.heap.scopes, 0} - made
        return any(
            at[0] in seen and not alike(self.heap.read(at), new) for at, new in delta.items()
        )

    # ------------------------------------------------------------ taken as far as it is needed

    def takes(self, name: str, arguments: Arguments, node: ast.AST, frame: Frame) -> Value | None:
        """``any``, ``all`` and ``next`` of a generator that begins here; None for all others."""
        how = _TAKING.get(name)
        source = arguments.get(0) or NOTHING
        if how is None or not isinstance(node, ast.Call):
            return None
        if not self._begins_here(source, node.args[:1]):
            return None
        before = _BEFORE.get(how) or arguments.get(1) or NOTHING
        found = self.take(how, source, before, NOTHING, node, frame)
        whole = how != "next" and self._goes_over_sets(source)
        return in_no_order(found) if whole else found  # whichever item of a set it is that decides

    def _goes_over_sets(self, source: Value) -> bool:
        """Whether a generator expression goes over all of a set."""
        begun = [o.extra for o in self.objects(source)]
        given = [v for s in begun if isinstance(s, Suspended) for v in s.arguments.positional]
        return bool(given) and all(map(self.only_sets, given))

    def contains(self, holder: Value, wanted: Value, node: ast.AST, frame: Frame) -> Value | None:
        """``wanted in generator``."""
        made = [self.object(a) for a in holder]
        if not made or any(o is None or o.kind != "generator" for o in made):
            return None
        return self.take("in", holder, _BEFORE["in"], wanted, node, frame)

    def _begins_here(self, source: Value, given: list[ast.expr]) -> bool:
        one = self.object(source[0]) if len(source) == 1 else None
        fresh = any(isinstance(g, ast.GeneratorExp | ast.Call) for g in given)
        return one is not None and one.kind == "generator" and fresh

    def take(
        self, how: str, source: Value, before: Value, wanted: Value, node: ast.AST, frame: Frame
    ) -> Value:
        """Go through something until it is known what that gives."""
        loop = self._like(how, node)
        assert isinstance(loop, ast.For)
        number = self.heap.number(("takes", id(node), frame.number))
        inner = Frame(
            number, _TAKER, (), frame.module, frame.context, level=frame.level, slot=frame.slot,
            function=frame.function, cls=frame.cls, receiver=frame.receiver,
        )  # fmt: skip
        self.heap.write((number, "r"), before or None)
        self.heap.write((number, "y"), wanted or None)
        if not self.go_over(loop, source, inner):
            return NOTHING
        found = self.heap.read((number, "r")) or NOTHING
        why = presence(found)
        if why is not None:
            self.may_raise(why, "StopIteration")
        if not self.bound(found):
            self.fails("StopIteration")
        return self.bound(found)

    # ------------------------------------------------------------ what it is like

    def _like(self, how: str, node: ast.AST) -> ast.stmt:
        """One of the texts, at the place of a node: always the same one."""
        key = (node, how)
        if key not in self._written_out:
            (made,) = ast.parse(_TEXTS[how]).body
            self._written_out[key] = _moved(made, node)
        return self._written_out[key]

    def _as_function(self, node: ast.GeneratorExp) -> ast.FunctionDef:
        """A generator expression as the function that it is."""
        key = (node, "")
        if key not in self._written_out:
            body: list[ast.stmt] = [_placed(ast.Expr(ast.Yield(node.elt)), node)]
            for i, part in reversed(list(enumerate(node.generators))):
                for test in reversed(part.ifs):
                    body = [_placed(ast.If(test, body, []), test)]
                source = part.iter if i else _placed(ast.Name(_SOURCE, ast.Load()), part.iter)
                body = [_placed(ast.For(part.target, source, body, []), node)]
            given = ast.arguments([], [ast.arg(_SOURCE)], None, [], [], None, [])
            made = ast.FunctionDef("generator", given, body, [], None)
            self._written_out[key] = _placed(made, node)
        made_before = self._written_out[key]
        assert isinstance(made_before, ast.FunctionDef)
        return made_before


def _moved(made: ast.stmt, node: ast.AST) -> ast.stmt:
    """A text at the place of a node."""
    for n in ast.walk(made):
        ast.copy_location(n, node)
    return made


def _placed(made: Node, node: ast.AST) -> Node:
    """A new node at the place of another one."""
    return ast.copy_location(made, node)
