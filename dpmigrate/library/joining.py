"""Tensors put together, and parted along an axis."""

from __future__ import annotations

from dpmigrate.execution import derivation, identity, placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import COUNTS, LENGTH
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NOTHING,
    ONE_SAMPLE,
    RESULTS,
    Data,
    Differs,
    Unknown,
    Value,
    const,
    data,
    placement_of,
    value,
)
from dpmigrate.library import streams
from dpmigrate.library.axes import on_axis, one_dim, rows_in_list, rows_of
from dpmigrate.library.collating import is_put_together
from dpmigrate.library.growing import grown
from dpmigrate.library.index_parts import ragged_rows
from dpmigrate.library.shapes import axes_of, spread, with_lengths
from dpmigrate.library.sites import GROWN, PART, Effect, Site
from dpmigrate.library.sizes import size_of

#: up to how many parts of a tensor are told apart
_FEW = 8


def parts_of(site: Site) -> tuple[list[Value], bool]:
    """The tensors of a list argument, and whether they are known one by one."""
    given = site.get(0, "tensors") or ()
    listed = site.m.known_elements(given)
    if listed is None:
        return [site.flat(site.m.elements(given, site.node, site.frame))], False
    return [site.flat(_tensors(site, v)) for v in listed], True


def _tensors(site: Site, v: Value) -> Value:
    """What of a value may be put together: where it may be a tensor, a tuple or None in its place
    would stop the program.
    """
    if not any(isinstance(a, Data) and a.kind in ("tensor", RESULTS) for a in v):
        return v
    return tuple(a for a in v if isinstance(a, Data | Unknown | Differs) or site.m.object(a))


def behind(site: Site, first: Value) -> None:
    """Record whether what is put together stands behind nothing: before the first turn of a loop in
    which a tensor grows it has no rows. What is made of batches has grown already.
    """
    begun = [a for a in first if isinstance(a, Data) and not a.sources]
    if begun:
        site.event(GROWN, empty=const(all(d.lengths[:1] == (0,) for d in begun)))


def joined_rows(parts: list[Value]) -> tuple[Placement, Data | None]:
    """How parts lie that are put beside each other, and one of those that are rows."""
    found = next((r for v in parts if (r := rows_of(v)) is not None), None)
    if found is None:
        return placement_of(join(*parts)) if parts else placements.UNIFORM, None
    lying = [placement_of(v) for v in parts]
    if any(p.kind is Kind.UNKNOWN for p in lying):
        return placements.UNKNOWN, found
    if all(p.kind is Kind.ROWS for p in lying):
        return placements.joined(lying), found
    # what is beside rows has as many elements as the rank has samples
    mixed = any(p.kind in placements.EQUAL for p in lying)
    return placements.UNKNOWN if mixed else placements.PER_RANK, found


def cat(at: int = 1, default: int = 0) -> Effect:
    """Tensors put end to end along an axis; ``at`` is the place of the argument, -1 for none."""

    def effect(site: Site) -> Value:
        listed = site.m.known_elements(site.get(0, "tensors") or NOTHING)
        if listed and not all(listed):
            return NOTHING  # a call in the list that goes no further: a block of a U-Net that is inside of itself
        parts, exact = parts_of(site)
        behind(site, parts[0] if exact and parts else ())
        if listed and not default and at == 1 and (made := grown(site, listed[0], parts[1:])) is not None:
            return made
        p, found = joined_rows(parts)
        each = rows_in_list(site)
        if each is not None and is_put_together(site, site.get(0, "tensors") or NOTHING):
            single = value(each._replace(axes=None if each.axes is None else each.axes - 1))
            lying = _rows_of_each(site, [single], each.axes and each.axes - 1, at, default)
            if lying is not None:
                axes = _joined_axes(site.word, axes_of(single))
                return derivation.derived(
                    site.word, lying, [single], site.node, kind=_kind(site, each), axes=axes, keep_axes=False
                )
        if each is not None and (at < 0 or site.get(at, "dim") in (None, const(default))) and not default:
            # of each sample as many rows as it has
            axes = each.axes - 1 if each.axes is not None else None
            p = each.placement._replace(ragged=True)
            return derivation.derived(site.word, p, [(each,)], site.node, axes=axes, keep_axes=False)
        if found is None:
            axes = _joined_axes(site.word, axes_of(join(*parts)))
            kind = site.kind_of(parts)
            if not exact and is_put_together(site, site.get(0, "tensors") or NOTHING):
                p = _rows_of_each(site, parts, axes, at, default) or p
            made = derivation.derived(
                site.word, p, parts, site.node, kind=kind, axes=axes, keep_axes=False
            )
            return streams.of_draws(made) if exact and derivation.drawn(parts) else made
        try:
            dim = one_dim(site, at, default) if at >= 0 else default
        except LookupError:
            return site.unknown(f"the axis of {site.word}")
        if site.word in ("hstack", "column_stack") and found.axes == 1:
            return (
                stack(site)
                if site.word == "column_stack"
                else _end_to_end(site, parts, exact, found)
            )
        if site.word in ("hstack", "vstack", "column_stack") and found.axes is None:
            return site.unknown(f"the axis of {site.word}")
        if site.word == "vstack" and found.axes == 1:
            return _stacked(site, parts, 0)
        hit = on_axis(dim, found)
        if hit is None:
            return site.unknown(f"the axis of {site.word}")
        if hit:
            return _end_to_end(site, parts, exact, found)
        made = derivation.derived(site.word, p, parts, site.node, axes=found.axes)
        return with_lengths(made, _side_by_side(parts, found, dim)) if exact else made

    return effect


