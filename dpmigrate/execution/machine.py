"""The state of an execution, what its parts ask of each other, and what they ask of the tables.

The parts are classes that derive from one another in a line: names, classes, attributes,
attribute_assignment, containers, items, item_assignment, container_methods, literals, operators,
comprehensions, expressions, definitions, calls, frames, summaries, caches, generators, branches,
patterns, matching, loops, lazily, exceptions, statements, modules, callbacks.
``engine`` puts them together.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.guards import Guard
from dpmigrate.execution.heap import Heap
from dpmigrate.execution.objects import Delta, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.scopes import Names
from dpmigrate.execution.trace import Event, Parting, Trace
from dpmigrate.execution.values import (
    PLACE,
    Atom,
    Bound,
    Const,
    Data,
    Differs,
    Items,
    Method,
    Origin,
    Ref,
    Unbound,
    Unknown,
    Value,
    value,
)

#: statements and expressions that one program may take; what is longer ends as "not understood"
STEPS = 250_000
#: calls within calls
DEPTH = 60
#: the owner of what belongs to the process: the mode of autograd, the random streams
PROCESS = 0


class Exhausted(Exception):
    """The program is larger than the budget."""


@dataclass(slots=True, eq=False)
class Frame:
    """A scope while it runs.

    ``outer`` are the function scopes round it, the innermost first, each with the names that it
    binds. ``level`` is the heap's when it began; ``returns``, ``breaks`` and ``continues`` what
    each exit wrote since then. ``consumer`` takes what a generator yields, and says whether it
    wants more.
    """

    number: int
    names: Names
    outer: tuple[tuple[int, Names], ...]
    module: int
    context: int
    level: int = 0
    slot: int = 0
    function: Object | None = None
    cls: int | None = None
    receiver: Atom | None = None
    in_class: bool = False
    #: arms of ``if`` statements under way beside which there is another way
    arms: int = 0
    #: what is bound is added to what an earlier call of the same place has bound
    weak: bool = False
    returns: list[tuple[Value, Delta]] = field(default_factory=list)
    consumer: Callable[[Value], bool] | None = None
    breaks: list[Delta] = field(default_factory=list)
    continues: list[Delta] = field(default_factory=list)
    loops: list[tuple[int, int, int]] = field(default_factory=list)  # levels of loop and turn, slot


class Raised(NamedTuple):
    """An exception that leaves a call: which of the methods of ``Machine`` has told it, its name, why
    some ranks alone may raise it, and why only some come to that place of the call.
    """

    how: str
    kind: str
    parted: Parting | None
    inside: Parting | None


class Library(Protocol):
    """Tables of what code outside of the program does.

    Every method answers None where no table has a row; the machine then does what is safe for code
    that nobody knows: the result is UNKNOWN if anything it was given differs between ranks.
    """

    def call(
        self, m: Machine, name: str, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        """A call of a function or class by its dotted name."""

    def method(
        self,
        m: Machine,
        receiver: Atom,
        name: str,
        arguments: Arguments,
        node: ast.AST,
        frame: Frame,
    ) -> Value | None:
        """A call of a method of something that is not an instance of the program's."""

    def attribute(
        self, m: Machine, receiver: Atom, name: str, node: ast.AST, frame: Frame
    ) -> Value | None:
        """An attribute that is no method: a shape, a dtype, a field of a library's object."""

    def called(
        self, m: Machine, receiver: Atom, arguments: Arguments, node: ast.AST, frame: Frame
    ) -> Value | None:
        """A call of an object: of a library's, or of an instance whose class derives from one."""

    def runs(self, m: Machine, made: Object) -> Bound | None:
        """The method of the program that a call of an instance runs, where its class derives from
        one of a library's.
        """

    def takes(self, m: Machine, made: Object, arguments: Arguments) -> bool:
        """Whether an object of a library can be called with the arguments, as far as is known."""

    def constructed(
        self, m: Machine, made: Object, kinds: frozenset[str], arguments: Arguments, node: ast.AST,
        frame: Frame,
    ) -> None:  # fmt: skip
        """The constructor of a library's class runs for an instance of the program's
        (``super().__init__``).
        """

    def operator(
        self, m: Machine, word: str, operands: list[Value], node: ast.AST, frame: Frame
    ) -> Value | None:
        """An operator on data (``@``), an index, a slice: words of Python's data model (``matmul``,
        ``getitem``).
        """

    def begun(self, m: Machine, iterable: Value, node: ast.AST, frame: Frame) -> None:
        """A loop over something begins: before its first element."""

    def unpacked(
        self, m: Machine, new: Value, count: int, star: int | None, node: ast.AST, frame: Frame
    ) -> list[Value] | None:
        """What each of ``count`` targets takes from a value, the one at ``star`` any number of
        items; None where the value is gone through item by item.
        """

    def opening(self, m: Machine, v: Value, node: ast.AST, frame: Frame) -> list[Value]:
        """What a sequence begins with of which no more is known than that."""

    def draws(self, m: Machine, v: Value) -> bool:
        """Whether code that nobody knows, and that is given the value, may take data from it that
        differ between ranks.
        """

    def elements(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> Value | None:
        """What a loop over something takes from it."""

    def each(self, m: Machine, made: Object) -> list[Value] | None:
        """What a loop over an object takes in each of its turns, where that is known one by one."""

    def entered(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> Value | None:
        """``with`` begins; the value is what stands behind ``as``."""

    def left(self, m: Machine, atom: Atom, node: ast.AST, frame: Frame) -> None:
        """``with`` ends."""

    def kinds(self, name: str) -> frozenset[str]:
        """What the instances of a library's class are: ``module``, ``optimizer``, ``dataset`` …"""

    def module(self, name: str) -> bool:
        """Whether a name is that of a module, which cannot be called."""

    def takes_all(self, name: str) -> bool:
        """Whether a function goes at once through all items of what it is given, to their end."""

    def sets_attribute(self, method: str) -> bool:
        """Whether a method of this name sets an attribute by a name that it is given
        (``register_buffer(name, x)``).
        """

    def exported(self, module: str, name: str) -> bool | None:
        """Whether a star import of a library's module brings a name; None: not known."""


class Machine(ABC):
    """The heap, the record and the way control takes."""

    def __init__(self, library: Library) -> None:
        self.heap = Heap()
        self.heap.by_some = lambda: self.parted is not None
        self.trace = Trace()
        self.library = library
        #: whether the options of the program have their defaults, and no other values
        self.by_default = False
        self.steps = 0
        #: functions of the program that code of libraries was given, and where
        self.handed: dict[Atom, ast.AST] = {}
        #: why not all ranks may be here: a slot for each branch, loop, turn and call under way
        self.control: list[Parting | None] = []
        #: whether a loop that never ends is under way: what is in the heap then is what stays
        self.endless = False
        #: levels of the heap at which the turns under way of loops began of which each rank has its
        #: own turns
        self.turns: list[int] = []
        #: the slot of the loop over the samples of a batch that is under way
        self.over_samples: int | None = None
        #: the level of the heap at which it began
        self.samples_since = 0
        #: exceptions that only some ranks raise: how deep in ``control`` the reason stands
        self.raised: list[tuple[int, Parting]] = []
        #: ``try`` statements under way
        self.tries: list[Guard] = []
        #: exceptions that some ranks may raise where they evaluate something: which ``try`` catches
        self.implied: list[tuple[int, Parting]] = []
        #: arguments whose items are all taken by the call that they are given to
        self.at_once: set[ast.AST] = set()
        #: what the calls under way raise, for their summaries: where in ``control`` each begins
        self.leaving: list[tuple[int, dict[Raised, None]]] = []

    # ------------------------------------------------------------ budget and record

    def step(self) -> None:
        """Count a statement or an expression."""
        self.steps += 1
        if self.steps > STEPS:
            raise Exhausted("the program takes more steps than the budget has")

    def event(self, kind: str, node: ast.AST, frame: Frame, **values: Value) -> Event:
        """Record what happens here."""
        return self.trace.note(kind, node, frame.context, self.parted, **values)

    def miss(self, word: str, node: ast.AST | None, frame: Frame) -> Value:
        """Something is not followed: it is recorded, and the value is unknown."""
        self.trace.miss(word, node, frame.context)
        return value(Unknown(word, node))

    # ------------------------------------------------------------ control

    @property
    def parted(self) -> Parting | None:
        """Why not all ranks may be at this point of the program."""
        for p in self.control:
            if p is not None and not p.alike:
                return p
        return None

    @property
    def regime(self) -> str:
        """Which ranks are at this point: ``all``, each in a turn of its ``own``, or ``some``."""
        reasons = [p for p in self.control if p is not None and not p.alike]
        if not reasons:
            return "own" if self.turns else "all"
        return "own" if all(p.turns or p.in_turn for p in reasons) else "some"

    @property
    def each_sample(self) -> bool:
        """Whether this is done in a turn for each sample of a batch."""
        return self.over_samples is not None and len(self.turns) == 1

    def unsettled(self) -> None:
        """A loop still changes something after all its rounds: what is said of it may be too little."""
        self.trace.ended = self.trace.ended or "a loop that does not settle is not followed"

    def raises(self, kind: str = "") -> None:
        """An exception is raised here: where only some ranks come here, only they raise it.

        ``kind`` is its name where that is one of Python's own; any other may be caught by each
        ``try`` round it.
        """
        self._leaves("raises", kind, None)
        for slot, catches, again in reversed(self.tries):
            some = next((p for p in self.control[slot + 1 :] if p is not None and not p.alike), None)
            if (not kind or catches(kind)) and some is not None:
                self.implied.append((slot, some))
                if not again(kind):
                    self._mark(slot, some)
            if kind and catches(kind) and not again(kind):
                return
        for depth in range(len(self.control) - 1, -1, -1):
            found = self.control[depth]
            if found is not None and not found.alike:
                self.raised.append((depth, found))
                return

    def may_raise(self, parted: Parting | None, kind: str) -> None:
        """Some ranks may raise an exception here, by what differs between them.

        Data of one turn are left out: they raise where the program on one process does.
        """
        if parted is None or not parted.certain or parted.alike or parted.in_turn or parted.turns:
            return
        self._leaves("may raise", kind, parted)
        for slot, catches, again in reversed(self.tries):
            if catches(kind):
                self.implied.append((slot, parted))
                if not again(kind):
                    self._mark(slot, parted)
                    return

    def fails(self, kind: str) -> None:
        """Whoever comes here may raise an exception: where only some ranks do, they alone raise it."""
        self._leaves("fails", kind, None)
        for slot, catches, _ in reversed(self.tries):
            if catches(kind):
                some = (p for p in self.control[slot + 1 :] if p is not None)
                self.may_raise(next(some, None), kind)
                return

    def _leaves(self, how: str, kind: str, parted: Parting | None) -> None:
        """Note for the summaries of the calls under way what is raised in them and not caught."""
        for base, noted in self.leaving:
            inside = (g for g in self.tries if g.slot >= base)
            if not (kind and any(g.catches(kind) and not g.again(kind) for g in inside)):
                some = (p for p in self.control[base:] if p is not None and not p.alike)
                noted[Raised(how, kind, parted, next(some, None))] = None

    def raise_again(self, raised: Iterable[Raised]) -> None:
        """What a summary has raised is raised here."""
        for one in raised:
            self.control.append(one.inside)
            match one.how:
                case "raises":
                    self.raises(one.kind)
                case "fails":
                    self.fails(one.kind)
                case _:
                    self.may_raise(one.parted, one.kind)
            self.control.pop()

    def _mark(self, slot: int, parted: Parting) -> None:
        if slot >= len(self.control):
            return
        held = self.control[slot]
        if held is None or (held.alike and not parted.alike) or (held.samples and parted.placed):
            if held is not None and held.samples:
                parted = replace(parted, in_turn=False)  # a sum of some samples is no part of all
            self.control[slot] = parted

    def parting(self, condition: Value, node: ast.AST) -> Parting | None:
        """Why ranks may decide differently by this value, where they may."""
        doubt: Parting | None = None
        for atom in condition:
            match atom:
                case Data() if atom.turn and atom.placement.kind in placements.EQUAL:
                    doubt = doubt or Parting(Origin(node, f"by {PLACE}"), True, placed=True)
                case Data():
                    if atom.placement.kind in (Kind.ZERO, Kind.UNIFORM, Kind.SIZE):
                        continue
                    origin = atom.origin or Origin(node, "condition")
                    if atom.placement.kind is not Kind.UNKNOWN:
                        return Parting(origin, True, in_turn=atom.turn, sources=atom.sources, loops=atom.loops)
                    doubt = Parting(origin, False, sources=atom.sources)
                case Differs():
                    origin = atom.origin or Origin(node, "condition")
                    return Parting(origin, True, sources=atom.sources)
                case Unknown():
                    doubt = Parting(Origin(atom.node or node, atom.word), False)
                case Method():
                    found = self.parting((atom.receiver,), node)
                    if found is not None and found.certain:
                        return found
                    doubt = doubt or found
                case Ref():
                    found = self._parting_length(atom, node)
                    if found is not None and found.certain:
                        return found
                    doubt = doubt or found
                case Items():
                    pass  # its truth is its length
        return doubt

    def _parting_length(self, atom: Ref, node: ast.AST) -> Parting | None:
        """Why a container may be empty on some ranks alone."""
        made = self.heap.objects[atom.object]
        count = self.count(made) if made.kind in ("list", "set", "dict") else None
        return self.parting(count, node) if count else None

    # ------------------------------------------------------------ small helpers

    def object(self, atom: Atom) -> Object | None:
        """The object that an atom refers to."""
        return self.heap.objects.get(atom.object) if type(atom) is Ref else None

    def objects(self, v: Iterable[Atom]) -> list[Object]:
        """The objects that a value may be."""
        made = self.heap.objects
        return [made[a.object] for a in v if type(a) is Ref]

    @staticmethod
    def bound(v: Value) -> Value:
        """The value where it is bound."""
        return tuple(a for a in v if not isinstance(a, Unbound)) if _MAYBE in v else v

    @staticmethod
    def constants(v: Value) -> bool:
        """Whether it is constants only."""
        return all(isinstance(a, Const) for a in v)

    # ------------------------------------------------------------ what the parts offer each other

    @abstractmethod
    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression. NOTHING: it never ends."""

    @abstractmethod
    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        """Execute statements; whether control comes out at the end."""

    @abstractmethod
    def branch(self, arms: list[Callable[[], bool]], parted: Parting | None) -> bool:
        """Run alternatives and join what they leave; ``parted``: why ranks choose differently."""

    @abstractmethod
    def repeat(self, turn: Callable[[], bool], node: ast.AST, parted: Parting | None) -> bool:
        """Turns of a loop, of which there may be none, until nothing changes; whether one of them
        comes to its end.
        """

    @abstractmethod
    def somehow(self, run: Callable[[], Value], parted: Parting | None) -> Value:
        """Something that is begun, and done as far as is not known; ``parted``: further on some ranks."""

    @abstractmethod
    def harmless(self, run: Callable[[], Value]) -> Value | None:
        """What is made here, where making it does nothing else; None: it does, and is undone."""

    @abstractmethod
    def made_later(self, how: str, given: list[Value], node: ast.AST, frame: Frame) -> Value:
        """``map`` and ``filter``, as the generators that they are like."""

    @abstractmethod
    def trips(self, iterable: Value, node: ast.AST) -> Parting | None:
        """Why the ranks may go through different numbers of turns."""

    @abstractmethod
    def call(self, callee: Value, arguments: Arguments, node: ast.AST, frame: Frame) -> Value:
        """Call a value. NOTHING: it never comes back."""

    @abstractmethod
    def attribute(self, owner: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        """An attribute of a value."""

    @abstractmethod
    def set_attribute(
        self, owner: Value, name: str, new: Value, node: ast.AST, frame: Frame
    ) -> None:
        """Store an attribute."""

    @abstractmethod
    def item(self, owner: Value, key: Value, node: ast.AST, frame: Frame) -> Value:
        """``owner[key]``."""

    @abstractmethod
    def set_item(self, owner: Value, key: Value, new: Value, node: ast.AST, frame: Frame) -> None:
        """``owner[key] = new``."""

    @abstractmethod
    def elements(self, iterable: Value, node: ast.AST, frame: Frame) -> Value:
        """What a loop takes from it, any of the turns."""

    @abstractmethod
    def taken(self, iterable: Value, node: ast.AST, frame: Frame) -> Value:
        """What is taken from something that is gone through here, from its beginning."""

    @abstractmethod
    def count(self, made: Object) -> Value:
        """How many items a container has, where that is kept, or where it differs."""

    @abstractmethod
    def contents(self, made: Object) -> Value:
        """Anything that a container holds; of a dictionary its values."""

    @abstractmethod
    def known_elements(self, iterable: Value, limit: int = 64) -> list[Value] | None:
        """The elements one by one, where they are known."""

    @abstractmethod
    def kinds(self, made: Object) -> frozenset[str]:
        """What an object is to a library."""

    @abstractmethod
    def truth(self, v: Value) -> bool | None:
        """Whether it is true; None where it may be either."""

    @abstractmethod
    def load(self, importer: int, dotted: str, frame: Frame) -> Value | None:
        """A module of the program's own, executed where nothing has imported it yet."""


_MAYBE = Unbound()
