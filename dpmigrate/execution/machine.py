"""The state of an execution, what its parts ask of each other, and what they ask of the tables.

The parts are classes that derive from one another in a line: control, the machine, names, classes,
attributes, attribute_assignment, containers, items, item_assignment, container_methods, literals,
operators, comprehensions, expressions, definitions, calls, frames, summaries, caches, generators,
branches, patterns, matching, loops, lazily, exceptions, statements, modules, callbacks. ``engine``
puts them together.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from dpmigrate.execution import budget
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.control import Control
from dpmigrate.execution.objects import Delta, Object
from dpmigrate.execution.scopes import Names
from dpmigrate.execution.trace import Event, Parting, Trace
from dpmigrate.execution.values import Atom, Bound, Const, Unknown, Value, value

#: options that have their defaults, and no other values: none, those that are texts (the name of a model, of a loss), all
Defaults = Literal["", "texts", "all"]
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

    def unseen_made(self, m: Machine, made: Object, arguments: Arguments, node: ast.AST, frame: Frame) -> None:
        """Code that nobody knows has made an object of what it was given."""

    def handed_to(self, m: Machine, made: Object) -> Value:
        """What a call of a library's object calls with the same arguments: the model in a wrapper;
        nothing where it is not seen, or the arguments are others.
        """

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

    def lengthened(self, m: Machine, first: list[Value], rest: Value, node: ast.AST, frame: Frame) -> Value:
        """A tuple that begins with some items and goes on with others, of which it is not known how many; nothing where they are as any."""

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


@dataclass(slots=True, eq=False)
class Going:
    """A loop, or that of a comprehension: what it goes over and, once it has ended, whether it may
    have been left before. ``level`` is that of the heap when it began, ``frame`` the number of its
    scope.
    """

    target: ast.expr
    iterable: Value
    level: int
    frame: int
    body: list[ast.stmt] = field(default_factory=list)
    left: bool = False
    #: the containers of which each turn has taken the layer of its number, where, and which part
    picked: dict[tuple[int, ast.AST], Any] = field(default_factory=dict)
    #: the texts of layers that a turn perhaps leaves out
    left_out: set[str] = field(default_factory=set)
    #: what a loss has to be made of that is made of all layers
    witnesses: set[int] = field(default_factory=set)
    #: how many turns are executed each by itself
    turns: int = 1


class Machine(Control):
    """The record of an execution, and what its parts offer each other."""

    def __init__(self, library: Library) -> None:
        super().__init__()
        self.trace = Trace()
        self.library = library
        #: which options of the program have their defaults, and no other values
        self.by_default: Defaults = ""
        #: whether what the ranks draw is taken for the same on all of them
        self.drawn_alike = False
        self.steps = 0
        #: what the execution may cost
        self.allowed = budget.STEPS
        #: what it has cost in each function, without the calls in it
        self.costs: dict[ast.AST, int] = {}
        #: functions of the program that code of libraries was given, and where
        self.handed: dict[Atom, ast.AST] = {}
        #: whether a loop that never ends is under way: what is in the heap then is what stays
        self.endless = False
        #: arguments whose items are all taken by the call that they are given to
        self.at_once: set[ast.AST] = set()
        #: the ``for`` loops under way
        self.going: list[Going] = []
        #: the layers that a test in a loop over them leaves out, by the test and the loop's target,
        #: and whether both its arms use some
        self.left_out: dict[tuple[ast.If, ast.expr], tuple[set[str], bool]] = {}
        #: how many items containers have (``counting``), and what which place has added to them
        self.counted: dict[int, Any] = {}
        self.grown: dict[int, dict[ast.AST | None, Any]] = {}
        #: the containers whose lengths numbers are, by their words
        self.lengths: dict[str, int] = {}
        #: what lists of tuples were made of, one by one (``zip``, ``enumerate``)
        self.paired: dict[int, list[Value]] = {}
        #: the first of the numbers that an iterator gives
        self.beginning: dict[int, int] = {}
        #: containers that are slices: of which one, and which part; the parts that are gone through
        self.slices: dict[int, tuple[int, Any]] = {}
        self.taken_parts: dict[int, dict[Any, set[frozenset[int]]]] = {}

    # ------------------------------------------------------------ budget and record

    def has_default(self, default: Const) -> bool:
        """Whether an option has no other value than this default of it."""
        return self.by_default == "all" or (self.by_default == "texts" and isinstance(default.value, str))

    def step(self) -> None:
        """Count a statement or an expression."""
        self.steps += 1
        if self.steps + self.heap.work // budget.PLACES > self.allowed:
            raise Exhausted

    @property
    def cost(self) -> int:
        """The steps so far, with what has taken as long as a step."""
        return self.steps + self.heap.work // budget.PLACES

    def event(self, kind: str, node: ast.AST, frame: Frame, **values: Value) -> Event:
        """Record what happens here."""
        return self.trace.note(kind, node, frame.context, self.parted, **values)

    def miss(self, word: str, node: ast.AST | None, frame: Frame) -> Value:
        """Something is not followed: it is recorded, and the value is unknown."""
        self.trace.miss(word, node, frame.context)
        return value(Unknown(word, node))

    def unsettled(self) -> None:
        """A loop still changes something after all its rounds: what is said of it may be too little."""
        self.trace.ended = self.trace.ended or "a loop that does not settle is not followed"

    # ------------------------------------------------------------ what the parts offer each other

    @abstractmethod
    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression. NOTHING: it never ends."""

    @abstractmethod
    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        """Execute statements; whether control comes out at the end."""

    @abstractmethod
    def branch(
        self, arms: list[Callable[[], bool]], parted: Parting | None, of: Sequence[int] = ()
    ) -> bool:
        """Run alternatives and join what they leave; ``parted``: why ranks choose differently;
        ``of``: the object that exists in each of them (0: none is known).
        """

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
    def replace_elements(
        self, target: ast.expr, owner: Value, new: Value, node: ast.AST, frame: Frame
    ) -> None:
        """``x.data = y``: the tensor ``x`` has other elements."""

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
    def contents(self, made: Object) -> Value:
        """Anything that a container holds; of a dictionary its values."""

    @abstractmethod
    def known_elements(self, iterable: Value, limit: int = 64) -> list[Value] | None:
        """The elements one by one, where they are known."""

    @abstractmethod
    def kinds(self, made: Object) -> frozenset[str]:
        """What an object is to a library."""

    @abstractmethod
    def of_class(self, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> bool | None:
        """Whether ``type(x)`` is a class, or one of several; None where that is not known, or another comparison."""

    @abstractmethod
    def truth(self, v: Value) -> bool | None:
        """Whether it is true; None where it may be either."""

    @abstractmethod
    def load(self, importer: int, dotted: str, frame: Frame) -> Value | None:
        """A module of the program's own, executed where nothing has imported it yet."""