def _side_by_side(parts: list[Value], found: Data, dim: int) -> list[int | None]:
    """The lengths of the axes of parts that are put end to end along one that is not the samples'."""
    each = [r for v in parts if (r := rows_of(v)) is not None and found.axes and len(r.lengths) == r.axes == found.axes]
    if len(each) < len(parts) or not found.axes:
        return []
    along = [r.lengths[dim] for r in each]
    made = [n if all(r.lengths[i] == n for r in each) else None for i, n in enumerate(found.lengths)]
    made[dim] = None if None in along else sum(n for n in along if n is not None)
    return made


def _rows_of_each(site: Site, parts: list[Value], axes: int | None, at: int, default: int) -> Placement | None:
    """How what samples hold lies that is put end to end: as many rows of each as it has, which are
    one of each where the samples were given an axis of one element for it.
    """
    found = data(join(*parts))
    single = {d.axes for d in found} == {1}
    try:
        dim = one_dim(site, at, default) if at >= 0 else default * (not single)
    except LookupError:
        return placements.UNKNOWN
    dim += axes if dim < 0 and axes is not None else 0
    beside = single and site.word in ("vstack", "row_stack", "column_stack")
    if dim < 0:
        return None
    if beside:
        return placements.rows(int(site.word == "column_stack"))
    each = bool(found) and all(d.lengths[dim : dim + 1] == (1,) for d in found)
    return placements.rows(dim) if each else ragged_rows(placements.rows(dim))


def _joined_axes(word: str, axes: int | None) -> int | None:
    """How many axes tensors have that are put end to end, each of so many."""
    least = {"vstack": 2, "row_stack": 2, "column_stack": 2, "hstack": 1}.get(word, 0)
    return max(axes, least) if axes is not None else None


def _end_to_end(site: Site, parts: list[Value], exact: bool, found: Data) -> Value:
    """Rows behind rows: segments. Rows behind what is the same on all ranks are no shares of
    one tensor.
    """
    lying = [placement_of(v) for v in parts]
    p = placements.joined(lying)
    if p.kind is Kind.ROWS:
        same = all(q.times == lying[0].times and q.segments for q in lying)
        segments = sum(q.segments for q in lying) if exact and same else 0
        p = p._replace(segments=segments)
        return derivation.derived(site.word, p, parts, site.node, axes=found.axes)
    lost = any(q.kind is Kind.UNKNOWN for q in lying)
    p = placements.UNKNOWN if lost else placements.PER_RANK
    return derivation.derived(site.word, p, parts, site.node, keep_axes=False)


def stack(site: Site) -> Value:
    """Tensors put side by side along a new axis."""
    parts, exact = parts_of(site)
    try:
        dim = one_dim(site, 1, 0)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    each = rows_in_list(site)
    if each is not None:
        axes = each.axes
        dim += axes if dim < 0 and axes is not None else 0
        if dim < 0:
            return site.unknown(f"the axis of {site.word}")
        p = each.placement._replace(axis=dim)
        kind = _kind(site, each)
        return derivation.derived(site.word, p, [(each,)], site.node, kind=kind, axes=axes)
    return _stacked(site, parts, -1 if site.word == "column_stack" else dim, exact=exact)


def _kind(site: Site, each: Data) -> str:
    """What is made of items of which only the function that puts them together says that they are tensors."""
    return site.kind if each.kind in ("any", "samples", "number") else ""


def _stacked(site: Site, parts: list[Value], dim: int, *, exact: bool = False) -> Value:
    p, found = joined_rows(parts)
    if found is None or p.kind is not Kind.ROWS:
        plain = axes_of(join(*parts)) if found is None else None
        stacked = plain + 1 if plain is not None else None
        kind = site.kind_of(parts)
        return derivation.derived(
            site.word, p, parts, site.node, kind=kind, axes=stacked, keep_axes=False
        )
    axes = found.axes + 1 if found.axes is not None else None
    if dim < 0:
        if axes is None and dim != -1:
            return site.unknown(f"the axis of {site.word}")
        dim = dim + axes if axes is not None else p.axis + 1
    p = p._replace(axis=p.axis + (1 if dim <= p.axis else 0))
    lengths = tuple(spread(found, dim, len(parts) if exact else None))
    return derivation.derived(site.word, p, parts, site.node, axes=axes, keep_axes=False, lengths=lengths)


