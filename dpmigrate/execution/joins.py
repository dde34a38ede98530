"""The join of values: what holds where a value is one of several, and when two are the same."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any

from dpmigrate.execution import masking, placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    OTHERS,
    SOME,
    Atom,
    Const,
    Data,
    Differs,
    Items,
    Ref,
    Setting,
    Unbound,
    Unknown,
    Value,
    larger,
)

#: constants of one value; more of them are a setting
CONSTANTS = 8
#: atoms of one value beside its constants; more of them are unknown, so that a call of any of
#: them costs no more than the budget counts
WIDTH = 64
#: atoms of a tuple that is joined of others, those of the tuples in it counted; tuples in tuples
#: double with every level
SIZE = 1000
#: values of fewer atoms are gone through one by one
FEW = 6
#: reasons that one value keeps
REASONS = 2
#: the index of the field that says in which places data are held
_HELD = Data._fields.index("held")
_TOO_MANY = Unknown(f"one of more than {WIDTH} values")
_TOO_LARGE = Unknown(f"a tuple of more than {SIZE} values")


def join(*values: Value) -> Value:
    """What holds where a value is one of several."""
    first: Value = NOTHING
    for v in values:
        if not first:
            first = v
        elif v is not first and v != first and not _within(v, first):
            first = normal(first, v)
    return first


def same(a: Value | None, b: Value | None) -> bool:
    """Whether two values are the same atoms, in whatever order."""
    if a == b:
        return True
    return a is not None and b is not None and len(a) == len(b) > 1 and _within(a, b)


def one_value(v: Value | None) -> bool:
    """Whether equal atoms are one and the same value when the program runs: two means may be equal
    on paper and be means of different things.
    """
    if not v:
        return True
    if len(v) > 1:
        return False
    kind = type(v[0])
    if kind is Items:
        return all(map(one_value, v[0].items))  # type: ignore[union-attr]
    return kind is not Data and kind is not Setting


def _within(v: Value, other: Value) -> bool:
    """Whether the other has all the atoms of a value."""
    if len(v) > len(other):
        return False
    if len(other) < FEW:
        for a in v:  # noqa: SIM110  (a generator costs more than it asks)
            if a not in other:
                return False
        return True
    return _atoms(other).issuperset(v)


@lru_cache(maxsize=256)
def _atoms(v: Value) -> frozenset[Atom]:
    return frozenset(v)


def normal(*values: Value) -> Value:
    """The union, with at most two atoms of data of each kind, one of them the same on all ranks,
    and one tuple of each length; more atoms than ``WIDTH``, or ``SIZE`` of them in a tuple, are not
    told apart any more.
    """
    atoms: dict[Any, Atom] = {}
    constants: dict[Const, None] = {}
    unknowns: dict[Unknown, None] = {}
    for v in values:
        for atom in v:
            kind = type(atom)
            if kind is Ref:
                atoms[atom] = atom
            elif kind is Const:
                constants[atom] = None  # type: ignore[index]
            elif kind is Data:
                assert isinstance(atom, Data)
                lies = (atom.kind, atom.placement.kind in placements.EQUAL)
                seen = atoms.get(lies)
                atoms[lies] = data_join(seen, atom) if isinstance(seen, Data) else atom
            elif isinstance(atom, Items):
                key = ("items", len(atom.items))
                other = atoms.get(key)
                if isinstance(other, Items):
                    atom = _tuple_join(other, atom)
                    if atom is not other and larger((atom,), SIZE):
                        return (_TOO_LARGE,)
                atoms[key] = atom
            elif isinstance(atom, Setting):
                _add_setting(atoms, atom)
            elif isinstance(atom, Differs) or isinstance(atom, Unbound):  # noqa: SIM101  (a union is slow)
                atoms.setdefault(atom.tag, atom)
            elif isinstance(atom, Unknown):
                unknowns[atom] = None
            else:
                atoms[atom] = atom
    if len(atoms) > WIDTH or _TOO_MANY in unknowns:
        return (_TOO_MANY,)
    if _TOO_LARGE in unknowns:
        return (_TOO_LARGE,)
    if len(constants) > CONSTANTS:
        _add_setting(atoms, Setting())
        constants = {c: None for c in constants if c.value is None}
    return (*atoms.values(), *constants, *islice(unknowns, REASONS))


def _add_setting(atoms: dict[Any, Atom], new: Setting) -> None:
    """One setting of each name is kept; what only some of them show is not known of it."""
    met = atoms.setdefault((new.tag, new.word), new)
    if isinstance(met, Setting) and met.truth is not None and new.truth is not met.truth:
        atoms[new.tag, new.word] = met._replace(truth=None)


def _tuple_join(a: Items, b: Items) -> Items:
    """Two tuples of one length as one; the first itself where the second adds nothing to it."""
    parts = tuple(join(x, y) for x, y in zip(a.items, b.items, strict=True))
    if a.named == b.named and all(x is y for x, y in zip(parts, a.items, strict=True)):
        return a
    return Items(parts, named=a.named if a.named == b.named else "")


def data_join(a: Data, b: Data) -> Data:
    """Two atoms of one kind as one; where the placements have no join, the reason is where they
    meet.
    """
    if a == b:
        return a
    held = a.held | b.held
    if a[:_HELD] == b[:_HELD] and a[_HELD + 1 :] == b[_HELD + 1 :]:
        return a if held == a.held else a._replace(held=held)
    placement = placements.join(a.placement, b.placement)
    turn = a.turn and b.turn
    if a.placement != b.placement and placements.TERM_OF_MEAN in (a.placement, b.placement):
        turn, placement = False, placements.PER_RANK
    if turn and placements.UNKNOWN not in (a.placement, b.placement):
        placement = placements.in_turn(placement, (), turn=True)
        placement = placements.TERM if placement.kind is Kind.UNKNOWN else placement
    if a.placement.kind in placements.EQUAL and b.placement.kind in placements.EQUAL:
        turn = a.turn or b.turn  # either may depend on the place of a sample
    origin = a.origin if placement == a.placement else b.origin
    whose = a.whose if placement == a.placement else b.whose
    worst = next((w for w in (OTHERS, SOME) if w in (a.whose, b.whose)), "")
    if worst:  # one that is made of other samples spoils what else there is
        origin, whose = (a if a.whose == worst else b).origin, worst
    return Data(
        a.kind,
        placement,
        gradient_join(a.gradient, b.gradient),
        a.sources | b.sources,
        a.reached | b.reached,
        a.axes if a.axes == b.axes else None,
        origin or a.origin or b.origin,
        turn,
        whole=a.whole and b.whole,
        held=held,
        marks=a.marks | b.marks,
        bent=a.bent | b.bent,
        every=a.every or b.every,
        even=a.even and b.even,
        drawn=a.drawn and b.drawn,
        alike=a.alike and b.alike,
        whose=whose,
        order=a.order | b.order,
        masked=masking.joined(a.masked, b.masked),
    )


def gradient_join(*gradients: str) -> str:
    """How a gradient flows through what is made of several: a lost part stays lost."""
    if "part" in gradients:
        return "part"
    return "whole" if "whole" in gradients else "none"
