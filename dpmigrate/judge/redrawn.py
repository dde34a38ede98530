"""Data sets that each rank has put into an order of its own."""

from __future__ import annotations

from dpmigrate.execution.engine import Execution
from dpmigrate.execution.heap import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NOTHING, Atom, Data, Differs
from dpmigrate.library.streams import DRAW


def redrawn(m: Execution, loader: Object) -> bool:
    """Whether the lists of a data set hold what each rank has drawn for itself, as an order."""
    held = m.heap.read((loader.number, "dataset")) or NOTHING
    for dataset in m.objects(held):
        for name, v in m.heap.names(dataset.number):
            if isinstance(name, str) and not name.startswith(("#", "mode ")):
                inside = [*v, *(a for o in m.objects(v) if o.kind == "list" for a in m.contents(o))]
                if any(_of_a_draw(a) for a in inside):
                    return True
    return False


def _of_a_draw(atom: Atom) -> bool:
    """Whether ranks have drawn what an atom is made of, each for itself."""
    origin = atom.origin if isinstance(atom, Differs) else None
    if isinstance(atom, Data) and atom.kind != "number" and atom.placement.kind is Kind.PER_RANK:
        origin = atom.origin
    while origin is not None:
        if origin.word == DRAW:
            return True
        origin = origin.before
    return False
