"""Operations that move, merge and part axes, and sizes.

They take for granted what a source text cannot show: an axis that is squeezed has one element.
Views by sizes stand in ``views``.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Const,
    Data,
    Value,
    const,
    data,
    known,
    placement_of,
    value,
)
from dpmigrate.library.axes import dims_of, on_axes, on_axis, one_dim, rows_of
from dpmigrate.library.sites import Effect, Site


def plain(site: Site, axes: int | None = None) -> Value:
    """The result of a change of shape where no axis runs over samples: it lies as before."""
    first = site.flat(site.get(0) or ())
    if not first:
        return value(Data(site.kind, placements.UNIFORM))
    p = placement_of(first)
    return derivation.derived(site.word, p, [first], site.node, axes=axes, keep_axes=False, even=True)


def axes_of(v: Value) -> int | None:
    """The number of axes of tensors, where it is known and one."""
    counts = {d.axes for d in data(v)}
    return counts.pop() if len(counts) == 1 else None


def _changed(site: Site, more: int) -> int | None:
    """The number of axes of the first operand, with some more."""
    axes = axes_of(site.get(0) or ())
    return axes + more if axes is not None and axes + more >= 0 else None


def sizes_of(site: Site) -> list[Value] | None:
    """The sizes that a view is given, one by one; None where they are not known."""
    given = site.arguments.positional[0 if site.receiver is not None else 1 :]
    if site.arguments.star:
        return None
    if not given and (named := site.get(1)):  # by whatever name the function has for them
        given = [named]
    if len(given) == 1:
        listed = site.m.known_elements(given[0])
        if listed is not None:
            return listed
        if rows_of(given[0]) is not None:
            return None
    return list(given) or None


def permute(site: Site) -> Value:
    """``permute`` and ``transpose``: the axis of the rows moves."""
    found = rows_of(site.get(0) or ())
    if found is None:
        first = site.flat(site.get(0) or ())
        kind = site.kind_of([first])
        return derivation.derived(site.word, placement_of(first), [first], site.node, kind=kind, even=True)
    p, axes = found.placement, found.axes
    numpy = site.name.startswith("numpy.") or found.kind == "array"
    try:
        if site.word in ("t", "T", "mT", "adjoint", "H", "mH") or (
            site.word == "transpose" and numpy and not site.arguments.positional
        ):
            if axes == 1:
                return value(found)
            # .T of a tensor, and not of an array, is for matrices: of others it is deprecated
            matrix = site.word in ("t", "H") or (site.word == "T" and found.kind == "tensor")
            if axes not in (2, None) or (axes is None and not matrix):
                return _last_two(site, found)
            return site.data(p._replace(axis=1 - p.axis), axes=2)
        if site.word in ("transpose", "swapaxes", "swapdims") and not (
            site.word == "transpose" and numpy
        ):
            return _swapped(site, found)
        order = [whole_number(v) for v in sizes_of(site) or [SETTING]]
        axes = len(order)
        order = [d + axes if d < 0 else d for d in order]
        return _ordered(site, found, order)
    except (LookupError, ValueError):
        return site.unknown(f"the axes of {site.word}")


def _ordered(site: Site, found: Data, order: list[int]) -> Value:
    """The axes in another order; they keep their lengths."""
    p = found.placement
    made = site.data(p._replace(axis=order.index(p.axis)), axes=len(order))
    return with_lengths(made, [found.lengths[d] for d in order] if found.lengths else [])


def with_lengths(v: Value, lengths: Iterable[int | None]) -> Value:
    """Data with axes whose lengths are known."""
    known = tuple(lengths)
    return tuple(a._replace(lengths=known) if isinstance(a, Data) else a for a in v)


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
    if found.axes is not None:
        order = list(range(found.axes))
        order[a], order[b] = order[b], order[a]
        return _ordered(site, found, order)
    hits = [on_axis(a, found), on_axis(b, found)]
    if None in hits:
        return site.unknown("which axes are swapped")
    to = b if hits[0] else a if hits[1] else found.placement.axis
    if to < 0:
        return site.unknown("which axes are swapped")
    return site.data(found.placement._replace(axis=to))


def whole_number(v: Value) -> int:
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
        made = plain(site, _changed(site, 1))
        first = known(site.get(1, "dim") or site.get(1, "axis") or NOTHING) == 0
        return with_lengths(made, [1]) if first else made
    try:
        dim = one_dim(site, 1, 0)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    axes = found.axes + 1 if found.axes is not None else None
    if dim < 0:
        # sequences that are padded have two axes at least: the new one comes behind the samples
        behind = dim == -1 or (dim == -2 and found.placement.padded and not found.placement.axis)
        if axes is None and not behind:
            return site.unknown(f"the axis of {site.word}")
        dim = dim + axes if axes is not None else found.placement.axis + 1
    axis = found.placement.axis + (1 if dim <= found.placement.axis else 0)
    made = site.data(found.placement._replace(axis=axis), axes=axes, keep_axes=False)
    return with_lengths(made, spread(found, dim, 1))


def spread(found: Data, dim: int, length: int | None) -> list[int | None]:
    """The lengths of the axes of data that get one more; that of the samples is never known."""
    before = list(found.lengths) if len(found.lengths) == found.axes else [None] * (found.axes or 0)
    return [*before[:dim], length, *before[dim:]]


def squeeze(site: Site) -> Value:
    """``squeeze(dim)``: an axis of one element less, where it is not known to have more; a batch is
    not taken to be one sample.
    """
    found = rows_of(site.get(0) or ())
    try:
        dims = dims_of(site, 1)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    if found is None:
        return plain(site, _changed(site, -len(dims)) if dims is not None else None)
    p = found.placement
    if dims is None:
        others = [n for i, n in enumerate(found.lengths) if i != p.axis]
        seen = len(found.lengths) == found.axes and None not in others
        if p.axis and not seen:
            return site.unknown("which axes have one element")
        site.event("squeeze", given=value(found), named=const(False))
        if seen:
            return _of_several(site, found)
        return site.data(p, axes=None, keep_axes=False, alone=True)
    hits = [on_axis(d, found) for d in dims]
    if True in hits or (None in hits and dims == [-1] and found.bare):
        site.event("squeeze", given=value(found), named=const(True))  # a batch of one sample loses its axis
        if None in hits:
            return site.data(p, axes=None, keep_axes=False, alone=True)
    elif None in hits:
        return site.unknown(f"the axis of {site.word}")
    seen = len(found.lengths) == found.axes
    longer = [seen and found.lengths[d] not in (None, 1) for d in dims]  # they stay as they are
    gone = [d for d, hit, stays in zip(dims, hits, longer, strict=True) if not hit and not stays]
    before = [d for d in gone if 0 <= (d if d >= 0 else d + (found.axes or 0)) < p.axis]
    before = [d for d in before if d >= 0 or found.axes is not None]
    axes = found.axes - len(gone) if found.axes is not None else None
    made = site.data(p._replace(axis=p.axis - len(before)), axes=axes, keep_axes=False)
    taken = {d % found.axes for d in gone} if seen and found.axes else set()
    return with_lengths(made, [n for i, n in enumerate(found.lengths) if i not in taken] if seen else [])


def _of_several(site: Site, found: Data) -> Value:
    """The axes that have more than one element, of data whose lengths beside the samples' are known."""
    own = found.placement.axis
    left = [i for i, n in enumerate(found.lengths) if i == own or n != 1]
    lying = found.placement._replace(axis=left.index(own))
    made = site.data(lying, axes=len(left), keep_axes=False)
    return with_lengths(made, [found.lengths[i] for i in left])


