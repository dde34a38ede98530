"""A tensor that grows by what each sample of a batch gives: ``flat = torch.cat((flat, words[i][:n]))``,
in a loop over the samples (https://docs.pytorch.org/docs/stable/generated/torch.cat.html).
"""

from __future__ import annotations

from dpmigrate.execution import derivation, placements, samples
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Data, Origin, Value, const, data
from dpmigrate.library.shapes import axes_of
from dpmigrate.library.sites import Site

#: since when rows are those of the samples whose turns there were
GROWN_BY_EACH = "grown by each sample"


def grown(site: Site, first: Value, parts: list[Value]) -> Value | None:
    """The tensor ``first`` after a turn: rows of the samples, some for each, as a list that each turn
    appends to has them. None where it is not one, as where it is put behind what the turn has made.
    """
    target = site.m.growing.get(site.node) if site.m.each_sample else None
    if target is None:
        return None
    grows = any(isinstance(a, Data) and _is_grown(a) for a in first)
    if site.m.of_this_turn(target, site.frame) and not grows:
        return None
    each = [samples.added(v, site.node) for v in parts]
    begun = all(isinstance(a, Data) and (_is_grown(a) or _is_empty(a)) for a in first)
    if not begun or not each or not all(map(samples.of_turn, each)) or site.get(1, "dim") not in (None, const(0)):
        return site.unknown("a tensor that grows in a loop over samples")
    made = derivation.derived(site.word, placements.rows(), each, site.node, axes=axes_of(each[0]), keep_axes=False)
    count = _rows_of_each(site, parts)
    p = placements.rows(ragged=count is None, times=count or 0)
    origin = Origin(site.node, GROWN_BY_EACH)
    return tuple(a._replace(placement=p, origin=origin, turn=False) if isinstance(a, Data) else a for a in made)


def _is_empty(a: Data) -> bool:
    """Whether it has no rows, before the first turn."""
    return a.placement.kind in placements.EQUAL and a.lengths[:1] == (0,)


def _is_grown(a: Data) -> bool:
    return a.placement.kind is Kind.ROWS and a.origin is not None and a.origin.word == GROWN_BY_EACH


def _rows_of_each(site: Site, parts: list[Value]) -> int | None:
    """How many rows each sample has, where that is a number and no test in the turn leaves any out."""
    over = site.m.over_samples
    tested = over is not None and any(p is not None for p in site.m.control[over + 1 :])
    found = [d.lengths[0] if d.lengths else None for v in parts for d in data(v)]
    if tested or len(found) != len(parts) or None in found:
        return None
    return sum(n for n in found if n is not None)
