"""Operations that move, merge and part axes, and sizes.

They take for granted what a source text cannot show: a view whose first size is -1 keeps samples whole,
and an axis that is squeezed has one element.
"""

from __future__ import annotations

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    SETTING,
    Const,
    Data,
    Value,
    const,
    items,
    placement_of,
    value,
)
from dpmigrate.library.sites import Effect, Site, dims_of, on_axis, one_dim, rows_of


def plain(site: Site) -> Value:
    """The result of a change of shape where no axis runs over samples: it lies as before."""
    first = site.flat(site.get(0) or ())
    if not first:
        return value(Data(site.kind, placements.UNIFORM))
    return arithmetic.derived(site.word, placement_of(first), [first], site.node, keep_axes=False)


def sizes_of(site: Site) -> list[Value] | None:
    """The sizes that a view is given, one by one; None where they are not known."""
    given = site.arguments.positional[0 if site.receiver is not None else 1 :]
    if site.arguments.star:
        return None
    if not given:
        named = site.arguments.keywords.get("shape") or site.arguments.keywords.get("size")
        given = [named] if named else []
    if len(given) == 1:
        listed = site.m.known_elements(given[0])
        if listed is not None:
            return listed
        if rows_of(given[0]) is not None:
            return None
    return list(given) or None


def reshape(site: Site) -> Value:
    """``view``, ``reshape``: the rows stay where a size is their number, or the first one is -1."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    sizes = sizes_of(site)
    if sizes is None:
        shaped = rows_of(site.arguments.positional[0]) if site.arguments.positional else None
        if shaped is not None and shaped.kind == "shape":
            p = shaped.placement  # x.view(y.shape)
            if p.axis == found.placement.axis:
                return site.data(p, axes=shaped.axes, keep_axes=False)
        return site.unknown(f"the sizes of {site.word}")
    if len(sizes) == 1 and sizes[0] in (const(-1), SETTING) and found.axes == 1:
        return site.data(found.placement, axes=1)
    made = _viewed(found.placement, sizes)
    if made is None:
        return site.unknown("which axis of a view runs over the samples")
    return site.data(made, axes=len(sizes))


def _viewed(p: Placement, sizes: list[Value]) -> Placement | None:
    """Where the rows lie in a view of these sizes; None where that is not known."""
    lying = [placement_of(s) for s in sizes]
    counts = [i for i, q in enumerate(lying) if q.kind is Kind.SIZE]
    if any(q.kind not in (*placements.EQUAL, Kind.SIZE) for q in lying):
        return p._replace(axis=lying.index(placements.SUM)) if p.ragged and _lone(lying) else None
    if len(counts) > 1 or (counts and p.ragged):
        return None
    first = next((i for i, s in enumerate(sizes) if s != const(1)), 0)
    whole = p.times * p.segments
    if counts:
        (at,) = counts
        k = lying[at].times
        if whole and k == whole and (at == p.axis or at == first):
            return p._replace(axis=at) if at == p.axis or p.axis == 0 else None
        if at == first and p.axis == 0 and p.segments == 1:
            return p._replace(axis=at, times=k if k > 0 else 0)
        if at == first and k == 0:
            # rows merged with the axes before them: these come first
            return p._replace(axis=at, times=0, segments=0 if p.axis else p.segments)
        if p.axis == 0 and p.segments > 1 and k == p.times and at == first + 1:
            if sizes[first] == const(p.segments):
                return p._replace(axis=at, segments=1)
        return None
    if sizes[first] == const(-1):
        return p._replace(axis=first, times=0, segments=0 if p.axis else p.segments)
    return None


def _lone(lying: list[Placement]) -> bool:
    """Whether the number of chosen rows is the first size, and no other is one."""
    return lying[0] == placements.SUM and lying.count(placements.SUM) == 1


def like_another(site: Site) -> Value:
    """``x.view_as(y)``, ``x.reshape_as(y)``."""
    found, other = rows_of(site.get(0) or ()), rows_of(site.get(1) or ())
    if found is None:
        return plain(site) if other is None else site.unknown(f"the rows of {site.word}")
    if other is None or other.placement.axis != found.placement.axis:
        return site.unknown(f"the rows of {site.word}")
    p = placements.join(found.placement, other.placement)
    return arithmetic.derived(
        site.word, p, [value(found)], site.node, axes=other.axes, keep_axes=False
    )


def permute(site: Site) -> Value:
    """``permute`` and ``transpose``: the axis of the rows moves."""
    found = rows_of(site.get(0) or ())
    if found is None:
        first = site.flat(site.get(0) or ())
        return arithmetic.derived(site.word, placement_of(first), [first], site.node)
    p, axes = found.placement, found.axes
    numpy = site.name.startswith("numpy.") or found.kind == "array"
    try:
        if site.word in ("t", "T", "mT", "adjoint", "H", "mH") or (
            site.word == "transpose" and numpy and not site.arguments.positional
        ):
            if axes == 1:
                return value(found)
            if axes not in (2, None) or (axes is None and site.word != "t"):
                return _last_two(site, found)
            return site.data(p._replace(axis=1 - p.axis), axes=2)
        if site.word in ("transpose", "swapaxes", "swapdims") and not (
            site.word == "transpose" and numpy
        ):
            return _swapped(site, found)
        order = [_int(v) for v in sizes_of(site) or [SETTING]]
        axes = len(order)
        order = [d + axes if d < 0 else d for d in order]
        return site.data(p._replace(axis=order.index(p.axis)), axes=axes)
    except (LookupError, ValueError):
        return site.unknown(f"the axes of {site.word}")


def _last_two(site: Site, found: Data) -> Value:
    """``.mT`` swaps the last two axes, ``.T`` turns the order of all."""
    p, axes = found.placement, found.axes
    if axes is None:
        return site.unknown(f"the axes of {site.word}")
    to = axes - 1 - p.axis
    if site.word in ("mT", "adjoint", "mH") and p.axis < axes - 2:
        to = p.axis
    return site.data(p._replace(axis=to), axes=axes)


def _swapped(site: Site, found: Data) -> Value:
    a, b = one_dim(site, 1, 0, "dim0"), one_dim(site, 2, 0, "dim1")
    hits = [on_axis(a, found), on_axis(b, found)]
    if None in hits:
        return site.unknown("which axes are swapped")
    to = b if hits[0] else a if hits[1] else found.placement.axis
    if to < 0:
        if found.axes is None:
            return site.unknown("which axes are swapped")
        to += found.axes
    return site.data(found.placement._replace(axis=to), axes=found.axes)


def _int(v: Value) -> int:
    if len(v) == 1 and isinstance(v[0], Const) and type(v[0].value) is int:
        return v[0].value
    raise LookupError


def moved(site: Site) -> Value:
    """``movedim(x, source, destination)``."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    try:
        a, b = one_dim(site, 1, 0, "source"), one_dim(site, 2, 0, "destination")
    except LookupError:
        return site.unknown("which axis is moved")
    if found.axes is None and (a < 0 or b < 0):
        return site.unknown("which axis is moved")
    axes = found.axes or 1 + max(a, b, found.placement.axis)
    order = [i for i in range(axes) if i != a % axes]
    order.insert(b % axes, a % axes)
    return site.data(
        found.placement._replace(axis=order.index(found.placement.axis)), axes=found.axes
    )