def flatten(site: Site) -> Value:
    """``flatten(start_dim, end_dim)``: axes made one."""
    found = rows_of(site.get(0) or ())
    try:
        start = _bound(site, 1, "start_dim", 0)
        end = _bound(site, 2, "end_dim", -1)
    except LookupError:
        return site.unknown("which axes are flattened")
    if found is None:
        return plain(site, 1 if (start, end) == (0, -1) else None)
    p, axes = found.placement, found.axes
    if axes is not None:
        start, end = start % axes, end % axes
    if axes is None and start < 0 and end == -1 and on_axes(list(range(start, 0)), found) == [False] * -start:
        return site.data(p, axes=None, keep_axes=False)
    if start < 0 or (end < -1 and p.axis > start):
        return site.unknown("which axes are flattened")
    last = end if end >= 0 else 10**6  # counted from the end of an unknown number: not before start
    left = axes - (end - start) if axes is not None else start - end if end < 0 else None
    if p.axis < start:
        return site.data(p, axes=left, keep_axes=False)
    if p.axis > last:
        return site.data(p._replace(axis=p.axis - last + start), axes=left, keep_axes=False)
    times = p.times * prod(n or 0 for n in found.lengths[p.axis + 1 : last + 1]) if p.axis == last or len(found.lengths) == axes else 0
    segments = p.segments if p.axis == start else 0
    made = p._replace(axis=start, times=times, segments=segments)
    return site.data(made, axes=left, keep_axes=False)


def _bound(site: Site, at: int, name: str, default: int) -> int:
    given = site.get(at, name)
    if given is None or (
        len(given) == 1 and isinstance(given[0], Const) and given[0].type == "str"
    ):
        return default  # numpy's flatten("C")
    return whole_number(given)


def kept(effect: Effect) -> Effect:
    """A change of shape that keeps masks masks, and places places."""

    def shaped(site: Site) -> Value | None:
        made = effect(site)
        kinds = {a.kind for a in site.get(0) or () if isinstance(a, Data)}
        if made and kinds and kinds <= {"mask", "places", "order"}:
            kind = "places" if "mask" not in kinds else "mask"
            if kinds == {"order"} and _behind(site):
                kind = "order"
            made = tuple(a._replace(kind=kind) if isinstance(a, Data) else a for a in made)
        return made

    return shaped


def _behind(site: Site) -> bool:
    """Whether axes of one element are put behind the only one: ``order.unsqueeze(1)``,
    ``order.view(-1, 1)``.
    """
    if site.word == "unsqueeze":
        return site.constant(1, "dim") in (1, -1, 2)
    sizes = sizes_of(site) if site.word in ("view", "reshape") else None
    return bool(sizes) and all(s == (Const("int", 1),) for s in (sizes or [])[1:])


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
