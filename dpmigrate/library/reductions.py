"""Reductions over axes, and functions along one axis."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, derivation, masking, placements, sample_orders
from dpmigrate.execution.joins import join
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import NOTHING, Data, Value, const, data, items, placement_of, value
from dpmigrate.library.axes import dims_of, least_dim, on_axes, on_axis, one_dim, rows_of
from dpmigrate.library.effects import cut
from dpmigrate.library.shapes import with_lengths
from dpmigrate.library.sites import PADDING, Effect, Site

#: reductions that give values and their places when they are given an axis
_PAIRS = ("max", "min", "median", "nanmedian", "mode", "kthvalue")


def reduce(how: str, at: int = 1, keep: int = 2, default: int | None = None) -> Effect:
    """A reduction over axes, over all of them where none is named.

    ``how`` is what the parts of the ranks are reduced by, "" for a statistic that has no parts
    (std). ``at`` and ``keep`` are the places of the arguments ``dim`` and ``keepdim``;
    ``default`` is the axis where none is given, None for all axes.
    """

    def effect(site: Site) -> Value:
        first = site.flat(site.get(0) or ())
        second = site.get(at) if at == 1 else None
        if second and any(d.kind != "number" for d in data(second)):
            return site.each()  # torch.max(x, y)
        try:
            dims = dims_of(site, at)
        except LookupError:
            return _behind(site, first, at, keep) or site.unknown(f"the axes of {site.word}")
        if dims is None and default is not None:
            dims = [default]
        found = rows_of(first)
        if found is None:
            return _pair(site, dims, _not_rows(site, first, how, _left(site, first, dims, keep)))
        if dims is None:
            return site.data(_over(found.placement, how), axes=0)
        hits = on_axes(dims, found)
        kept = _keeps(site, keep)
        if None in hits or kept is None:
            return site.unknown(f"which axis of {site.word} runs over the samples")
        left = found.axes
        if left is not None and not kept:
            left -= len(dims)
        if any(hits):
            over = _over(found.placement, how)
            made = site.data(over, axes=left, keep_axes=False)
            if _paired(site, dims):
                places = site.data(placements.PER_RANK, axes=left, keep_axes=False)
                return items([made, cut(places)])
            return made
        placement = found.placement
        if placement.padded and any(_beside(d, found) for d in dims):
            if how != "sum":  # to a sum what is filled up adds nothing that a mask does not take away
                site.event(PADDING, given=value(found))
            placement = placement._replace(padded=False)
        if not kept:
            before = [d for d in dims if _place(d, found) < placement.axis]
            placement = placement._replace(axis=placement.axis - len(before))
        made = site.data(placement, axes=left, keep_axes=False)
        if left is None and not kept:  # the samples' axis may be the only one that is left
            made = tuple(a._replace(bare=True) if isinstance(a, Data) else a for a in made)
        return _pair(site, dims, made)

    return effect


def binned(otherwise: Effect) -> Effect:
    """``bincount`` of the samples' labels: counts of which those of the ranks add up, where ``minlength`` makes
    them equally long.
    """

    def effect(site: Site) -> Value | None:
        found = rows_of(site.flat(site.get(0) or ()))
        least = site.get(2, "minlength")
        if found is None or not least or least == const(0):
            return otherwise(site)
        return site.data(_over(found.placement, "sum"), axes=1, keep_axes=False)

    return effect


def _behind(site: Site, first: Value, at: int, keep: int) -> Value | None:
    """A reduction over ``range(a, x.ndim)``: over axes behind that of the samples."""
    found, least = rows_of(first), least_dim(site, at)
    kept = _keeps(site, keep)
    if found is None or least is None or kept is None or found.placement.axis >= least:
        return None
    return site.data(found.placement, axes=found.axes if kept else None, keep_axes=False)


def _place(dim: int, found: Data) -> int:
    """An axis counted from the front; one of unknown place lies behind the samples."""
    if dim >= 0:
        return dim
    return dim + found.axes if found.axes is not None else found.placement.axis + 1


def _beside(dim: int, found: Data) -> bool:
    """Whether an axis is one of the first two: those of the samples and of what is padded, and not
    that of the features.
    """
    if dim < 0:
        return found.axes is not None and dim + found.axes < 2
    return dim < 2


def _keeps(site: Site, at: int) -> bool | None:
    """``keepdim``; None where it is not known."""
    given = site.arguments.keywords.get("keepdims") or site.get(at, "keepdim")
    if given is None:
        return False
    return given == const(True) if given in (const(True), const(False)) else None


def _paired(site: Site, dims: list[int] | None) -> bool:
    first = site.get(0) or ()
    arrays = any(d.kind == "array" for d in data(first)) or site.name.startswith("numpy.")
    return dims is not None and site.word in _PAIRS and not arrays


def _pair(site: Site, dims: list[int] | None, v: Value) -> Value:
    """``x.max(dim)`` gives values and their places; of a part of something that nobody saw, which may
    be an array, perhaps.
    """
    if not _paired(site, dims):
        return v
    kinds = {d.kind for d in data(site.get(0) or ())}
    pair = items([v, cut(v)])
    return join(v, pair) if kinds == {"number"} else pair


def _over(p: Placement, how: str) -> Placement:
    """A reduction over the samples."""
    match how:
        case "mean":
            return placements.mean_over(p)
        case "sum":
            return placements.SUM
        case "max":
            return placements.MAX
        case "min":
            return placements.MIN
        case _:
            return placements.PER_RANK


def _left(site: Site, first: Value, dims: list[int] | None, keep: int) -> int | None:
    """How many axes a reduction leaves."""
    counts = {d.axes for d in data(first)}
    axes = counts.pop() if len(counts) == 1 else None
    kept = _keeps(site, keep)
    if axes is None or kept is None or (kept and dims is None):
        return axes if kept else None
    return axes if kept else max(axes - len(dims), 0) if dims is not None else 0


def _not_rows(site: Site, first: Value, how: str, axes: int | None = None) -> Value:
    """A reduction of what has no rows: sums and means of parts are parts, and so on."""
    p = placement_of(first)
    if p.kind is Kind.PARTIAL:
        linear = how in ("sum", "mean") and p.how in ("sum", "mean")
        p = p if linear or how == p.how else placements.PER_RANK
    elif p.kind is Kind.SIZE:
        p = placements.SUM if how in ("sum", "mean") else placements.PER_RANK
    elif p.kind is Kind.RATIO and how not in ("sum", "mean"):
        p = placements.PER_RANK
    elif p.kind is Kind.ZERO and not how:
        p = placements.UNIFORM
    kind = site.kind_of([first])
    return derivation.derived(
        site.word, p, [first], site.node, kind=kind, axes=axes, keep_axes=False
    )


def several(*effects: Effect) -> Effect:
    """A tuple of reductions: ``aminmax``, ``var_mean``."""

    def effect(site: Site) -> Value:
        return items([e(site) or () for e in effects])

    return effect


def norm(site: Site) -> Value | None:
    """``x.norm(p, dim)``: a number of all elements, or one for each row."""
    return reduce("", at=2, keep=3)(site)


def quantile(site: Site) -> Value | None:
    """``x.quantile(q, dim)``, ``numpy.percentile(x, q, axis)``."""
    return reduce("", at=2, keep=3)(site)


#: what makes weights along an axis
_SOFTMAX = ("softmax", "softmin", "sparsemax")


def along(at: int = 1, default: int | None = -1) -> Effect:
    """A function along one axis (softmax, sort, cumsum): coupled where that axis runs over the
    samples.

    ``default`` is the axis where none is given, None for all of them.
    """

    def effect(site: Site) -> Value:
        first = site.flat(site.get(0) or ())
        found = rows_of(first)
        ordered = _ordered(site, first)
        if ordered:
            return ordered
        if found is None:
            p = placement_of(first)
            made = _unlike_parts(site, first) if p.kind is Kind.PARTIAL else site.each()
            return _with_places(site, made)
        try:
            dims = dims_of(site, at)
        except LookupError:
            if found.turn:  # whichever axis it is, they are the rows of the turn's batch
                return _with_places(site, site.data(found.placement, axes=found.axes, keep_axes=False))
            return site.unknown(f"the axis of {site.word}")
        if dims is None and default is None:
            return site.data(placements.PER_RANK, keep_axes=False)
        dims = dims if dims is not None else [default if default is not None else 0]
        hits = on_axes(dims, found)
        if None in hits:
            return site.unknown(f"which axis of {site.word} runs over the samples")
        placement = placements.PER_RANK if any(hits) else found.placement
        made = site.data(placement, axes=found.axes, keep_axes=False)
        if any(hits) and site.word in ("sort", "argsort"):  # samples, or their places, in an order of their own
            made = tuple(a._replace(order=_own_way(site, list(data(first)))) if isinstance(a, Data) and a.order else a for a in made)
        return _with_places(site, masking.weighed(made) if site.word.lower() in _SOFTMAX else made)

    return effect


def reordered(at: int = 1, default: int | None = None) -> Effect:
    """``x.flip(0)``, ``x.roll(1, 0)``: elements in another order. Where the inputs or targets of a training batch are put in it, as to mix each
    sample with another one, they are each rank's own rows still.
    """
    moved = along(at, default)

    def effect(site: Site) -> Value | None:
        found = rows_of(site.flat(site.get(0) or ()))
        if found is None or found.placement.segments != 1 or not found.sources or found.gradient != "none" or not site.grad():
            return moved(site)  # what a model gives for one sample is compared with that of another one
        try:
            dims = dims_of(site, at)
        except LookupError:
            return moved(site)
        if dims is None and default is not None:
            dims = [default]
        if dims is None or None in (hits := on_axes(dims, found)) or not any(hits):
            return moved(site)
        site.event("partners")
        return site.data(found.placement, axes=found.axes, keep_axes=False)

    return effect


def turned(site: Site) -> Value:
    """``x.rot90(k, dims)``: a plane of two axes is turned, of which that of the samples may be none."""
    first = site.flat(site.get(0) or ())
    found = rows_of(first)
    if found is None:
        return with_lengths(site.each(), [])
    try:
        dims = dims_of(site, 2)
    except LookupError:
        return site.unknown("which axes are turned")
    hits = on_axes(dims if dims is not None else [0, 1], found)
    if None in hits:
        return site.unknown("which axes are turned")
    p = placements.elementwise([found.placement, placement_of(site.get(1, "k") or NOTHING)])
    return site.data(placements.PER_RANK if any(hits) else p, axes=found.axes, keep_axes=False)


def renormed(site: Site) -> Value:
    """``x.renorm(p, dim, maxnorm)``: each part along an axis by itself; that of the samples, or the
    samples meet.
    """
    found = rows_of(site.flat(site.get(0) or ()))
    if found is None:
        return site.each()
    try:
        own = on_axis(one_dim(site, 2, 0), found)
    except LookupError:
        own = None
    if own is None:
        return site.unknown(f"the axis of {site.word}")
    placement = found.placement if own else placements.PER_RANK
    return site.data(placement, axes=found.axes, keep_axes=False)


def _ordered(site: Site, first: Value) -> Value | None:
    """What sorts the samples of a batch by a number that each of them has, as its length: the
    numbers, in that order, and the places by which all else is put into it.
    """
    if site.word not in ("sort", "argsort"):
        return None
    found = list(data(first))
    places = bool(found) and all(d.kind == "order" for d in found)
    rows = places or (
        bool(found)
        and all(
            d.placement == placements.rows() and d.axes == 1 and d.gradient == "none"
            and _of_loader(site, d) for d in found
        )
    )  # fmt: skip
    if not rows:
        return None
    way = sample_orders.back(found[0].order) if places else _own_way(site, found)
    order = sample_orders.given(site.data(placements.PER_RANK, kind="order", axes=1, gradient="none"), way)
    if site.word == "argsort":
        return order
    return items([order if places else sample_orders.given(first, way), order])


def _own_way(site: Site, by: list[Data]) -> frozenset[object]:
    """The order of what is sorted here: of other data, in another call or another direction, it is another one."""
    asked = (*site.all()[1:], *sorted(site.arguments.keywords.items(), key=lambda k: k[0]))
    return frozenset({(site.node, site.frame.context, asked, *(d.held for d in by))})


def _of_loader(site: Site, d: Data) -> bool:
    """Whether data are as a loader gives them, and nothing has been computed of them."""
    return d.origin is not None and d.origin.word == "batch"


def _unlike_parts(site: Site, first: Value) -> Value:
    return derivation.derived(site.word, placements.PER_RANK, [first], site.node)


def _with_places(site: Site, made: Value) -> Value:
    """``sort``, ``topk`` and the like give values and their places; numpy gives the values."""
    if site.word not in ("sort", "topk", "cummax", "cummin") or site.name.startswith("numpy."):
        return made
    if site.receiver is not None and isinstance(site.receiver, Data):
        if site.receiver.kind == "array":
            return made
    return items([made, cut(made)])


def compared_rows(pairwise: bool) -> Effect:
    """``cosine_similarity(x, y, dim)``, ``pairwise_distance(x, y)``: a number for each pair of
    rows.
    """

    def effect(site: Site) -> Value:
        operands = [site.flat(site.get(i) or ()) for i in range(2)]
        both = arithmetic.elementwise(site.word, operands, site.node)
        found = rows_of(both)
        if found is None:
            p = placement_of(both)
            return derivation.derived(site.word, p, operands, site.node, keep_axes=False)
        try:
            dim = -1 if pairwise else one_dim(site, 2, 1)
        except LookupError:
            return site.unknown(f"the axis of {site.word}")
        hit = on_axis(dim, found)
        if hit is None:
            return site.unknown(f"the axis of {site.word}")
        if hit:
            return site.data(placements.PER_RANK, keep_axes=False)
        kept = _keeps(site, 4) if pairwise else False
        if kept is None:
            return site.unknown(f"whether {site.word} keeps its axis")
        before = 0 <= dim < found.placement.axis and not kept
        axis = found.placement.axis - int(before)
        axes = found.axes - (not kept) if found.axes is not None else None
        made = found.placement._replace(axis=axis)
        lengths = (None, 1) if kept and axes == 2 else ()
        return derivation.derived(site.word, made, operands, site.node, axes=axes, keep_axes=False, lengths=lengths)

    return effect
