"""What is gathered, scattered or chosen by places and masks."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Data,
    Value,
    const,
    data,
    items,
    placement_of,
)
from dpmigrate.library.axes import on_axis, one_dim, rows_of
from dpmigrate.library.index_parts import Part, Walk, is_moving, ragged_rows
from dpmigrate.library.indexing import rows_chosen
from dpmigrate.library.shapes import axes_of
from dpmigrate.library.sites import Site
from dpmigrate.library.table_parts import indexed, looked_up


def gather(site: Site) -> Value:
    """``x.gather(dim, index)``, ``take_along_dim``: coupled where the axis is that of the
    samples.
    """
    last = site.word in ("take_along_dim", "take_along_axis")
    owner, chosen = (
        site.flat(site.get(0) or NOTHING),
        site.flat(site.get(1 if last else 2, "index") or ()),
    )
    try:
        dim = one_dim(site, 2 if last else 1, -1)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    found, keys = rows_of(owner), rows_of(chosen)
    if last and site.get(2, "dim") in (None, NONE) and site.get(2, "axis") in (None, NONE):
        return site.unknown(f"{site.word} of all axes together")
    if found is None:
        p, q = placement_of(owner), placement_of(chosen)
        if keys is None or p.kind not in placements.EQUAL:
            linear = q.kind in placements.EQUAL
            return indexed(
                site, owner, p if linear else placements.elementwise([p, q]), None, chosen
            )
        if on_axis(dim, keys) is not True:
            return site.unknown("which rows of a table are gathered")
        return indexed(site, owner, keys.placement, keys.axes, chosen)
    hit = on_axis(dim, found)
    if hit is None:
        return site.unknown(f"the axis of {site.word}")
    q = placement_of(chosen)
    aligned = keys is not None and keys.placement.axis == found.placement.axis
    if hit or not aligned:
        lost = q.kind is Kind.UNKNOWN or (not hit and keys is None)
        return indexed(
            site, owner, placements.UNKNOWN if lost else placements.PER_RANK, None, chosen
        )
    return indexed(site, owner, placements.join(found.placement, q), found.axes, chosen)


def scatter(site: Site) -> Value:
    """``scatter(dim, index, src)``, ``index_add``: rows written into rows, or added up into a
    table.
    """
    owner = site.flat(site.get(0) or NOTHING)
    try:
        dim = one_dim(site, 1, 0)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    found = rows_of(owner)
    others = [v for v in (site.flat(a) for a in site.all()[2:]) if v]
    lying = placements.joined([placements.ZERO])
    if found is not None:
        hit = on_axis(dim, found)
        if hit is None:
            return site.unknown(f"the axis of {site.word}")
        rows = [rows_of(v) for v in others]
        beside = all(r is not None and r.placement.axis == found.placement.axis for r in rows)
        places = {d.kind for d in data(others[0])} == {"places"} if others else False
        filled = all(placement_of(v).kind in placements.EQUAL for v in others[1:])
        if hit and site.word == "index_fill" and places and filled:
            # each rank fills those of its own rows that it has found
            return indexed(site, owner, found.placement, found.axes)
        if not hit and beside:
            joined = placements.joined([found.placement, *(placement_of(v) for v in others)])
            return indexed(site, owner, joined, found.axes, *others)
        if (
            not hit
            and all(placement_of(v).kind in placements.EQUAL for v in others)
            and (site.word.startswith("index"))
        ):
            return indexed(site, owner, found.placement, found.axes, *others)
        return site.unknown("what is scattered into the rows of a batch")
    lying = placement_of(owner)
    if all(placement_of(v).kind in placements.EQUAL for v in others):
        return indexed(
            site, owner, lying if lying.kind is not Kind.ZERO else placements.UNIFORM, None
        )
    adds = site.word in ("scatter_add", "index_add")
    rows_only = [r for v in others if (r := rows_of(v)) is not None]
    if adds and lying.kind is Kind.ZERO and len(rows_only) == len(others) == 2:
        if all(r.placement.axis == dim for r in rows_only):
            return indexed(site, owner, placements.SUM, None, *others)
    return indexed(site, owner, placements.PER_RANK, None, *others)


def index_select(site: Site) -> Value:
    """``x.index_select(dim, places)``."""
    owner, places = site.flat(site.get(0) or ()), site.get(2, "index") or ()
    try:
        dim = one_dim(site, 1, 0)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    if dim < 0:
        axes = next((a.axes for a in data(owner)), None)
        if axes is None:
            return site.unknown(f"the axis of {site.word}")
        dim += axes
    found = rows_of(owner)
    if found is None:
        made = looked_up(site, owner, [places])
        return tuple(
            a._replace(placement=a.placement._replace(axis=a.placement.axis + dim))
            if isinstance(a, Data) and a.placement.kind is Kind.ROWS
            else a
            for a in made
        )
    if dim == found.placement.axis:
        kind = "order" if {d.kind for d in data(site.flat(places))} == {"order"} else "many"
        return rows_chosen(site, owner, found, Walk(dim, Part(kind, places, dim, 1), (), found.axes))
    if is_moving(site, places):
        return indexed(site, owner, placements.PER_RANK, None, places)
    return indexed(site, owner, found.placement, found.axes)


def masked_select(site: Site) -> Value:
    """``x.masked_select(mask)``: the chosen elements, one after the other."""
    both = rows_of(site.each())
    if both is None:
        return site.each()
    ragged = both.placement._replace(
        axis=0, ragged=True, times=0, segments=1, padded=False
    )
    if both.placement.axis:
        ragged = ragged._replace(segments=0)
    return site.data(ragged, axes=1, keep_axes=False)


def nonzero(site: Site) -> Value:
    """``mask.nonzero()``: places in the rank's own batch. A tuple of them has the places of the
    samples, each as often as its mask holds, and beside each the places in what that sample has.
    """
    found = rows_of(site.get(0) or ())
    if found is None:
        return _places_in_table(site)
    own = found.axes == 1
    if site.get(-1, "as_tuple") == const(True) or site.word == "where":
        if found.placement.axis == 0 and found.axes and not own:
            beside = site.data(ragged_rows(found.placement), axes=1, gradient="none", keep_axes=False)
            return items([_places(site, True, 1), *([beside] * (found.axes - 1))])
        place = _places(site, own, 1)
        return items([place] * (found.axes or 1))
    return _places(site, own, 2)


def _places_in_table(site: Site) -> Value:
    """The places of what has no rows (``np.where(folds != k)[0]``): of a tuple each has one axis, for each axis of the mask one."""
    made = site.each()
    in_tuple = site.get(-1, "as_tuple") == const(True) or site.word == "where" or site.name == "numpy.nonzero"
    count = axes_of(site.flat(site.get(0) or NOTHING))
    if not in_tuple or not count or not all(isinstance(a, Data) for a in made):
        return made
    place: Value = tuple(a._replace(axes=1, kind="tensor") for a in made if isinstance(a, Data))
    return items([place] * count)


def _places(site: Site, own: bool, axes: int) -> Value:
    return site.data(
        placements.PER_RANK, kind="places" if own else "tensor", axes=axes, gradient="none",
        keep_axes=False,
    )  # fmt: skip


def where(site: Site) -> Value:
    """``torch.where(c, x, y)`` chooses by element; with the condition alone it gives places."""
    return nonzero(site) if len(site.all()) == 1 else site.each()
