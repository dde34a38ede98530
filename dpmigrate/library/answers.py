"""Questions about what the tables answer, and of what, that no single table decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dpmigrate.execution import placements
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    Atom,
    Data,
    Items,
    Method,
    Origin,
    Setting,
    Value,
)
from dpmigrate.library.sites import Site

if TYPE_CHECKING:
    from dpmigrate.execution.engine import Execution


def by_numbers(site: Site, made: Value | None) -> Value | None:
    """What a function of torch or numpy gives by a number that differs between the ranks, as
    ``one_hot(t, t.max() + 1)``: no rows of all of them, whatever its row says of the others.
    """
    if made is None or not site.arguments.names:
        return made
    given = site.all()[1:]
    numbers = [d for v in given for d in v if isinstance(d, Data) and d.kind == "number"]
    differ = (Kind.PER_RANK, Kind.PARTIAL, Kind.RATIO)
    if not any(d.placement.kind in differ for d in numbers):
        return made
    return _of_the_rank(site, made)


def _of_the_rank(site: Site, made: Value) -> Value:
    found: list[Atom] = []
    for a in made:
        if isinstance(a, Items):
            a = Items(tuple(_of_the_rank(site, v) for v in a.items))
        elif isinstance(a, Data) and a.placement.kind in (Kind.ROWS, *placements.EQUAL):
            origin = Origin(site.node, site.word, a.origin)
            a = a._replace(placement=placements.PER_RANK, origin=origin)
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
