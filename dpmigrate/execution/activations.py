"""Functions of the program while they run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dpmigrate.execution import divergence
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.classes import FunctionParts
from dpmigrate.execution.control import Raised
from dpmigrate.execution.in_place import InPlaceParts
from dpmigrate.execution.joins import join, one_value
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.objects import Delta, Object
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import NONE, Atom, Setting, Value


@dataclass(slots=True)
class Summary:
    """What a call did: what it read, what it wrote, its result, the objects that it made, and what
    it raised.
    """

    reads: Delta
    writes: Delta
    result: Value
    made: frozenset[int] = frozenset()
    raised: tuple[Raised, ...] = ()


def _one_variable(function: ast.AST, *, alive: bool) -> bool:
    """Whether a function gives one variable on each way, which is bound once, outside of loops: whichever way
    a rank takes, it gives what the others give, unless that is changed in place.
    """
    if alive or not isinstance(function, ast.FunctionDef):
        return False
    inside = list(ast.walk(function))
    if any(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Global | ast.Nonlocal) for n in inside[1:]):
        return False
    given = [n.value for n in inside if isinstance(n, ast.Return)]
    names = {n.id if isinstance(n, ast.Name) else "" for n in given}
    if len(names) != 1 or "" in names:
        return False
    (name,) = names
    if any(name in (getattr(n, "name", ""), getattr(n, "asname", ""), getattr(n, "rest", "")) for n in inside[1:]):
        return False  # an exception, an import, a pattern
    bound = [n for n in inside if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)]
    given_in = [n for n in inside if isinstance(n, ast.arg) and n.arg == name]
    assigned = [t for s in function.body if isinstance(s, ast.Assign) for t in s.targets if t in bound]
    return len(bound) + len(given_in) == 1 and bound == assigned


class ActivationParts(InPlaceParts):
    """One execution of a function, and what it did."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        #: the functions under way, each with the object whose method it is
        self._stack: list[tuple[ast.AST, Atom | None]] = []
        #: what the calls in the one under way have cost
        self._below = 0
        #: the closures that were made in a frame
        self._closures: dict[int, list[Object]] = {}

    def _executed(
        self, function: Object, receiver: Atom | None, given: Arguments, context: int
    ) -> Summary:
        parts: FunctionParts = function.extra
        heap = self.heap
        begun, outside, self._below = self.cost, self._below, 0
        heap.reading()
        inner = self.frame_of(function, receiver, context)
        results: list[Value] = []
        heap.mark()
        inner.level = heap.level
        raised: dict[Raised, None] = {}
        self.leaving.append((len(self.control), raised))
        self._begin(inner, parts)
        modes = self._modes_of(function)
        finished = False
        try:
            self.bind_arguments(function, given, inner)
            if isinstance(parts.node, ast.Lambda):
                results.append(self.evaluate(parts.node.body, inner))
                alive = bool(results[-1])
            else:
                alive = self.block(parts.node.body, inner)
                if alive:
                    results.append(NONE)
            finished = True
        finally:
            parted = self._end()
            self.leaving.pop()
            if not finished:
                heap.rollback()
                self._spent(parts.node, begun, outside)
        given_back = [*results, *(v for v, _ in inner.returns)]
        result = join(*given_back)
        same = one_value(result) or (len(result) == 1 and isinstance(result[0], Setting) and _one_variable(parts.node, alive=alive))
        if parted is not None and len(given_back) > 1 and not same:
            result = divergence.differing(result, parted)
        own = None if parts.names.closures else inner.number
        if not modes and self._one_way(alive, inner):
            places, _ = heap.adopt(own)
        else:
            outcomes = self._ways(heap.rollback(), inner, modes, alive=alive, own=own)
            heap.apply(outcomes, self.merging(parted))
            places = [at for d in outcomes for at in d]
        writes = {at: heap.read(at) for at in places}
        made = heap.made_since()
        reads = heap.read_since(inner.number)
        self._spent(parts.node, begun, outside)
        return Summary(reads, writes, result, made, tuple(raised))

    def done_again(self, known: Iterable[Summary]) -> Summary | None:
        """The first of some summaries that holds here, carried out."""
        for summary in known:
            if self.ending and any(one.kind == self.ending[-1] for one in summary.raised):
                continue  # what is written on the way to the end is in no summary
            if self.heap.unchanged(summary.reads):
                self._carry_out(summary)
                return summary
        return None

    def _carry_out(self, summary: Summary) -> None:
        self.heap.note(summary.reads)
        self.heap.work += 2 * len(summary.writes)
        for at, new in summary.writes.items():
            self.heap.write_again(at, new)
        self.heap.remake(summary.made)
        self.raise_again(summary.raised)

    def _spent(self, node: ast.AST, begun: int, outside: int) -> None:
        """A call that began at a cost has ended; ``outside``: that of the calls before it in its caller."""
        whole = self.cost - begun
        self.costs[node] = self.costs.get(node, 0) + whole - self._below
        self._below = outside + whole

    def _one_way(self, alive: bool, inner: Frame) -> bool:
        """Whether a call has one way to its end, behind which nothing else was written."""
        if alive or len(inner.returns) != 1:
            return alive and not inner.returns
        return self.heap.is_last(inner.returns[0][1])

    def _ways(self, last: Delta, inner: Frame, modes: Delta, *, alive: bool, own: int | None) -> list[Delta]:
        """What the ways to the end of a call have written, without what nobody sees any more."""
        outcomes = [*([last] if alive else []), *(d for _, d in inner.returns)]
        for outcome in outcomes:
            outcome.update({at: v for at, v in modes.items() if at in outcome})
        if own is not None:
            outcomes = [{at: v for at, v in d.items() if at[0] != own} for d in outcomes]
        return [last] if not outcomes and self.endless else outcomes

    def _begin(self, inner: Frame, parts: FunctionParts) -> None:
        self._stack.append((parts.node, inner.receiver))
        self.heap.scopes.append(inner.number)
        self.trace.reached.add(parts.node)
        self.asking, self.later = "", False  # whoever asked, it was not for what this takes
        inner.slot = len(self.control)
        self.control.append(None)
        if parts.names.closures:
            if any(f.kept for f in self._closures.get(inner.number, ())):
                inner.weak = True  # a closure of an earlier call still sees these variables
                return
            for name in list(self.heap.fields.get(inner.number, ())):
                self.heap.write((inner.number, name), None)

    def _modes_of(self, function: Object) -> Delta:
        """Set the modes of the process that a decorator gives a function; what they were before."""
        names = [n for n in self.heap.fields.get(function.number, ()) if isinstance(n, str)]
        before: Delta = {}
        for name in names:
            held = self.heap.read((function.number, name)) if name.startswith("mode ") else None
            if held:
                before[(PROCESS, name)] = self.heap.read((PROCESS, name))
                self.heap.write((PROCESS, name), held)
        return before

    def _end(self) -> Parting | None:
        self._stack.pop()
        self.heap.scopes.pop()
        return self.control.pop()

    def merging(self, parted: Parting | None) -> Callable[[Value], Value] | None:
        """What becomes of values on which the outcomes of parted ranks differ."""
        if parted is None:
            return None
        return lambda v: divergence.differing(v, parted)

    def under_way(self) -> list[ast.AST]:
        return [node for node, _ in self._stack]
