"""Calls of functions of the program, and summaries of what they did."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dpmigrate.execution import placements
from dpmigrate.execution.activations import ActivationParts, Summary
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.classes import FunctionParts
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import DEPTH, Frame
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Call
from dpmigrate.execution.values import (
    NOTHING,
    UNBOUND,
    Atom,
    Bound,
    Data,
    Items,
    Method,
    Ref,
    Super,
    Unknown,
    Value,
    unknown,
    value,
)
from dpmigrate.execution.widening import counted, widened

#: contexts of one function that are kept apart
CONTEXTS = 12
#: steps, after which calls of one function are told apart by their receivers alone
COARSE = 60_000
#: summaries of one function in one context with the same arguments
SUMMARIES = 4
#: what a call costs of which a summary holds, in places of the store
_CALL = 16
#: rounds in which a function that calls itself must settle
ROUNDS = 8
#: executions of one function, or of one object's method, after which a summary of all stands for the rest
EXECUTIONS = 400


#: what may call itself: a function, and of a method the object whose it is. A block of a U-Net calls the
#: ``forward`` of the block inside of it, which is another object.
Unit = tuple[int, Atom | None]


@dataclass(slots=True)
class Suspended:
    """A generator that has not run yet."""

    function: Object
    receiver: Atom | None
    arguments: Arguments


class SummaryParts(ActivationParts):
    """A function is executed once for each context, and again where what it read has changed."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._summaries: dict[object, list[Summary]] = {}
        self._contexts: dict[ast.AST, set[object]] = {}
        self._executions: dict[tuple[int, Atom | None], int] = {}
        self._last: dict[int, Summary] = {}
        #: what a call of a function that is under way already is taken to do
        self._assumed: dict[Unit, Summary] = {}
        #: what the inner calls of such a function are given
        self._given: dict[Unit, Arguments] = {}
        self._round = 0
        #: functions whose results rest on such an assumption
        self._cut: set[Unit] = set()
        #: contexts of functions for whoever calls them, all ranks or some; None: there is none
        self._shared: dict[tuple[int, Atom | None, str], int | None] = {}

    def context(
        self, function: Object, receiver: Atom | None, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> int:  # fmt: skip
        """The number of the call chain that ends here; beyond a bound, one for a function and how what
        it is given lies: what it makes of a batch is kept apart from what it makes of one fixed sample.
        """
        key: object = ("call", frame.context, id(node), function.number, receiver)
        assert function.node is not None
        seen = self._contexts.setdefault(function.node, set())
        merged = key not in seen and (len(seen) >= CONTEXTS or self.steps > COARSE)
        if merged:
            lying = frozenset(k for v in arguments.all() for k in self._kinds_in(v))
            key = ("call", function.number, receiver if len(seen) < 2 * CONTEXTS else None, lying)
        seen.add(key)
        number = self.heap.number(key)
        if merged or frame.context in self.heap.merged:
            self.heap.merged.add(number)
        self.trace.lead(number, Call(frame.context, node, function.name))
        return number

    def invoke(
        self, function: Object, receiver: Atom | None, arguments: Arguments, node: ast.AST,
        frame: Frame,
    ) -> Value:  # fmt: skip
        """Call a function of the program."""
        parts: FunctionParts = function.extra
        if "staticmethod" in function.marks:
            receiver = None
        if parts.names.generator:
            made = self.heap.new(
                "generator", function.name, node, frame.context, key=function.number
            )
            made.extra = Suspended(function, receiver, arguments)
            return value(Ref(made.number))
        if len(self._stack) > DEPTH:
            return self.miss("calls are nested too deeply", node, frame)
        depth = self._stack.count((parts.node, receiver))
        unit = (function.number, receiver)
        if depth >= 2:
            self._general(unit, arguments, node)
            return self._assume(unit)
        if depth and unit in self._given:
            arguments = _wider(self._given[unit], arguments)
        shared = self._shared.get((function.number, receiver, self.regime))
        context = shared or self.context(function, receiver, arguments, node, frame)
        if shared:
            self.trace.lead(shared, Call(frame.context, node, function.name))
        given = arguments if receiver is None else arguments.after(value(receiver))
        self.heap.work += _CALL
        key = (function.number, context, given.key(), self.regime)
        self.forget_written(function)
        summary = self.done_again(self._summaries.get(key, ()))
        if summary is None:
            summary = self._summarised(function, receiver, given, node, context)
            held = self._summaries.setdefault(key, [])
            self._share(function, receiver, context, summary)
            if not self._cut:
                held[:] = [summary, *held[: SUMMARIES - 1]]
        self.hand_back(function, bound=receiver is not None, node=node, frame=frame)
        return summary.result

    def _kinds_in(self, v: Value) -> Iterator[Kind]:
        """How data in a value lie that are not the same on all ranks, those of its lists and dictionaries too; who looks is not noted."""
        for a in v:
            if isinstance(a, Data):
                if a.placement.kind not in placements.EQUAL:
                    yield a.placement.kind
            elif isinstance(a, Items):
                for inner in a.items:
                    yield from self._kinds_in(inner)
            elif isinstance(a, Ref) and self.heap.objects[a.object].kind in ("list", "dict"):
                held = (b for _, found in self.heap.peek(a.object) for b in found if isinstance(b, Data))
                yield from self._kinds_in(tuple(held))

    def _general(self, unit: Unit, given: Arguments, node: ast.AST) -> None:
        """What inner calls of a function that calls itself are given, all of them together."""
        before = self._given.get(unit)
        both = given if before is None else _wider(before, given)
        if before is not None and both.key() != before.key():
            both = both.mapped(
                counted if self._round < ROUNDS - 3 else lambda v: widened(v, node, NOTHING)
            )
        self._given[unit] = both

    def _assume(self, unit: Unit) -> Value:
        """What is known so far of a function that calls itself, for its inner call."""
        self._cut.add(unit)
        assumed = self._assumed.get(unit)
        if assumed is None:
            return NOTHING
        for at, new in assumed.writes.items():
            self.heap.widen(at, new if new is not None else value(UNBOUND))
        self.heap.remake(assumed.made)
        self.raise_again(assumed.raised)
        return assumed.result

    def _share(
        self, function: Object, receiver: Atom | None, context: int, summary: Summary
    ) -> None:
        """One context will do for a function that leaves no object of its own behind."""
        key = (function.number, receiver, self.regime)
        values = [v for at, v in summary.writes.items() if v and at[0] not in summary.made]
        if any(_refers(v, summary.made) for v in (*values, summary.result)):
            self._shared[key] = None
        else:
            self._shared.setdefault(key, context)

    @property
    def under_assumption(self) -> bool:
        """Whether a function that calls itself is under way, and what its inner calls do is assumed."""
        return bool(self._cut)

    def _summarised(
        self, function: Object, receiver: Atom | None, given: Arguments, node: ast.AST, context: int
    ) -> Summary:
        of = (function.number, receiver)
        count = self._executions[of] = self._executions.get(of, 0) + 1
        last = self._last.get(function.number)
        if count > EXECUTIONS and last is not None:
            self._havoc(given, unknown(function.name, node))
            return self._not_followed(function, last, node, context)
        outermost = (function.extra.node, receiver) not in self._stack
        given_key: object = None
        for turn in range(ROUNDS):
            summary = self._executed(function, receiver, given, context)
            if of not in self._cut or not outermost:
                break
            self._cut.discard(of)
            self._round = turn
            before = given_key
            given_key = self._given[of].key()
            settled = self._settled(of, summary, node, turn)
            if settled and before == given_key:
                break
        if outermost:
            self._assumed.pop(of, None)
            self._given.pop(of, None)
        self._last[function.number] = _added(last, summary)
        return summary

    def _settled(self, unit: Unit, summary: Summary, node: ast.AST, turn: int) -> bool:
        """Whether a function that calls itself does no more than was assumed; else assume more."""
        assumed = self._assumed.get(unit)
        both = _both(assumed, summary) if assumed is not None else summary
        if assumed is not None and both.result == assumed.result and both.writes == assumed.writes:
            return True
        if turn >= ROUNDS - 3:
            writes = {at: widened(v, node, NOTHING) if v else v for at, v in both.writes.items()}
            both = Summary({}, writes, widened(both.result, node, NOTHING), both.made, both.raised)
        elif turn:
            writes = {at: counted(v) if v else v for at, v in both.writes.items()}
            both = Summary({}, writes, counted(both.result), both.made, both.raised)
        self._assumed[unit] = both
        return False

    def _not_followed(
        self, function: Object, last: Summary, node: ast.AST, context: int
    ) -> Summary:
        """A function that is called too often: what it did so far, and what nobody knows."""
        word = f"{function.name} is called too often to be followed"
        self.trace.miss(word, node, context)
        doubt = Unknown(word, node)
        for at, new in last.writes.items():
            old = self.heap.read(at)
            if new != old:
                self.heap.write(at, join(old or NOTHING, new or value(UNBOUND), value(doubt)))
        self.heap.remake(last.made)
        self.raise_again(last.raised)
        return Summary({}, {}, join(last.result, value(doubt)))

def _wider(a: Arguments, b: Arguments) -> Arguments:
    """Either of what two calls give."""
    if len(a.positional) != len(b.positional) or set(a.keywords) != set(b.keywords):
        return Arguments(star=join(a.joined(), b.joined()), stars=join(a.joined(), b.joined()))
    return Arguments(
        [join(x, y) for x, y in zip(a.positional, b.positional, strict=True)],
        {k: join(v, b.keywords[k]) for k, v in a.keywords.items()},
        join(a.star, b.star),
        join(a.stars, b.stars),
    )


def _refers(v: Value, made: frozenset[int]) -> bool:
    """Whether a value holds one of some objects."""
    return any(
        (isinstance(a, Ref) and a.object in made)
        or (isinstance(a, Bound | Method | Super) and _refers((a.receiver,), made))
        or (isinstance(a, Items) and any(_refers(x, made) for x in a.items))
        for a in v
    )


def _both(a: Summary, b: Summary) -> Summary:
    """Either of two summaries of one function."""
    return _added(_added(None, a), b)


def _added(a: Summary | None, b: Summary) -> Summary:
    """Either of two summaries of one function; the first is changed."""
    if a is None:
        return Summary({}, dict(b.writes), b.result, b.made, b.raised)
    for at, new in b.writes.items():
        held = a.writes.get(at)
        a.writes[at] = join(held or value(UNBOUND), new or value(UNBOUND)) if held != new else new
    a.result, a.made = join(a.result, b.result), a.made | b.made
    a.raised = tuple(dict.fromkeys((*a.raised, *b.raised)))
    return a
