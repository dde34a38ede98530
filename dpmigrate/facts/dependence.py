"""Which statements only some ranks may run, or run more often: the tests, loops and handlers round them decide (control dependence).

What makes a test uniform is asked of the proof of which this is a part (``control``).
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Collection

from dpmigrate.facts.definitions import through
from dpmigrate.facts.library import PROGRESS
from dpmigrate.facts.names import FunctionNode, Loop, Names, last, position
from dpmigrate.facts.nodes import walk

#: what runs a function beside the program's own flow
_BESIDE = frozenset({"signal.signal", "threading.Thread", "threading.Timer"})


class ControlDependence(ABC):
    """What stands round a statement, for a proof that knows which expressions are uniform; ``decided`` are tests that the ranks decide together."""

    def __init__(self, names: Names, decided: Collection[ast.AST] = ()) -> None:
        self.names = names
        self.decided = decided

    @abstractmethod
    def expression(self, node: ast.AST) -> bool:
        """Whether the expression has the same value on every rank."""

    @abstractmethod
    def test(self, node: ast.AST) -> bool:
        """Whether the test falls out alike on every rank."""

    @abstractmethod
    def element(self, source: ast.expr, path: tuple[int | str, ...]) -> bool:
        """Whether what a loop over ``source`` gives in each turn is uniform."""

    @abstractmethod
    def first(self, *key: object) -> bool:
        """Whether this is asked for the first time in the proof."""

    def parted(self, node: ast.AST, reader: ast.AST, shared: bool) -> bool:
        """Whether some ranks may pass the node by, or pass it more often: the tests, loops and handlers round it decide."""
        inner = node
        for a in self.names.ancestors(node):
            if isinstance(a, FunctionNode | ast.Lambda) and shared and _at_any_time(self.names, a):
                return True
            if isinstance(a, FunctionNode):
                if not shared or not self.first("p", a):
                    return False
                return any(self.parted(c, reader, True) for c in self.names.calls_of(a))
            if isinstance(a, ast.If | ast.While | ast.IfExp) and inner is not a.test and a.test not in self.decided and not self.test(a.test):
                return True
            if isinstance(a, ast.match_case) and not self.expression(self.names.parent[a].subject):  # type: ignore[attr-defined]
                return True
            if isinstance(a, ast.ExceptHandler) and not _about_imports(a):
                return True
            if isinstance(a, ast.Try) and self._may_miss(a, inner, reader):
                return True
            if isinstance(a, ast.For | ast.AsyncFor) and inner is not a.iter and not self._turns(a.iter):
                return True
            if isinstance(a, Loop) and any(self._skips(n, a) for n in walk(a) if isinstance(n, ast.Continue) and position(n) < position(node)):
                return True
            inner = a
        return False

    def _may_miss(self, guard: ast.Try, inner: ast.AST, reader: ast.AST) -> bool:
        """Whether an exception may keep a rank from a statement of the body and let it come to the reader all the same."""
        if (
            inner in guard.finalbody
            or inner is guard.body[0]
            or isinstance(inner, ast.ExceptHandler)
            or any(self.names.is_inside(reader, s) for s in guard.body)
        ):
            return False
        return not all(_about_imports(h) for h in guard.handlers)

    def _turns(self, source: ast.expr) -> bool:
        """Whether the ranks make as many turns of a loop: loaders are cut to the same length, the contents of a batch are not."""
        while (inner := through(self.names, source, PROGRESS | {"enumerate"})) is not None:
            source = inner
        if isinstance(source, ast.Call) and counted_turns(self.names, source):
            return all(self.expression(x) for x in source.args)
        return not self.of_batch(source, frozenset())

    def of_batch(self, node: ast.AST, seen: frozenset[str]) -> bool:
        """Whether the value is made of what a loop takes from data in its turns; ``seen`` are the variables that are being looked at."""
        for n in walk(node):
            if not isinstance(n, ast.Name) or n.id in seen:
                continue
            for b in self.names.bindings(self.names.scope_of[n], n.id):
                if b.how == "for" and isinstance(b.value, ast.expr) and not self.element(b.value, b.path):
                    return True
                made = isinstance(b.value, ast.Call) and "loader" in last(b.value.func).lower()
                if b.how == "assign" and b.value is not None and not made and self.of_batch(b.value, seen | {n.id}):
                    return True
        return False

    def _skips(self, node: ast.AST, loop: Loop) -> bool:
        """Whether a ``continue`` of this loop may be taken by some ranks only."""
        if next(a for a in self.names.ancestors(node) if isinstance(a, Loop)) is not loop:
            return False
        around = self.names.ancestors(node, below=loop)
        return any(isinstance(x, ast.ExceptHandler) or (isinstance(x, ast.If) and not self.test(x.test)) for x in around)


def counted_turns(names: Names, call: ast.Call) -> bool:
    """``range(n)`` and its like: numbers, counted up."""
    return names.dotted(call.func) in ("?.range", "itertools.count") or last(call.func) == "trange"


def _at_any_time(names: Names, function: FunctionNode | ast.Lambda) -> bool:
    """Whether a signal or a thread runs the function: at another point of the program on every rank."""
    uses: list[ast.AST] = [function] if isinstance(function, ast.Lambda) else [*names.reads(function.name), *names.attributes(function.name)]
    for node in uses:
        parent = names.parent[node]
        call = names.parent[parent] if isinstance(parent, ast.keyword) else parent
        if isinstance(call, ast.Call) and call.func is not node and names.dotted(call.func) in _BESIDE:
            return True
    return False


def _about_imports(handler: ast.ExceptHandler) -> bool:
    """``except ImportError:`` falls out alike on all ranks; an interrupt from the keyboard comes to all of them."""
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(isinstance(t, ast.Name) and t.id in ("ImportError", "ModuleNotFoundError", "KeyboardInterrupt") for t in types)