def views(effect: Effect) -> Effect:
    """A function that gives a list of parts of a tensor, which are the tensor itself: what is written
    into them is written into it.
    """

    def effect_of_views(site: Site) -> Value | None:
        result = effect(site)
        held = identity.is_held(site.flat(site.get(0) or ()))
        for made in site.m.objects(result) if result is not None and held else ():
            for name, part in list(site.m.heap.names(made.number)):
                if name not in COUNTS:
                    site.m.heap.write((made.number, name), identity.the_same(part, held))
        return result

    return effect_of_views


def chunk(site: Site) -> Value:
    """``split``, ``chunk``: parts along an axis."""
    first = site.flat(site.get(0) or ())
    found = rows_of(first)
    if found is None:
        made = derivation.derived(
            site.word, placement_of(first), [first], site.node, keep_axes=False
        )
        return site.m.listed([made], site.node, site.frame, exact=False)
    try:
        dim = one_dim(site, 2, 0)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    hit = on_axis(dim, found)
    if hit is None:
        return site.unknown(f"the axis of {site.word}")
    p, count = found.placement, _count(site, found.placement)
    if hit and count == p.segments > 1:
        part = derivation.derived(
            "one view", p._replace(segments=1), [first], site.node, axes=found.axes
        )
        return site.m.listed([part] * p.segments, site.node, site.frame)
    if hit:
        made = derivation.derived(PART, placements.PER_RANK, [first], site.node)
        return site.m.listed([made], site.node, site.frame, exact=False)
    part = derivation.derived(site.word, p, [first], site.node, axes=found.axes)
    if site.word == "chunk" and isinstance(count, int) and 0 < count <= _FEW:
        return site.m.listed([part] * count, site.node, site.frame)
    sizes = site.get(1)
    listed = site.m.known_elements(sizes) if sizes else None
    if site.word == "split" and listed is not None and not site.name.startswith("numpy."):
        return site.m.listed([part] * len(listed), site.node, site.frame)
    return site.m.listed([part], site.node, site.frame, exact=False)


def _count(site: Site, p: Placement) -> int | None:
    """How many parts are made: of ``chunk`` as it says, of ``split`` by the number of samples."""
    given = site.get(1, "chunks") or site.get(1, "split_size_or_sections") or ()
    if site.word == "chunk" or site.name.startswith("numpy."):
        count = site.m.constant(given)
        return count.value if count is not None and isinstance(count.value, int) else None
    listed = site.m.known_elements(given)
    sizes = [placement_of(v) for v in listed] if listed is not None else [placement_of(given)]
    if sizes and all(s.kind is Kind.SIZE and s.times == p.times > 0 for s in sizes):
        return len(sizes) if listed is not None else p.segments
    return None


def unbind(site: Site) -> Value:
    """``unbind(dim)``: the slices along an axis."""
    first = site.flat(site.get(0) or ())
    found = rows_of(first)
    p = placement_of(first)
    axes = None
    if found is not None:
        try:
            dim = one_dim(site, 1, 0)
        except LookupError:
            return site.unknown(f"the axis of {site.word}")
        hit = on_axis(dim, found)
        if hit is None:
            return site.unknown(f"the axis of {site.word}")
        axes = found.axes - 1 if found.axes is not None else None
        before = (dim >= 0 and dim < p.axis) or (found.axes is not None and 0 > dim >= -found.axes
                                              and dim + found.axes < p.axis)  # fmt: skip
        if hit:
            return _one_by_one(site, found, axes)
        p = p._replace(axis=p.axis - int(before))
    part = derivation.derived(site.word, p, [first], site.node, axes=axes, keep_axes=False)
    count = found.lengths[dim] if found is not None and len(found.lengths) == found.axes else None
    if count is not None and 0 < count <= _FEW:
        return site.m.listed([part] * count, site.node, site.frame)
    return site.m.listed([part], site.node, site.frame, exact=False)


def _one_by_one(site: Site, found: Data, axes: int | None) -> Value:
    """The samples of a batch, one after the other."""
    part = derivation.derived(
        ONE_SAMPLE, placements.PER_RANK, [(found,)], site.node, axes=axes, keep_axes=False
    )
    out = site.m.listed([part], site.node, site.frame, exact=False)
    site.m.heap.write((site.m.objects(out)[0].number, LENGTH), size_of(site, found, 0))
    return out
