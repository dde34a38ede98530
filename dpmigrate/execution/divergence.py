"""What becomes of values where ranks go different ways, or through turns of their own."""

from __future__ import annotations

import ast

from dpmigrate.execution import placements, samples
from dpmigrate.execution.joins import normal
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    UNBOUND,
    Atom,
    Const,
    Data,
    Differs,
    Origin,
    Setting,
    Unbound,
    Unknown,
    Value,
    atom_placement,
    atoms,
    value,
)

#: the tag of what says that only some ranks have a value
BY_SOME = "bound by some ranks"
#: why what a set gives next differs between ranks
ORDER = "the order of a set"
#: why ranks go through a loop as often as their batch is padded long
PADDING = "as many turns as the rank's batch is padded long"


def differing(v: Value, parted: Parting, *, keep_sums: bool = False) -> Value:
    """A value that is another one on each rank because the ranks went different ways.

    ``keep_sums``: they went the same way, some of them more often; what each adds up is its part.
    Where it is not established that they did, it is not known of the value either.
    """
    if len(v) > 1 and UNBOUND in v and presence(v) is None:
        v = (*v, bound_by_some(parted))
    origin = parted.origin
    if parted.samples:
        return samples.after_turn(v)
    if parted.padding:
        return tuple(_in_padding(a, origin) for a in v)
    if parted.placed:
        return samples.by_place(v, origin)
    if parted.in_turn:
        return _in_turn(v, origin, parted.sources)
    if parted.drawn and _same_rows(v):
        return v
    placement = placements.PER_RANK if parted.certain else placements.UNKNOWN
    differs = Differs(origin, parted.sources)
    other: Atom = differs if parted.certain else Unknown(origin.word, origin.node, whose=parted.whose)
    atoms: list[Atom] = []
    plain = False
    for a in v:
        match a:
            case Data() if keep_sums and _adds_up(a.placement) and not a.turn:
                sums = a.placement.kind is Kind.SIZE
                atoms.append(a._replace(placement=placements.SUM) if sums else a)
            case Const(value=0 | 0.0) if keep_sums and a.type in ("int", "float"):
                atoms.append(a)
            case Data():
                sources = a.sources | parted.sources
                whose = parted.whose or a.whose
                atoms.append(_parted(a, origin, placement)._replace(sources=sources, marks=a.marks | parted.handed_on, whose=whose))
            case Const(type="NoneType"):
                atoms += [a, other]
            case Const() | Setting():
                plain = True
            case Unbound():
                atoms.append(a)
            case _:
                atoms += [a, other]
    if plain:
        atoms.append(Data(_plain_kind(v), placement, origin=origin, sources=parted.sources, marks=parted.handed_on, whose=parted.whose))
        if len({a.type for a in v if isinstance(a, Const) and a.value is not None}) > 1:
            atoms.append(other)  # nor is its type the same
    return normal(tuple(atoms))


def _same_rows(v: Value) -> bool:
    """Whether a value is the rank's rows in any case, laid out in one way; by padding they may lie as
    the rank's own batch has them, which their join says.
    """
    if not v or not all(isinstance(a, Data) and a.kind == "tensor" for a in v):
        return False
    one = placements.joined(atom_placement(a)._replace(padded=False) for a in v)
    return one.kind is Kind.ROWS and not one.ragged and one.times > 0 and one.segments > 0


def by_padding(count: Value, node: ast.AST) -> Parting | None:
    """Why ranks go through a loop unequally often whose turns go by how long their batches are padded."""
    if any(isinstance(a, Data) and a.placement == placements.PADDED for a in count):
        return Parting(Origin(node, PADDING), True, padding=True)
    return None


def _in_padding(a: Atom, origin: Origin) -> Atom:
    """What a loop has changed whose turns are as many as a rank's batch is padded long: sums count
    what the samples have, which is nothing in the turns that a rank has not.
    """
    if not isinstance(a, Data):
        return a
    if a.placement.kind is Kind.ROWS:
        return a._replace(placement=a.placement._replace(padded=True))
    if a.placement.kind is Kind.UNIFORM and not a.whole:
        return a._replace(placement=placements.PADDED)
    kept = (Kind.ZERO, Kind.UNIFORM, Kind.PER_RANK, Kind.UNKNOWN)
    return a if a.placement.kind in kept or a.placement == placements.SUM else _parted(a, origin)


def bound_by_some(parted: Parting) -> Unbound:
    """What stands beside a value that only some ranks have."""
    return Unbound(BY_SOME, parted)


def presence(v: Value | None) -> Parting | None:
    """Why only some ranks have a value, where it differs."""
    return next((a.why for a in v or () if isinstance(a, Unbound) and a.why is not None), None)


