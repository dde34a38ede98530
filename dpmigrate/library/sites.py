"""A call of a library, as the rows of the tables see it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dpmigrate.execution import arithmetic, derivation, placements, samples
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import PROCESS, Frame
from dpmigrate.execution.objects import UNSEEN, Object
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NOTHING,
    ONE_SAMPLE,
    Atom,
    Const,
    Data,
    Differs,
    Items,
    Method,
    Origin,
    Ref,
    Unknown,
    Value,
    atom_placement,
    const,
    data,
    known,
    value,
)

#: the event of what goes by the padding of sequences as well
PADDING = "padding read"
#: the event of something that is put behind another: whether that is known to have no rows
GROWN = "put behind"
#: a field of ``range(a, n)`` where n is not known, and of what is made of it: all are at least a
LEAST = "#at least"
#: whether autograd records: a field of the process
GRAD = (PROCESS, "mode grad")


@dataclass(slots=True)
class Site:
    """A call: of what, with what, where. ``receiver`` is the object of a method, which is
    argument 0.
    """

    m: Execution
    name: str
    arguments: Arguments
    node: ast.AST
    frame: Frame
    receiver: Atom | None = None
    #: the method of the library's class is meant, whatever the program's class has: ``super()``
    base: bool = False

    # ------------------------------------------------------------ arguments

    def get(self, index: int, name: str = "") -> Value | None:
        """An argument by its place, the receiver being the first, or by its name."""
        if self.receiver is None:
            return self.arguments.get(index, name)
        if index == 0:
            return value(self.receiver)
        return self.arguments.get(index - 1, name)

    def constant(self, index: int, name: str = "", default: Any = None) -> Any:
        """An argument that is a constant or has one by default; ``default`` where it is left
        out or not known.
        """
        given = self.get(index, name)
        if given is None:
            return default
        found = known(given)
        return found if found is not None else default

    def all(self) -> list[Value]:
        """The receiver and every argument."""
        first = [value(self.receiver)] if self.receiver is not None else []
        return [*first, *self.arguments.all()]

    def operands(self) -> list[Value]:
        """The arguments that hold data, those in tuples and lists taken out."""
        return [v for v in (self.flat(a) for a in self.all()) if v]

    def flat(self, v: Value, depth: int = 3, looked: dict[int, int] | None = None) -> Value:
        """The data in a value and in the containers that it may be, with what is not known of
        it. ``looked`` are the containers that were looked at already, with how deep: one that
        others share is gone through again only where more of it may be seen.
        """
        looked = {} if looked is None else looked
        found: list[Atom] = [a for a in v if isinstance(a, MATTER)]
        for a in v:
            if isinstance(a, Items):
                found += [d for i in a.items for d in self.flat(i, depth, looked)]
            made = self.m.object(a)
            if made is not None and made.kind in ("list", "dict", "set", "iterator") and depth:
                if depth > looked.get(made.number, 0):
                    looked[made.number] = depth
                    rows = samples.listed(self.m, made) if made.kind == "list" else None
                    found += rows or self.flat(self.m.contents(made), depth - 1, looked)
            elif depth:
                found += self.unseen(a, depth)
        self.m.heap.work += len(found)
        return join(*[(a,) for a in found])

    def apart(self, v: Value, depth: int = 3, looked: dict[int, int] | None = None) -> list[Value]:
        """As ``flat``, with each entry of a container by itself."""
        looked = {} if looked is None else looked
        found: list[Value] = []
        for a in v:
            made = self.m.object(a)
            if made is None or made.kind not in ("list", "dict") or not depth or samples.listed(self.m, made):
                found.append(self.flat((a,), depth, looked))
            elif depth > looked.get(made.number, 0):
                looked[made.number] = depth
                found += [part for held in self.m.fields(made) for part in self.apart(held, depth - 1, looked)]
        return [part for part in found if part]

    def unseen(self, atom: Atom, depth: int = 3) -> list[Atom]:
        """What differs in an object of code that is not seen, and in an attribute of anything: it
        is rows no more.
        """
        owner = atom
        while isinstance(owner, Method):
            owner = owner.receiver
        made = self.m.object(owner)
        if made is not None and made.kind in UNSEEN:
            inner = self.flat(self.m.contents(made), depth - 1)
        else:
            inner = (owner,) if owner is not atom and isinstance(owner, MATTER) else NOTHING
        moving = [a for a in inner if atom_placement(a).kind not in placements.EQUAL]
        return [
            a._replace(placement=placements.PER_RANK)
            if isinstance(a, Data) and a.placement.kind is not Kind.UNKNOWN
            else a
            for a in moving
        ]

    def deep(self, v: Value, seen: set[int] | None = None) -> list[Atom]:
        """Every atom in a value, with those in containers."""
        seen = seen if seen is not None else set()
        found: list[Atom] = []
        for a in v:
            found.append(a)
            if isinstance(a, Items):
                found += [d for i in a.items for d in self.deep(i, seen)]
            made = self.m.object(a)
            if made is not None and made.kind in ("list", "dict", "set", "iterator"):
                if made.number not in seen:
                    seen.add(made.number)
                    found += self.deep(self.m.contents(made), seen)
        return found

    def in_place_of(self, old: Object) -> Object:
        """A new list or dictionary in the place of one that the call is given."""
        given = set[int]()
        for v in self.all():
            self.deep(v, given)
        return self.m.heap.in_place_of(old, self.node, self.frame.context, sorted(given))

    # ------------------------------------------------------------ results

    def data(self, placement: Placement, *, kind: str = "", **more: Any) -> Value:
        """Data made of the operands."""
        operands = self.operands()
        kind = kind or ("" if operands else self.kind)
        return derivation.derived(self.word, placement, operands, self.node, kind=kind, **more)

    def each(self, *, kind: str = "", even: bool = False) -> Value:
        """A function of each element of the operands, which are put beside each other; ``even`` where
        the place of an element does not matter.
        """
        operands = self.operands()
        kind = kind or ("" if operands else self.kind)
        if not operands and kind != "number":
            return value(Data(kind, placements.UNIFORM))
        return arithmetic.elementwise(self.word, operands, self.node, kind=kind, even=even)

    def unknown(self, word: str) -> Value:
        """The result is not established; where an operand is not either, since that one is not."""
        self.m.trace.miss(word, self.node, self.frame.context)
        operands = self.operands()
        found = derivation.derived(word, placements.UNKNOWN, operands, self.node, keep_axes=False)
        if any(atom_placement(a).kind is Kind.UNKNOWN for v in operands for a in v):
            return found
        origin = Origin(self.node, word)
        return tuple(a._replace(origin=origin) if isinstance(a, Data) else a for a in found)

    def made(self, kind: str, *, key: Any = None, extra: Any = None) -> Object:
        """A new object of the library."""
        name = self.name.rsplit(".", 1)[-1]
        made = self.m.heap.new(
            kind, name, self.node, self.frame.context, key=(self.name, key), extra=extra
        )
        self.m.event("made", self.node, self.frame, object=value(Ref(made.number)))
        return made

    def ref(self, kind: str, **fields: Value | None) -> Value:
        """A new object of the library with fields."""
        made = self.made(kind)
        for name, held in fields.items():
            if held is not None:
                self.m.heap.write((made.number, name), held)
        return value(Ref(made.number))

    def event(self, kind: str, **values: Value) -> None:
        """Record what happens here."""
        self.m.event(kind, self.node, self.frame, **values)

    def tell(self, kind: str) -> None:
        """Record that the arguments are printed or written, each by itself: of the program's objects their texts."""
        told = [self.m.shown(v, self.node, self.frame) for v in self.arguments.all()]
        self.event(kind, **{f"value {i}": v for i, v in enumerate(told)})

    @property
    def word(self) -> str:
        """The last word of the name, for messages."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def kind(self) -> str:
        """What a function of this library makes where nothing is known of what it is given."""
        if self.name.startswith("torch"):
            return "tensor"
        return "array" if self.name.startswith("numpy.") else "number"

    def kind_of(self, operands: Iterable[Value]) -> str:
        """The kind of what is made of operands, "" where they say it: of what is not known a
        function of torch makes a tensor.
        """
        return "" if any(data(v) for v in operands) else self.kind

    @property
    def object(self) -> Object | None:
        """The receiver where it is an object."""
        return self.m.object(self.receiver) if self.receiver is not None else None

    def grad(self) -> bool:
        """Whether autograd may record here."""
        return self.m.heap.read(GRAD) != const(False)


#: what a sample of a data set is made of, before it is part of a batch
WHICH_SAMPLE = "which sample a rank has"
PART, SINGLE = "part of a batch", "index of single samples"
#: samples of which nothing says that one has another size than the next
OF_ONE_SIZE = "a sample as large as all"
#: since when a number is that of the different ones among a rank's samples
DIFFERENT = "how many different ones there are"
SHARE_OF_BATCHES = "a rank's share of the batches"
#: since when a shape is the rank's own
OWN_SIZE = "a size of the rank's own"
#: how the origin of what a model gives ends of which nothing is known
UNSEEN_CODE = "whose code is not seen"
#: all of them: what is made of them depends on which samples a rank has
OF_SAMPLES = (OF_ONE_SIZE, ONE_SAMPLE, WHICH_SAMPLE, PART, SINGLE, SHARE_OF_BATCHES)
#: atoms that decide how a value lies: None and plain constants beside data are left out
MATTER = (Data, Unknown, Differs)

Effect = Callable[[Site], Value | None]


@dataclass(frozen=True, slots=True)
class Row:
    """What a function of a library does; docs/tables.md tells how to write one.

    ``names`` are separated by spaces: ``torch.exp`` is a function, ``.exp`` a method of data,
    ``<loader>.set_epoch`` a method of an object of a kind and ``<module|wrapper>.train`` of
    several. ``examples`` are expressions over ``x`` and ``y`` (rows by 4 features), ``t`` (a
    label each) and ``w`` (4 by 4, the same on all ranks); the tests run them whole and sharded
    and hold against the result what ``effect`` says. ``source`` is where the semantics are
    written down.
    """

    names: str
    effect: Effect
    examples: tuple[str, ...] = ()
    source: str = ""


def examples(text: str) -> tuple[str, ...]:
    """The lines of a text: an example each."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def methods(kinds: str, names: str) -> str:
    """The names of methods or attributes of kinds of objects: ``<kind>.name`` for each."""
    return " ".join(f"<{kinds}>.{name}" for name in names.split())


def prefixed(prefix: str, names: str) -> str:
    """Names with a prefix before each."""
    return " ".join(f"{prefix}{name}" for name in names.split())


def table(rows: Iterable[Row]) -> dict[str, Row]:
    """The rows by name."""
    return {name: row for row in rows for name in row.names.split()}


def words(text: str) -> tuple[str, ...]:
    """The words of a text: names in a table."""
    return tuple(text.split())


def nothing(site: Site) -> Value:
    """No effect that matters, and no result."""
    return (Const("NoneType", None),)