def unsqueeze(site: Site) -> Value:
    """``unsqueeze(dim)``: an axis of one element more."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    try:
        dim = one_dim(site, 1, 0)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    axes = found.axes + 1 if found.axes is not None else None
    if dim < 0:
        if axes is None and dim != -1:
            return site.unknown(f"the axis of {site.word}")
        dim = dim + axes if axes is not None else found.placement.axis + 1
    axis = found.placement.axis + (1 if dim <= found.placement.axis else 0)
    return site.data(found.placement._replace(axis=axis), axes=axes, keep_axes=False)


def squeeze(site: Site) -> Value:
    """``squeeze(dim)``: an axis of one element less; a batch is not taken to be one sample."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    p = found.placement
    try:
        dims = dims_of(site, 1)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    if dims is None:
        if p.axis:
            return site.unknown("which axes have one element")
        return site.data(p, axes=None, keep_axes=False)
    hits = [on_axis(d, found) for d in dims]
    if None in hits:
        return site.unknown(f"the axis of {site.word}")
    gone = [d for d, hit in zip(dims, hits, strict=True) if not hit]
    before = [d for d in gone if 0 <= (d if d >= 0 else d + (found.axes or 0)) < p.axis]
    before = [d for d in before if d >= 0 or found.axes is not None]
    axes = found.axes - len(gone) if found.axes is not None else None
    return site.data(p._replace(axis=p.axis - len(before)), axes=axes, keep_axes=False)