def _in_turn(v: Value, origin: Origin, sources: frozenset[int]) -> Value:
    """What the data of one turn have chosen, each rank in turns of its own: the turn's value, or
    sums that have it or have it not.
    """
    atoms: list[Atom] = []
    plain = [a for a in v if isinstance(a, Const | Setting) and a not in NONE]
    started = all(atom_placement(a).kind is Kind.ZERO for a in plain)
    for a in v:
        match a:
            case Data() if a.turn and a.placement.kind in placements.EQUAL:
                atoms.append(_parted(a, origin))
            case Data() if a.turn or _adds_up(a.placement) or samples.is_one(a):
                atoms.append(a)
            case Data() if a.placement.kind is Kind.UNIFORM:
                term = a._replace(placement=placements.TERM, origin=origin, turn=True)
                atoms.append(term._replace(sources=a.sources | sources))
            case Data():
                atoms.append(_parted(a, origin))
            case Unbound():
                atoms.append(a)
            case Const() | Setting() if a in plain:
                if started:
                    atoms.append(a)
            case _:
                atoms += [a, Differs(origin, sources)]
    if not started:
        term = Data(_plain_kind(v), placements.TERM, origin=origin, sources=sources, turn=True)
        atoms.append(term)
    return normal(tuple(atoms))


def in_some_order(v: Value, node: ast.AST) -> Value:
    """What a set gives next: each rank goes through it in an order of its own, since the hashes of
    texts and of objects are those of the process. Numbers have the same everywhere
    (https://docs.python.org/3/reference/datamodel.html#object.__hash__).
    """
    if (len(v) < 2 and all(isinstance(a, Const) for a in v)) or all(map(_number, v)):
        return v
    return apart(v, Origin(node, ORDER))


def apart(v: Value, origin: Origin) -> Value:
    """A value that is another one on each rank; what differs already does so for its own reason."""
    atoms: list[Atom] = []
    for a in v:
        match a:
            case Data() if a.whole or a.placement.kind in placements.EQUAL:
                atoms.append(_parted(a, origin))
            case Const() | Setting():
                atoms.append(Data(_plain_kind((a,)), placements.PER_RANK, origin=origin))
            case Data() | Unknown() | Unbound() | Differs():
                atoms.append(a)
            case _:
                atoms += [a, Differs(origin)]
    return normal(tuple(atoms))


def whichever(found: Value, owner: Value) -> Value:
    """What is taken from a value of which it differs which one it is."""
    for a in owner:
        if isinstance(a, Differs) and found:
            return apart(found, a.origin or Origin(ast.Pass(), "which one it is"))
    return found


def some_order(v: Value) -> Origin | None:
    """Since when a value is what a set gives next, of which each rank has another order."""
    found = (a.origin for a in v if isinstance(a, Data | Differs))
    return next((o for o in found if o is not None and o.word == ORDER), None)


def in_no_order(v: Value) -> Value:
    """The same where all of it is taken, in whatever order."""
    found: list[Atom] = []
    for a in v:
        if isinstance(a, Data | Differs) and a.origin is not None and a.origin.word == ORDER:
            if isinstance(a, Data):
                found.append(Setting())
        else:
            found.append(a)
    return normal(tuple(found))


def sums_of_turns(v: Value) -> bool:
    """Whether a value is data alone that add up, or begin at 0."""
    return bool(v) and all(
        isinstance(a, Data) and (_adds_up(a.placement) or a.placement.kind is Kind.ZERO) for a in v
    )


def of_one_turn(key: Value) -> bool:
    """Whether a key is chosen by one turn of a loop over the rank's own batches, perhaps beside
    what all ranks have.
    """
    parts = list(atoms(key))
    chosen = [a for a in parts if isinstance(a, Data) and a.placement.kind not in placements.EQUAL]
    plain = all(isinstance(a, Data | Const | Setting) for a in parts)
    return plain and bool(chosen) and all(a.turn for a in chosen)


def added_in_turn(v: Value, node: ast.AST, *, each: bool = False) -> Value:
    """A number that each rank adds in turns of its own: a term of the sum over all turns; where it
    does so for ``each`` of its samples, a multiple of their number.
    """
    if not all(isinstance(a, Setting) or _number(a) for a in v):
        return v
    if each:
        return value(Data("number", placements.size(0), origin=Origin(node, samples.COUNTED)))
    return value(Data("number", placements.TERM, origin=Origin(node, samples.COUNTED), turn=True))


def _parted(d: Data, origin: Origin, placement: Placement = placements.PER_RANK) -> Data:
    if d.placement.kind is Kind.UNKNOWN:
        placement = placements.UNKNOWN
    return d._replace(placement=placement, origin=origin, turn=False, whole=False)


def _plain_kind(v: Value) -> str:
    """What constants and settings are as data."""
    known = [c.value for c in v if isinstance(c, Const)]
    return "text" if known and all(isinstance(c, str) for c in known) else "number"


def _adds_up(p: Placement) -> bool:
    """Whether a placement is a rank's part of a reduction, however many turns it is made in."""
    return p in (placements.SUM, placements.MAX, placements.MIN) or p.kind in (Kind.SIZE, Kind.ZERO)


def no_longer_added(v: Value, node: ast.AST) -> Value:
    """What a rank has added up so far, where it is used for more than adding to it."""
    origin = Origin(node, "a sum of some turns")
    return tuple(
        _parted(a, origin) if isinstance(a, Data) and a.placement == placements.SUM and not a.turn
        else a
        for a in v
    )  # fmt: skip


def _number(a: Atom) -> bool:
    return isinstance(a, Const) and a.type in ("int", "float")
