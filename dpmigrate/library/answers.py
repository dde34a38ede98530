"""Questions about what the tables answer, and of what, that no single table decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from dpmigrate.execution import placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Data,
    Differs,
    Items,
    Method,
    Origin,
    Ref,
    Setting,
    Value,
    data,
)
from dpmigrate.library.layers import has_parameters
from dpmigrate.library.sites import Site

if TYPE_CHECKING:
    from dpmigrate.execution.engine import Execution


def by_numbers(site: Site, made: Value | None) -> Value | None:
    """What a function of torch or numpy gives by a number that differs between the ranks, as
    ``one_hot(t, t.max() + 1)``: no rows of all of them, whatever its row says of the others. A view of
    all places of the samples is one of theirs, however many these are.
    """
    if made is None:
        return made
    made = by_sizes(site, made)
    if not site.arguments.names:
        return made
    given = site.all()[1:]
    numbers = [d for v in given for d in v if isinstance(d, Data) and d.kind == "number"]
    differ = (Kind.PER_RANK, Kind.PARTIAL, Kind.RATIO)
    viewed = site.word in ("view", "reshape")
    if not any(d.placement.kind in differ and not (viewed and d.filled) for d in numbers):
        return made
    return _of_the_rank(site, made)


def by_sizes(site: Site, made: Value) -> Value:
    """What is taken of what all ranks have, by a number of the rank's samples, as ``rows[:len(x)]``
    of the rows of all ranks: on one process it would be taken by another number. So it is of a rank's
    samples by the number of all. What is made by this number alone is as long as they are.
    """
    if not any(isinstance(a, Data | Ref | Items) for a in made):
        return made  # a constant, a setting
    given = site.all() or [NOTHING]
    first = data(given[0], deep=True)
    if any(map(_of_all_ranks, first)) and any(a.placement.kind not in placements.EQUAL for a in _numbers(site, given[1:])):
        return _of_the_rank(site, made)
    if not any(a.every for a in _numbers(site, given)):
        return made
    if any(d.placement.kind is Kind.ROWS for d in first):
        return _of_the_rank(site, made)
    return tuple(a._replace(every=True) if isinstance(a, Data) and a.axes != 0 else a for a in made)


def _numbers(site: Site, given: list[Value]) -> Iterator[Data]:
    """The numbers in arguments, with those in containers and the bounds of slices."""
    return (a for v in given for a in _deep(site, v) if isinstance(a, Data) and a.kind in ("number", "shape"))


def _of_all_ranks(d: Data) -> bool:
    """Whether data were made of the samples of all ranks, and are the same on each; how long a rank's
    own batch is padded is not, nor a mask of that size.
    """
    if d.placement.padded and (d.kind == "number" or (d.placement == placements.PADDED and not d.every)):
        return False
    return bool(d.sources) if d.placement.kind is Kind.UNIFORM else d.whole and d.placement == placements.MEAN


def note_layer(site: Site) -> None:
    """A layer with parameters is given what all ranks have, in a step that records gradients: each
    rank does the work of all.
    """
    made = site.object
    if made is None or made.kind != "module" or not site.grad() or not has_parameters(site.m, made):
        return
    given = join(*(tuple(d for d in data(v, deep=True) if _of_all_ranks(d)) for v in site.arguments.all()))
    if given:
        site.event("layer on what all ranks have", given=given)


def _deep(site: Site, v: Value) -> list[Atom]:
    """The atoms of an argument, with those in containers and the bounds of slices."""
    found = site.deep(v)
    for a in tuple(found):
        made = site.m.object(a)
        if made is not None and made.kind == "slice":
            found += [d for name in ("lower", "upper", "step") for d in site.m.heap.read((made.number, name)) or NOTHING]
    return found


def _of_the_rank(site: Site, made: Value) -> Value:
    found: list[Atom] = []
    for a in made:
        if isinstance(a, Ref):  # a list of parts
            found.append(Differs(Origin(site.node, site.word)))
        if isinstance(a, Items):
            a = Items(tuple(_of_the_rank(site, v) for v in a.items))
        elif isinstance(a, Data) and (a.whole or a.placement.kind in (Kind.ROWS, *placements.EQUAL)):
            origin = Origin(site.node, site.word, a.origin)
            a = a._replace(placement=placements.PER_RANK, origin=origin, bent=a.bent | {site.node})
        found.append(a)
    return tuple(found)


def plain_part(atom: Atom) -> bool:
    """Whether an atom is an attribute of plain data: ``size`` of an image that differs."""
    owner = atom
    while isinstance(owner, Method):
        owner = owner.receiver
    differs = isinstance(owner, Data) and owner.placement.kind is Kind.PER_RANK
    return owner is not atom and (differs or isinstance(owner, Setting))


def is_bare(m: Machine, made: Object) -> bool:
    """Whether an object is a module of the program, which no wrapper is: it has no ``module``."""
    kinds = m.kinds(made)
    own = made.kind == "instance" and "module" in kinds and "wrapper" not in kinds
    return own and cast("Execution", m).method_of(made, "__getattr__") is None
