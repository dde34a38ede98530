"""What a variable may hold: a set of atoms.

A value is a tuple of atoms without duplicates, each one thing that the variable may be on some
path: a constant, an object of the heap, a function of a library, or data with a placement. The
empty one is a value that no path gives (the result of a call that never returns). Sets stay small:
data is joined into one atom, and what grows too large is cut to a coarser atom. Tuples keep the
order in which atoms came, so that results do not depend on hash seeds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind, Placement

#: the operation that takes the samples of a batch one by one
ONE_SAMPLE = "one sample"
#: of which sample of a batch data are (``Data.whose``): one item of what has one for each; of one, and it is not known of which; of
#: others than the turn's own, or of several
ONE, SOME, OTHERS = "one", "some", "others"
#: since when a value is made of some of the samples of a batch, or of all of them, where it stands beside one
SOME_TURNS = "a sum of some turns"
#: the same where samples are put beside each other in two orders, which one process has for all samples
TWO_ORDERS = "samples that meet in two orders"
#: the kind of what a network whose code is not seen gives: a tensor, or several results that are unpacked
RESULTS = "results"
#: atoms of a tuple, those of the tuples in it counted
LARGE = 10_000
#: a number that counts the samples of a batch from its first
PLACE = "the place of a sample"


class Origin(NamedTuple):
    """Where a value became what it is: the node, and the operation in a word or two."""

    node: ast.AST
    word: str
    before: Origin | None = None


class Const(NamedTuple):
    """A literal. The name of its type keeps 1, True and 1.0 apart."""

    type: str
    value: Any


class Setting(NamedTuple):
    """Plain data that is not known and the same on every rank: an option, a module-level constant.

    ``default`` is the constant that it has unless the user chooses another, where there is one.
    ``truth`` is what a test has shown of it, on the way that it opens.
    """

    word: str = ""
    default: Const | None = None
    tag: str = "setting"
    truth: bool | None = None


class Ref(NamedTuple):
    """An object of the heap."""

    object: int
    tag: str = "ref"


class Items(NamedTuple):
    """A tuple, by its items; ``named``: the class of a named tuple of a library, where it is known."""

    items: tuple[Value, ...]
    tag: str = "items"
    named: str = ""


class Data(NamedTuple):
    """A tensor, an array, a number or a text whose placement matters.

    ``kind`` is ``tensor``, ``array``, ``number`` or ``text``; a tensor or array may be known to be
    a ``mask`` (the result of a comparison), ``places`` of rows in the rank's own batch, or their
    whole ``order`` (``arange(len(x))``). ``gradient`` says how a gradient flows back through it:
    ``none``, ``whole`` (as on one process) or ``part`` (a rank's part is lost on the way).
    ``sources`` are the passes and the random streams that it is made of; ``reached`` the modules
    and parameters that a gradient comes to. ``axes`` is the number of its axes, where known.
    ``bare``: the number is not known, and the samples' axis may be the only one.
    ``turn``: it is made of one turn of a loop over the rank's own batches or samples; what is the
    same on all ranks depends on the place of the turn's sample. ``whole``: a mean whose value is
    that of all ranks, though the gradients of it are those of a rank's part. ``lengths``: those of
    its axes that a view or a layer has given it as numbers; what is made of it has them where axes
    are moved alone, or each element is changed by itself.
    ``held``: numbers of the tensors that it is, or a part of which it is (``identity``).
    ``marks``: those that an execution puts on it; what is made of it has them as well, unless it is the same on all ranks.
    ``bent``: the operations that took a rank's part of a sum or mean, and make no part of their result of it.
    ``every``: an axis may run over the samples of all ranks, or a number is that of these.
    ``even``: all elements are one number, so its first rows are those of any other rank.
    ``drawn``: each element is a draw of the rank's own, or made of one by itself: some of its rows serve as well as others.
    ``fraction``: a number of samples times or divided by something that need be no whole number.
    ``filled``: the number of the rank's samples times one that goes by how long they are padded.
    ``alike``: every sample has the same elements in it, as a tensor that a data set gives with each.
    ``whose``: what is not the turn's own is of ``ONE`` sample, as an item of what has one for each, of ``SOME`` one, or of ``OTHERS``:
    of another one than the turn's, of several, of all; what is made of such data is so too, unless each sample has its part in it again.
    ``masked``: what is known of masks of what samples are filled up with, see ``masking``.
    ``order``: in which order its samples are, where a function puts a batch together: each is a way to it; none: in any.
    """

    kind: str
    placement: Placement
    gradient: str = "none"
    sources: frozenset[int] = frozenset()
    reached: frozenset[int] = frozenset()
    axes: int | None = None
    origin: Origin | None = None
    turn: bool = False
    bare: bool = False
    whole: bool = False
    lengths: tuple[int | None, ...] = ()
    held: frozenset[int] = frozenset()
    marks: frozenset[int] = frozenset()
    bent: frozenset[ast.AST] = frozenset()
    every: bool = False
    even: bool = False
    drawn: bool = False
    fraction: bool = False
    filled: bool = False
    alike: bool = False
    whose: str = ""
    order: frozenset[object] = frozenset()
    masked: str = ""
    tag: str = "data"


class Foreign(NamedTuple):
    """A module, class or function of a library, by its dotted name."""

    name: str
    tag: str = "foreign"


class Bound(NamedTuple):
    """A method of the program with its receiver."""

    function: int
    receiver: Atom
    tag: str = "bound"


class Method(NamedTuple):
    """A method of an object that the program did not define, with its receiver."""

    receiver: Atom
    name: str
    tag: str = "method"


class Super(NamedTuple):
    """``super()`` in a method of a class."""

    cls: int
    receiver: Atom
    tag: str = "super"


class Unknown(NamedTuple):
    """Not established, and why; ``whose``: as of data."""

    word: str
    node: ast.AST | None = None
    tag: str = "unknown"
    whose: str = ""


class Unbound(NamedTuple):
    """No value: the name is not bound on some path; ``why``: the ``Parting`` of ranks of which only
    some have bound it, beside the atom that says that it may be unbound.
    """

    tag: str = "unbound"
    why: Any = None


class Differs(NamedTuple):
    """Which of the others it is differs between ranks; ``sources``: where the data come from that
    chose.
    """

    origin: Origin | None
    sources: frozenset[int] = frozenset()
    tag: str = "differs"


Atom = (
    Const
    | Setting
    | Ref
    | Items
    | Data
    | Foreign
    | Bound
    | Method
    | Super
    | Unknown
    | Unbound
    | Differs
)
Value = tuple[Atom, ...]

NOTHING: Value = ()
UNBOUND = Unbound()
NONE: Value = (Const("NoneType", None),)
SETTING: Value = (Setting(),)


def value(*atoms: Atom) -> Value:
    """The value that is one of the atoms."""
    return atoms


def const(literal: Any) -> Value:
    """The value of a literal. NaN, which equals nothing, not even itself, is a setting: a loop that
    compares what changes from turn to turn would never settle.
    """
    if literal is True or literal is False:
        return _TRUE if literal else _FALSE
    if literal != literal and isinstance(literal, float | complex):
        return SETTING
    return (Const(type(literal).__name__, literal),)


_TRUE: Value = (Const("bool", True),)
_FALSE: Value = (Const("bool", False),)


def items(values: Iterable[Value]) -> Value:
    """A tuple of values; one of more than ``LARGE`` atoms, which no program writes out, is unknown."""
    made: Value = (Items(tuple(values)),)
    return unknown(f"a tuple of more than {LARGE} values") if larger(made, LARGE) else made


def larger(v: Value, size: int) -> bool:
    """Whether a value has more atoms than that, those in tuples counted."""
    return _room(v, size) < 0


def _room(v: Value, left: int) -> int:
    """What is left of a number of atoms after those of a value; below 0 there are more."""
    left -= len(v)
    for a in v:
        if isinstance(a, Items):
            for x in a.items:
                if left < 0:
                    return left
                left = _room(x, left)
    return left


def unknown(word: str, node: ast.AST | None = None, whose: str = "") -> Value:
    """A value that is not established."""
    return (Unknown(word, node, whose=whose),)


def placement_of(v: Value) -> Placement:
    """How the value lies across the ranks, whichever of its atoms it is."""
    return placements.joined(atom_placement(a) for a in v)


def atom_placement(atom: Atom) -> Placement:
    """How one atom lies across the ranks; an object is the same one on every rank unless it
    differs.
    """
    match atom:
        case Const(value=0 | 0.0 | False):
            return placements.ZERO
        case Data():
            return atom.placement
        case Items():
            return placements.joined(placement_of(v) for v in atom.items)
        case Unknown():
            return placements.UNKNOWN
        case Differs():
            return placements.PER_RANK
        case Unbound():
            return placements.ZERO
        case Method(receiver=Data() | Items() as owner):  # an attribute that no table has
            p = atom_placement(owner)
            if p.kind in placements.EQUAL:
                return placements.UNIFORM
            return p if p.kind is Kind.PER_RANK else placements.UNKNOWN
        case Method(receiver=Method() as owner):
            return atom_placement(owner)
        case _:
            return placements.UNIFORM


def only(v: Value) -> Any:
    """The constant that the value is for certain.

    Raises:
        LookupError: it is no constant, or may be several.
    """
    if len(v) == 1:
        (atom,) = v
        if isinstance(atom, Const):
            return atom.value
    raise LookupError


def known(v: Value) -> Any:
    """The constant that it is for certain, or by default; None where there is neither."""
    for atom in v:
        if isinstance(atom, Const) and len(v) == 1:
            return atom.value
        if isinstance(atom, Setting) and atom.default is not None:
            return atom.default.value
    return None


def strings(v: Value) -> set[str]:
    """The strings that it may be, with the defaults of settings."""
    found = {a.value for a in v if isinstance(a, Const)}
    found |= {a.default.value for a in v if isinstance(a, Setting) and a.default is not None}
    return {s for s in found if isinstance(s, str)}


def data(v: Value, *, deep: bool = False) -> list[Data]:
    """The atoms of data in it, with those in tuples where ``deep``."""
    found = [a for a in v if isinstance(a, Data)]
    if deep:
        for a in v:
            if isinstance(a, Items):
                found += [d for item in a.items for d in data(item, deep=True)]
    return found


def atoms(v: Value) -> Iterator[Atom]:
    """The atoms of a value, those in tuples taken out."""
    for a in v:
        if isinstance(a, Items):
            for inner in a.items:
                yield from atoms(inner)
        else:
            yield a


def origins(origin: Origin | None) -> Iterator[Origin]:
    """The operations since which a value is what it is, the last one first."""
    while origin is not None:
        yield origin
        origin = origin.before


def cast_kind(v: Value, before: str, after: str) -> Value:
    """The same value with data of another kind."""
    return tuple(
        a._replace(kind=after) if isinstance(a, Data) and a.kind == before else a for a in v
    )