def flatten(site: Site) -> Value:
    """``flatten(start_dim, end_dim)``: axes made one."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    p, axes = found.placement, found.axes
    try:
        start = _bound(site, 1, "start_dim", 0)
        end = _bound(site, 2, "end_dim", -1)
    except LookupError:
        return site.unknown("which axes are flattened")
    if axes is not None:
        start, end = start % axes, end % axes
    if start < 0 or (end < 0 and end != -1):
        return site.unknown("which axes are flattened")
    last = end if end >= 0 else 10**6
    left = axes - (end - start) if axes is not None else start + 1 if end == -1 else None
    if p.axis < start:
        return site.data(p, axes=left, keep_axes=False)
    if p.axis > last:
        return site.data(p._replace(axis=p.axis - last + start), axes=left, keep_axes=False)
    times = p.times if p.axis == last else 0
    segments = p.segments if p.axis == start else 0
    made = p._replace(axis=start, times=times, segments=segments)
    return site.data(made, axes=left, keep_axes=False)


def _bound(site: Site, at: int, name: str, default: int) -> int:
    given = site.get(at, name)
    if given is None or (
        len(given) == 1 and isinstance(given[0], Const) and given[0].type == "str"
    ):
        return default  # numpy's flatten("C")
    return _int(given)


def shape(site: Site) -> Value:
    """``x.shape``, ``x.size()``, ``x.size(0)``."""
    given = site.flat(site.get(0) or ())
    found = rows_of(given)
    index = site.get(1, "dim")
    if found is None:
        p = placement_of(given)
        if p.kind in (Kind.UNKNOWN, Kind.PER_RANK):
            return arithmetic.derived(
                "size", p, [given], site.node, kind="number", gradient="none", keep_axes=False
            )
        count = next((a.axes for a in given if isinstance(a, Data)), None)
        return SETTING if index is not None or count is None else items([SETTING] * count)
    if index is None:
        if found.axes is not None:
            return items([size_of(site, found, i) for i in range(found.axes)])
        return value(found._replace(kind="shape", gradient="none", reached=frozenset()))
    try:
        return size_of(site, found, _int(index))
    except LookupError:
        return site.unknown("which size")


def size_of(site: Site, found: Data, index: int) -> Value:
    """The size of one axis."""
    hit = on_axis(index, found)
    if hit is None:
        return site.unknown("which axis has that size")
    if not hit:
        return SETTING
    p = found.placement
    made = placements.SUM if p.ragged else placements.size(p.segments * p.times)
    return arithmetic.derived(
        "size", made, [value(found)], site.node, kind="number", gradient="none", keep_axes=False
    )


def elements_count(site: Site) -> Value:
    """``x.numel()``: a multiple of the number of samples."""
    given = site.flat(site.get(0) or ())
    found = rows_of(given)
    if found is None:
        p = placement_of(given)
        if p.kind in (Kind.UNKNOWN, Kind.PER_RANK):
            return arithmetic.derived("size", p, [given], site.node, kind="number", gradient="none")
        return SETTING
    p = placements.SUM if found.placement.ragged else placements.size(0)
    return site.data(p, kind="number", gradient="none", keep_axes=False)


def repeat(site: Site) -> Value:
    """``x.repeat(2, 1)``, ``tile``: copies put end to end along axes."""
    given = site.get(0) or ()
    found, sizes = rows_of(given), sizes_of(site)
    if sizes is None:
        return plain(site) if found is None else site.unknown("how often a tensor is repeated")
    at = [i for i, s in enumerate(sizes) if placement_of(s).kind is Kind.SIZE]
    if any(placement_of(s).kind not in (*placements.EQUAL, Kind.SIZE) for s in sizes):
        return site.unknown("how often a tensor is repeated")
    if found is None:
        if not at:
            return plain(site)
        p = placement_of(site.flat(given))
        if len(at) > 1 or p.kind not in placements.EQUAL:
            return site.data(placements.PER_RANK, keep_axes=False)
        return site.data(placements.rows(at[0], times=0), axes=len(sizes))
    if at:
        return site.data(placements.PER_RANK, keep_axes=False)
    if found.axes is None and any(s != const(1) for s in sizes[:-1]) and len(sizes) > 1:
        return site.unknown("how often the samples are repeated")
    p = found.placement
    more = len(sizes) - (found.axes if found.axes is not None else len(sizes))
    axis = p.axis + max(more, 0)
    place = p.axis + more
    times = sizes[place] if 0 <= place < len(sizes) else const(1)
    count = times[0].value if len(times) == 1 and isinstance(times[0], Const) else 0
    return site.data(p._replace(axis=axis, segments=p.segments * count), axes=len(sizes))


def expand(site: Site) -> Value:
    """``expand``, ``broadcast_to``: an axis of one element is made longer; of the samples it becomes rows."""
    given = site.get(0) or ()
    found, sizes = rows_of(given), sizes_of(site)
    if sizes is None:
        shaped = next((r for v in site.arguments.positional if (r := rows_of(v))), None)
        p = placement_of(site.flat(given))
        if shaped is not None and p.kind in placements.EQUAL:
            return site.data(shaped.placement, axes=shaped.axes, keep_axes=False)
        if shaped is not None and found is not None:
            return _like_rows(site, found, shaped)
        return plain(site) if found is None else site.unknown("the sizes of an expanded tensor")
    at = [i for i, s in enumerate(sizes) if placement_of(s).kind is Kind.SIZE]
    if found is None:
        if not at:
            return plain(site)
        p = placement_of(site.flat(given))
        if len(at) > 1 or p.kind not in placements.EQUAL:
            return site.data(placements.PER_RANK, keep_axes=False)
        return site.data(
            placements.rows(at[0], times=placement_of(sizes[at[0]]).times), axes=len(sizes)
        )
    more = len(sizes) - (found.axes if found.axes is not None else len(sizes))
    axis = found.placement.axis + more
    if any(i != axis for i in at):
        return site.data(placements.PER_RANK, keep_axes=False)
    return site.data(found.placement._replace(axis=axis), axes=len(sizes))


def expand_as(site: Site) -> Value:
    """``x.expand_as(y)``."""
    found, other = rows_of(site.get(0) or ()), rows_of(site.get(1) or ())
    if other is None:
        return plain(site)
    if found is None:
        p = placement_of(site.flat(site.get(0) or ()))
        made = other.placement if p.kind in placements.EQUAL else placements.PER_RANK
        return site.data(made, axes=other.axes, keep_axes=False)
    return _like_rows(site, found, other)


def _like_rows(site: Site, found: Data, other: Data) -> Value:
    both = placements.elementwise(arithmetic.aligned([value(found), value(other)]))
    return site.data(both, axes=other.axes, keep_axes=False)


def repeat_interleave(site: Site) -> Value:
    """``x.repeat_interleave(2, dim=0)``: copies of each row beside it."""
    found = rows_of(site.get(0) or ())
    count = site.get(1, "repeats") or ()
    if found is None:
        return (
            plain(site) if placement_of(count).kind in placements.EQUAL else site.unknown("repeats")
        )
    try:
        dims = dims_of(site, 2)
    except LookupError:
        return site.unknown("the axis of repeat_interleave")
    if dims is None and found.axes != 1:
        if found.placement.axis:
            return site.unknown("axes flattened with that of the samples")
        return site.data(found.placement._replace(times=0), axes=1)
    hit = on_axis(dims[0], found) if dims is not None else True
    if hit is None:
        return site.unknown("the axis of repeat_interleave")
    p = found.placement
    if hit:
        if rows_of(count) is not None:
            return site.data(p._replace(ragged=True, times=0), axes=found.axes, keep_axes=False)
        if placement_of(count).kind not in placements.EQUAL:
            return site.data(placements.PER_RANK, keep_axes=False)
        known = count[0].value if len(count) == 1 and isinstance(count[0], Const) else 0
        return site.data(p._replace(times=p.times * known), axes=found.axes)
    return site.data(p, axes=found.axes)


def kept(effect: Effect) -> Effect:
    """A change of shape that keeps masks masks, and places places."""

    def shaped(site: Site) -> Value | None:
        made = effect(site)
        kinds = {a.kind for a in site.get(0) or () if isinstance(a, Data)}
        if made and kinds and kinds <= {"mask", "places", "order"}:
            kind = "places" if "mask" not in kinds else "mask"
            made = tuple(a._replace(kind=kind) if isinstance(a, Data) else a for a in made)
        return made

    return shaped


def unflatten(site: Site) -> Value:
    """``unflatten(dim, sizes)``: an axis becomes several."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    try:
        dim = one_dim(site, 1, 0)
    except LookupError:
        return site.unknown("which axis is parted")
    sizes = site.m.known_elements(site.get(2, "sizes") or ())
    hit = on_axis(dim, found)
    if hit is not False or sizes is None or 0 <= dim < found.placement.axis:
        return site.unknown("which axis is parted")
    axes = found.axes + len(sizes) - 1 if found.axes is not None else None
    return site.data(found.placement, axes=axes, keep_axes=False)


def windows(site: Site) -> Value:
    """``x.unfold(dim, size, step)``: windows along an axis, on an axis more."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    try:
        dim = one_dim(site, 1, 0, "dimension")
    except LookupError:
        return site.unknown("the axis of unfold")
    hit = on_axis(dim, found)
    if hit is None:
        return site.unknown("the axis of unfold")
    axes = found.axes + 1 if found.axes is not None else None
    placement = placements.PER_RANK if hit else found.placement
    return site.data(placement, axes=axes, keep_axes=False)
