"""Sizes of tensors, and copies along axes: ``size``, ``repeat``, ``expand``."""

from __future__ import annotations

from typing import TypeGuard

from dpmigrate.execution import broadcasting, derivation, placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    SETTING,
    Const,
    Data,
    Origin,
    Value,
    const,
    data,
    items,
    origins,
    placement_of,
    value,
)
from dpmigrate.library.axes import dims_of, on_axis, rows_of
from dpmigrate.library.shapes import plain, sizes_of, whole_number
from dpmigrate.library.sites import OF_ONE_SIZE, WHICH_SAMPLE, Site


def shape(site: Site) -> Value:
    """``x.shape``, ``x.size()``, ``x.size(0)``."""
    given = site.flat(site.get(0) or ())
    found = rows_of(given)
    index = site.get(1, "dim")
    if found is None:
        p = placement_of(given)
        words = {o.word for d in data(given) for o in origins(d.origin)}
        own = p.kind is Kind.TERM and WHICH_SAMPLE in words  # a sample's own
        if (p.kind in (Kind.UNKNOWN, Kind.PER_RANK) or own) and OF_ONE_SIZE not in words:
            return derivation.derived(
                "size", p, [given], site.node, kind="number", gradient="none", keep_axes=False
            )
        if index == const(0) and any(d.every for d in data(given)):
            return as_many_as_all(site, given)
        count = next((a.axes for a in given if isinstance(a, Data)), None)
        return SETTING if index is not None or count is None else items([SETTING] * count)
    if index is None:
        if found.axes is not None:
            return items([size_of(site, found, i) for i in range(found.axes)])
        return value(found._replace(kind="shape", gradient="none", reached=frozenset()))
    try:
        return size_of(site, found, whole_number(index))
    except LookupError:
        return site.unknown("which size")


def as_many_as_all(site: Site, given: Value) -> Value:
    """The number of the samples of all ranks, of what is as long as they are."""
    made = derivation.derived(
        "size", placements.UNIFORM, [given], site.node, kind="number", gradient="none", keep_axes=False
    )
    return tuple(a._replace(every=True) if isinstance(a, Data) else a for a in made)


def is_shape(atom: object) -> TypeGuard[Data]:
    """Whether a value is the shape of a tensor of which it is not known how many axes it has."""
    return isinstance(atom, Data) and atom.kind == "shape" and atom.axes is None


def size_of(site: Site, found: Data, index: int) -> Value:
    """The size of one axis."""
    hit = on_axis(index, found)
    if hit is None and found.placement.axis == 0 and (index < -1 or found.gradient != "none"):
        hit = False  # an axis that is counted from the end: not that of the samples
    if hit is None:
        return site.unknown("which axis has that size")
    if not hit:
        return _other_size(site, found, index)
    p = found.placement
    made = placements.SUM if p.ragged else placements.size(p.segments * p.times)
    return derivation.derived(
        "size", made, [value(found)], site.node, kind="number", gradient="none", keep_axes=False
    )


def _other_size(site: Site, found: Data, index: int) -> Value:
    """The size of an axis that is not that of the samples: of the first two axes of what is padded
    it is the length of the longest sample that the rank has. The last axis may be one of these where
    it is not known how many there are; that of what a model gives is taken for its channels.
    """
    at = index + found.axes if index < 0 and found.axes is not None else index
    perhaps = at == -1 and found.gradient == "none"
    if not found.placement.padded or not (at in (0, 1) or perhaps):
        return SETTING
    return value(Data("number", placements.PADDED, sources=found.sources, axes=0, origin=Origin(site.node, "size")))


def axes_count(site: Site) -> Value:
    """``x.dim()``, ``x.ndim``: the number of axes, the same on all ranks."""
    found = site.get(0) or ()
    counts = {a.axes if isinstance(a, Data) else None for a in found}
    (axes,) = counts if len(counts) == 1 else (None,)
    return const(axes) if axes is not None else SETTING


def elements_count(site: Site) -> Value:
    """``x.numel()``: a multiple of the number of samples."""
    given = site.flat(site.get(0) or ())
    found = rows_of(given)
    if found is None:
        p = placement_of(given)
        if p.kind in (Kind.UNKNOWN, Kind.PER_RANK):
            return derivation.derived("size", p, [given], site.node, kind="number", gradient="none")
        return SETTING
    if found.placement.padded:  # with what the rank's samples are filled up with
        p = placements.PER_RANK
    else:
        p = placements.SUM if found.placement.ragged else placements.size(0)
    return site.data(p, kind="number", gradient="none", keep_axes=False)


