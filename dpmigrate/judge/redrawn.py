"""Data sets that each rank has put into an order of its own, or numbered or drawn for itself."""

from __future__ import annotations

from dpmigrate.execution.divergence import ORDER
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.objects import LENGTH, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NOTHING,
    Atom,
    Data,
    Differs,
    atom_placement,
    atoms,
    origins,
)
from dpmigrate.library.natures import DRAW, OF_PROCESS

#: a list of which each rank has another length
LENGTHS = "numbers of samples"
#: a list of numbers that each rank has drawn, or that are those of its process
NUMBERS = "drawn numbers in a list"


def redrawn(m: Execution, loader: Object) -> str:
    """Why a data set is another one on each rank: it holds what each has drawn for itself
    (``DRAW``), a list of which each has chosen other elements (``LENGTHS``), as by ``hash(name)``;
    or what may be in the order of a set, of which each has another one (``ORDER``), and lists of
    drawn numbers, which may choose its samples (``NUMBERS``). '' where it is not.
    """
    found: set[str] = set()
    held = m.heap.read((loader.number, "dataset")) or NOTHING
    for dataset in m.objects(held):
        for name, v in m.heap.names(dataset.number):
            if isinstance(name, str) and not name.startswith(("#", "mode ")):
                # a number that is drawn, as the strength of a noise, is no part of the data
                found |= {w for a in atoms(v) for w in _of_its_own(a)} - {NUMBERS}
                for listed in (o for o in m.objects(v) if o.kind in ("list", "dict")):
                    found |= {w for a in atoms(m.contents(listed)) for w in _of_its_own(a)}
                    length = m.heap.read((listed.number, LENGTH)) or NOTHING
                    if any(atom_placement(a).kind is Kind.PER_RANK for a in length):
                        found.add(LENGTHS)
    return next((w for w in (DRAW, LENGTHS, NUMBERS, ORDER) if w in found), "")


def _of_its_own(atom: Atom) -> set[str]:
    """Since what an atom is another one on each rank."""
    origin = atom.origin if isinstance(atom, Differs) else None
    if isinstance(atom, Data) and atom.placement.kind is Kind.PER_RANK:
        origin = atom.origin
    words = {o.word for o in origins(origin)}
    if isinstance(atom, Data) and atom.kind == "number" and words & {DRAW, OF_PROCESS}:
        words = words - {DRAW} | {NUMBERS}
    return words
