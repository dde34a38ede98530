"""What happened while a program was executed: events, by node and call chain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from dpmigrate.execution.joins import join
from dpmigrate.execution.values import Origin, Value

#: values of events that are gathered, and not joined: each of several numbers may be told, whatever stands beside it
COLLECTED = frozenset({"numbers"})
#: how many of them are told apart
MANY = 64
#: events that say how a value is come by, and no more
_QUIET = frozenset((
    "append", "attribute", "augmented", "axes taken for equal", "batch", "batch divided", "branch",
    "choice", "class asked", "class read", "device of a setting", "in place", "item", "loop", "made",
    "maybe unbound", "method of a module", "metric", "move", "no attribute", "numbered device", "one of the samples", "partners",
    "pass", "requires grad", "squeeze", "taken for samples", "through", "through a method", "typed",
    "unbound", "unsupported device",
))  # fmt: skip


@dataclass(slots=True, eq=False)
class Event:
    """Something that happened at a node in a context, on every path that comes there.

    ``values`` are joined where it happened several times. ``parted`` says why not every rank may
    come here, None where all do.
    """

    kind: str
    node: ast.AST
    context: int
    values: dict[str, Value]
    parted: Parting | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Parting:
    """Why only some ranks may come to a place; not ``certain`` where a condition is not
    established.

    ``turns``: the ranks go through a loop of which each has turns of its own. ``in_turn``: the
    data of such a turn decide, as they do on one process. ``sources``: where the data come from
    that decide. All ranks come to the place together (``alike``) in a loop over the ``samples`` of
    a batch and where the place of a sample decides (``placed``); values differ from those of one
    process there.
    """

    origin: Origin
    certain: bool
    turns: bool = False
    in_turn: bool = False
    sources: frozenset[int] = frozenset()
    #: the marks of the data that decide
    marks: frozenset[int] = frozenset()
    #: those of them that what is chosen by it has as well
    handed_on: frozenset[int] = frozenset()
    samples: bool = False
    placed: bool = False
    #: the turns are as many as a rank's batch is padded long
    padding: bool = False
    #: a number decides that was drawn for the rank's own samples, as dropout draws for them
    drawn: bool = False
    #: ``OTHERS`` where samples decide that are not the turn's own
    whose: str = ""

    @property
    def alike(self) -> bool:
        """Whether all ranks come there, each to do the same to samples of its own."""
        return self.samples or self.placed


@dataclass(frozen=True, slots=True)
class Call:
    """The call that a context stands for: where, of what, from which context."""

    context: int
    node: ast.AST | None
    name: str


@dataclass(slots=True, eq=False)
class Trace:
    """The record of a program."""

    events: dict[tuple[str, int, int], Event] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    #: further calls of a context that several share
    others: dict[int, dict[Call, None]] = field(default_factory=dict)
    #: what was not followed: (word, node) -> context
    missed: dict[tuple[str, ast.AST | None], int] = field(default_factory=dict)
    #: functions of the program that were executed
    reached: set[ast.AST] = field(default_factory=set)
    #: statements that were executed
    ran: set[ast.stmt] = field(default_factory=set)
    #: calls of libraries: name -> whether a table has a row for it
    foreign: dict[str, bool] = field(default_factory=dict)
    #: how often something has happened that is more than a value
    told: int = 0
    #: why the execution ended early
    ended: str | None = None

    def note(
        self, kind: str, node: ast.AST, context: int, parted: Parting | None, **values: Value
    ) -> Event:
        """An event; the same one at the same place in the same context."""
        self.told += kind not in _QUIET
        key = (kind, id(node), context)
        event = self.events.get(key)
        if event is None:
            event = Event(kind, node, context, dict(values), parted, len(self.events))
            self.events[key] = event
            return event
        for name, v in values.items():
            held = event.values.get(name, v)
            if name in COLLECTED and len(held) < MANY:
                event.values[name] = tuple(dict.fromkeys((*held, *v)))
            else:
                event.values[name] = join(held, v)
        event.parted = event.parted or parted
        return event

    def of(self, *kinds: str) -> Iterator[Event]:
        """The events of some kinds, in the order in which they first happened."""
        return (e for e in self.events.values() if e.kind in kinds)

    def miss(self, word: str, node: ast.AST | None, context: int) -> None:
        """Something was not followed."""
        self.missed.setdefault((word, node), context)

    def lead(self, context: int, call: Call) -> None:
        """A call leads to a context."""
        if self.calls.setdefault(context, call) != call:
            self.others.setdefault(context, {})[call] = None

    def leading(self, context: int) -> Iterator[Call]:
        """All calls on any way that leads to a context."""
        seen: set[int] = set()
        todo = [context]
        while todo:
            here = todo.pop()
            if here not in seen and here in self.calls:
                seen.add(here)
                for call in (self.calls[here], *self.others.get(here, ())):
                    yield call
                    todo.append(call.context)

    def chain(self, context: int) -> list[Call]:
        """The calls that lead to a context, the innermost first; of several ways the first."""
        found = []
        while (call := self.calls.get(context)) is not None:
            found.append(call)
            context = call.context
        return found
