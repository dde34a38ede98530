"""Views of tensors by sizes: ``view``, ``reshape``, ``unflatten``.

They take for granted what a source text cannot show: a view whose first size is -1 keeps samples
whole, and so does one whose first size is a quotient of a multiple of their number.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from operator import mul

from dpmigrate.execution import arithmetic, derivation, placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    SETTING,
    Const,
    Data,
    Value,
    const,
    data,
    origins,
    placement_of,
    value,
)
from dpmigrate.library.axes import on_axis, one_dim, rows_of
from dpmigrate.library.shapes import plain, sizes_of, with_lengths
from dpmigrate.library.sites import Site


def reshape(site: Site) -> Value:
    """``view``, ``reshape``: the rows stay where a size is their number, or the first one is -1."""
    found = rows_of(site.get(0) or ())
    sizes = sizes_of(site)
    if found is None:
        whole = site.flat(site.get(0) or ())
        if sizes and placement_of(whole).kind in placements.EQUAL and any(placement_of(s).kind is Kind.SIZE for s in sizes):
            # what has as many elements on all ranks has none of these for each of a rank's samples
            return site.unknown(f"{site.word} of what all ranks have alike, by a rank's number of samples")
        one_by_one = sizes is not None and (len(sizes) != 1 or any(isinstance(a, Const) for a in sizes[0]))
        return plain(site, len(sizes) if sizes is not None and one_by_one else None)
    given = site.arguments.positional[0 if site.receiver is not None else 1 :]
    if sizes is None and given and placement_of(site.arguments.star).kind in placements.EQUAL:
        open_ended = bool(site.arguments.star)
        made = _from_the_samples(found.placement, [*given, SETTING]) if open_ended else None
        if made is not None:  # x.view(b, *others)
            return site.data(made, axes=None, keep_axes=False)
    if sizes is None:
        shaped = rows_of(site.arguments.positional[0]) if site.arguments.positional else None
        if shaped is not None and shaped.kind == "shape":
            p = shaped.placement  # x.view(y.shape)
            if p.axis == found.placement.axis:
                return site.data(p, axes=shaped.axes, keep_axes=False)
        return site.unknown(f"the sizes of {site.word}")
    if len(sizes) == 1 and sizes[0] in (const(-1), SETTING) and found.axes == 1:
        return site.data(found.placement, axes=1)
    made = _viewed(found, sizes)
    if made is not None and found.axes == 1 and not made.times and all(s == const(1) for s in sizes if s != const(-1)):
        made = made._replace(times=found.placement.times)  # y.view(-1, 1): as many as there were
    if made is not None and not made.times and not made.axis and _keeps_count(found, sizes):
        made = made._replace(times=found.placement.times)
    if made is None:
        return site.unknown("which axis of a view runs over the samples")
    return with_lengths(site.data(made, axes=len(sizes)), map(_length, sizes))


def _viewed(found: Data, sizes: list[Value]) -> Placement | None:
    """Where the rows lie in a view of these sizes; None where that is not known."""
    p, before = found.placement, _before(found)
    if p.axis and before:
        # the axes before the samples' own stay apart from it where sizes are as many elements
        products = [1, *accumulate((_length(s) or 0 for s in sizes), mul)]
        if before in products:
            own = products.index(before)
            made = _from_the_samples(p._replace(axis=0), sizes[own:])
            return made and made._replace(axis=made.axis + own)
        if products[min(p.axis, len(sizes))] or _across_samples(found, sizes):
            return None
    return _from_the_samples(p, sizes) or _behind_others(found, sizes)


def _across_samples(found: Data, sizes: list[Value]) -> bool:
    """Whether ``h.view(-1, 2 * n)`` puts elements of two samples side by side, which have n each."""
    behind, own = found.lengths[found.placement.axis + 1 :], [_length(s) for s in sizes[1:]]
    if sizes[:1] != [const(-1)] or None in (*behind, *own):
        return False
    return prod(n for n in behind if n) % prod(n for n in own if n) != 0


def _keeps_count(found: Data, sizes: list[Value]) -> bool:
    """Whether ``h.view(-1, 6, 2)`` has as many rows as ``h``, of which each has 12 elements."""
    before, after = found.lengths[1:], [_length(s) for s in sizes[1:]]
    if sizes[:1] != [const(-1)] or found.placement.axis or len(before) + 1 != found.axes or None in (*before, *after):
        return False
    return prod(n for n in before if n) == prod(n for n in after if n)


def _behind_others(found: Data, sizes: list[Value]) -> Placement | None:
    """Where the rows lie that have axes before them which a view keeps, or parts: it has the number
    of samples, or a multiple of it, where that is.

    As many sizes before them as axes keep those (``x.view(T, B * heads, -1)``, ``x.view(T, B * n)``);
    where there are more, as many as before must come behind the samples (``h.view(layers, 2, B, -1)``).
    """
    p, lying = found.placement, [placement_of(s) for s in sizes]
    counts = [i for i, q in enumerate(lying) if q.kind is Kind.SIZE]
    others = [q for q in lying if q.kind is not Kind.SIZE]
    if len(counts) != 1 or any(q.kind not in placements.EQUAL for q in others):
        return None
    (at,), axes = counts, found.axes
    if not p.axis or p.ragged or p.segments != 1 or axes is None or lying[at].times < 0:
        return None
    kept = at == p.axis and _keeping(p.times, lying[at].times, axes - at - 1, len(sizes) - at - 1)
    parted = at > p.axis and len(sizes) - at == axes - p.axis and lying[at].times == p.times
    negative = any(s == const(-1) for s in sizes[:at])
    return p._replace(axis=at, times=lying[at].times) if (kept or parted) and not negative else None


def _keeping(times: int, asked: int, before: int, after: int) -> bool:
    """Whether a view that has a multiple of the number of samples where they are leaves the axes before
    them as they are: with ``before`` axes behind them, of which it makes ``after``. Where it merges
    them into that of the samples there are more in it, where it parts them from it fewer.
    """
    if before and after:
        return True
    same = times == asked and times > 0
    return not same if before or after else same


def _length(size: Value) -> int | None:
    """A size that is a number."""
    number = size[0].value if len(size) == 1 and isinstance(size[0], Const) else None
    return number if type(number) is int and number > 0 else None


def _before(found: Data) -> int | None:
    """How many elements the axes before that of the samples have together, where it is known."""
    lengths = found.lengths if len(found.lengths) == found.axes else ()
    if not lengths or None in lengths[: found.placement.axis]:
        return None
    return prod(n for n in lengths[: found.placement.axis] if n)


def _from_the_samples(p: Placement, sizes: list[Value]) -> Placement | None:
    """Where the rows lie in a view of these sizes, of which the first are those of axes before the
    rows, if any.
    """
    lying = [placement_of(s) for s in sizes]
    counts = [i for i, q in enumerate(lying) if q.kind is Kind.SIZE]
    first = next((i for i, s in enumerate(sizes) if s != const(1)), 0)
    if any(q.kind not in (*placements.EQUAL, Kind.SIZE) for q in lying):
        return _by_a_quotient(p, sizes, first)
    if not sizes or len(counts) > 1 or (counts and p.ragged):
        return None
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
        if p.axis == 0 and p.segments == 0 and at == first + 1:
            return p._replace(axis=at, segments=1, times=k)  # an axis before them, as there was
        return None
    if sizes[first] == const(-1):
        return p._replace(axis=first, times=0, segments=0 if p.axis else p.segments)
    if p.axis == 0 and p.segments > 1 and sizes[first : first + 2] == [const(p.segments), const(-1)]:
        return p._replace(axis=first + 1, times=0, segments=1)
    return None


def _by_a_quotient(p: Placement, sizes: list[Value], first: int) -> Placement | None:
    """Where the rows lie in a view whose first size alone differs, and is a number of chosen rows,
    that of the samples times how long they are padded, or a quotient: of the number of the parts that
    samples were parted into, or of a number of times that of samples.
    """
    lying = [placement_of(s) for s in sizes]
    if any(q.kind not in placements.EQUAL for q in (*lying[:first], *lying[first + 1 :])):
        return None
    if all(isinstance(a, Data) and a.filled for a in sizes[first]) and p.segments == 1 and not p.ragged:
        # so many places for each sample, however many: the elements of one stay together; axes before
        # that of the samples are merged with it, as by -1
        return p._replace(axis=first, times=0, segments=0 if p.axis else 1)
    if p.axis:
        return None
    # also of a quotient that is rounded: int(x.numel() / n)
    divided = any(o.word == arithmetic.PART_BY_WHOLE for d in data(sizes[first]) for o in origins(d.origin))
    if (lying[first] == placements.QUOTIENT or divided) and p.segments == 1 and not p.ragged:
        return p._replace(axis=first, times=0)
    parted = p.segments == 1 and p.times == 0
    return p._replace(axis=first) if lying[first] == placements.SUM and (p.ragged or parted) else None


def like_another(site: Site) -> Value:
    """``x.view_as(y)``, ``x.reshape_as(y)``."""
    found, other = rows_of(site.get(0) or ()), rows_of(site.get(1) or ())
    if found is None:
        return plain(site) if other is None else site.unknown(f"the rows of {site.word}")
    if other is None or other.placement.axis != found.placement.axis:
        return site.unknown(f"the rows of {site.word}")
    p = placements.join(found.placement, other.placement)
    return derivation.derived(
        site.word, p, [value(found)], site.node, axes=other.axes, keep_axes=False
    )


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
    if hit is None or sizes is None:
        return site.unknown("which axis is parted")
    p, more = found.placement, len(sizes) - 1
    axes = found.axes + more if found.axes is not None else None
    if hit:
        made = _from_the_samples(p._replace(axis=0), sizes)
        if made is None:
            return site.unknown("which axis is parted")
        p = made._replace(axis=made.axis + p.axis)
    elif (dim if dim >= 0 or axes is None else dim + axes - more) in range(p.axis):
        p = p._replace(axis=p.axis + more)
    return site.data(p, axes=axes, keep_axes=False)