def repeat(site: Site) -> Value:
    """``x.repeat(2, 1)``, ``tile``: copies put end to end along axes."""
    given = site.get(0) or ()
    found, sizes = rows_of(given), sizes_of(site)
    if sizes is None:
        return plain(site) if found is None else site.unknown("how often a tensor is repeated")
    at = [i for i, s in enumerate(sizes) if placement_of(s).kind is Kind.SIZE]
    kinds = {placement_of(s).kind for s in sizes}
    if Kind.UNKNOWN in kinds:
        return site.unknown("how often a tensor is repeated")
    if kinds - {*placements.EQUAL, Kind.SIZE}:  # as often as a number of each rank's own says
        return site.data(placements.PER_RANK, keep_axes=False)
    if found is None:
        if not at:
            return plain(site)
        p = placement_of(site.flat(given))
        if len(at) > 1 or p.kind not in placements.EQUAL:
            return site.data(placements.PER_RANK, keep_axes=False)
        axes = {d.axes for d in data(site.flat(given))}
        new = len(axes) == 1 and (own := axes.pop()) is not None and at[0] < len(sizes) - own
        factor = placement_of(sizes[at[0]]).times if new else 0  # an axis that is new has one element
        return site.data(placements.rows(at[0], times=factor), axes=len(sizes))
    if at:
        return site.data(placements.PER_RANK, keep_axes=False)
    p = found.placement
    # a tensor of unknown axes is taken to have one for each size, as ``expand`` takes it, where its
    # samples are then there once; more sizes than axes would move the samples
    once = p.axis < len(sizes) and sizes[p.axis] == const(1)
    if found.axes is None and not once and any(s != const(1) for s in sizes[:-1]) and len(sizes) > 1:
        return site.unknown("how often the samples are repeated")
    more = len(sizes) - (found.axes if found.axes is not None else len(sizes))
    axis = p.axis + max(more, 0)
    place = p.axis + more
    times = sizes[place] if 0 <= place < len(sizes) else const(1)
    count = times[0].value if len(times) == 1 and isinstance(times[0], Const) else 0
    return site.data(p._replace(axis=axis, segments=p.segments * count), axes=len(sizes))


def expand(site: Site) -> Value:
    """``expand``, ``broadcast_to``: an axis of one element is made longer; of the samples it
    becomes rows.
    """
    given = site.get(0) or ()
    found, sizes = rows_of(given), sizes_of(site)
    if site.arguments.star:
        return _expanded_open(site)
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
    if found.axes is None and len(at) == 1 and const(-1) not in sizes:
        axis = at[0]  # of all sizes that are said it is theirs
    if axis < 0:
        return site.unknown("the sizes of an expanded tensor")
    if any(i != axis for i in at):
        return site.data(placements.PER_RANK, keep_axes=False)
    return site.data(found.placement._replace(axis=axis), axes=len(sizes))


def _expanded_open(site: Site) -> Value:
    """``x.expand(b, *others)``, of which only the first sizes are known."""
    given = site.flat(site.get(0) or ())
    first = site.arguments.positional[0 if site.receiver is not None else 1 :]
    shaped = rows_of(site.arguments.star)
    if shaped is not None and not first and is_shape(shaped):  # x.expand(*y.shape)
        found = rows_of(given)
        if found is not None:
            return _like_rows(site, found, shaped)
        equal = placement_of(given).kind in placements.EQUAL
        p = shaped.placement if equal else placements.PER_RANK
        return site.data(p, axes=shaped.axes, keep_axes=False)
    lying = [placement_of(s) for s in first]
    moving = [i for i, p in enumerate(lying) if p.kind not in placements.EQUAL]
    plain_rest = placement_of(site.arguments.star).kind in placements.EQUAL
    if rows_of(given) or not plain_rest or len(moving) > 1:
        return site.unknown("the sizes of an expanded tensor")
    p = placement_of(given)
    if moving and lying[moving[0]].kind is not Kind.SIZE:
        return site.unknown("the sizes of an expanded tensor")
    if moving and p.kind in placements.EQUAL:
        p = placements.rows(moving[0], times=lying[moving[0]].times)
    elif moving:
        p = placements.UNKNOWN if p.kind is Kind.UNKNOWN else placements.PER_RANK
    return site.data(p, keep_axes=False)


def expand_as(site: Site) -> Value:
    """``x.expand_as(y)``."""
    found, other = rows_of(site.get(0) or ()), rows_of(site.get(1) or ())
    if other is None:
        return plain(site)
    if found is None:
        first = site.flat(site.get(0) or ())
        equal = placement_of(first).kind in placements.EQUAL
        p = other.placement if equal else placements.PER_RANK
        made = derivation.derived(site.word, p, [first], site.node, axes=other.axes, keep_axes=False)
        return beside(made, [other]) if equal else made
    return _like_rows(site, found, other)


def beside(made: Value, others: list[Data]) -> Value:
    """What all ranks have, laid out once for each row of other tensors: no number of those is in it,
    but the rows are as many as the turn under way, or all ranks, have samples.
    """
    turn, every = all(d.turn for d in others), any(d.every for d in others)
    return tuple(a._replace(turn=turn, every=every) if isinstance(a, Data) else a for a in made)


def _like_rows(site: Site, found: Data, other: Data) -> Value:
    """The elements of one tensor, as often as those of another one lie: nothing of that one is in it."""
    both = placements.elementwise(broadcasting.aligned([value(found), value(other)]))
    return derivation.derived(
        site.word, both, [value(found)], site.node, axes=other.axes, keep_axes=False
    )


def repeat_interleave(site: Site) -> Value:
    """``x.repeat_interleave(2, dim=0)``: copies of each row beside it."""
    found = rows_of(site.get(0) or ())
    count = site.get(1, "repeats") or ()
    if found is None:
        return _interleaved(site, placement_of(count))
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


def _interleaved(site: Site, count: Placement) -> Value:
    """What all ranks have, each element of an axis as often as ``count``: of an axis with one
    element, such as a token's, that many rows.
    """
    if count.kind in placements.EQUAL:
        return plain(site)
    given = site.flat(site.get(0) or ())
    dims = dims_of(site, 2)
    if count.kind is not Kind.SIZE or dims is None or len(dims) != 1 or dims[0] < 0:
        return site.unknown("repeats")
    if placement_of(given).kind not in placements.EQUAL:
        return site.unknown("repeats")
    return site.data(placements.rows(dims[0], times=count.times), keep_axes=True)
