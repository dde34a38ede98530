"""Data sets that each rank has put into an order of its own, or numbered or drawn for itself."""

from __future__ import annotations

from dpmigrate.execution.divergence import ORDER
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.heap import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NOTHING, Atom, Data, Differs, atoms, origins
from dpmigrate.library.streams import DRAW


def redrawn(m: Execution, loader: Object) -> str:
    """Why a data set is another one on each rank: it holds what each has drawn for itself
    (``DRAW``), or what may be in the order of a set, of which each has another one (``ORDER``);
    '' where it is not.
    """
    found: set[str] = set()
    held = m.heap.read((loader.number, "dataset")) or NOTHING
    for dataset in m.objects(held):
        for name, v in m.heap.names(dataset.number):
            if isinstance(name, str) and not name.startswith(("#", "mode ")):
                lists = (o for o in m.objects(v) if o.kind in ("list", "dict"))
                for a in (*atoms(v), *(a for o in lists for a in m.contents(o))):
                    found |= _of_its_own(a)
    return next((w for w in (DRAW, ORDER) if w in found), "")


def _of_its_own(atom: Atom) -> set[str]:
    """Since what an atom is another one on each rank; a number that is drawn, as the strength of
    a noise, is no part of the data.
    """
    origin = atom.origin if isinstance(atom, Differs) else None
    if isinstance(atom, Data) and atom.placement.kind is Kind.PER_RANK:
        origin = atom.origin
    words = {o.word for o in origins(origin)}
    if isinstance(atom, Data) and atom.kind == "number":
        words.discard(DRAW)
    return words
