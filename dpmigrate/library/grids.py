"""Layers and functions on grids: samples first, then channels, then the axes of a grid
(https://docs.pytorch.org/docs/stable/nn.html).

What is given samples is a batch: ``Conv2d`` is called with 4 axes where nothing else is known of
its input. An input with one axis less is one sample without a batch to torch, which takes the
samples for channels then. A function that goes over each channel by itself gives the same rows.
"""

from __future__ import annotations

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NONE, Data, Value, const, items, placement_of
from dpmigrate.library.axes import rows_of
from dpmigrate.library.effects import cut
from dpmigrate.library.shapes import with_lengths
from dpmigrate.library.sites import Effect, Site


def grid(count: int | None = None, *, mixes: bool = False, change: int = 0) -> Effect:
    """A function over ``count`` axes of a grid, None for any number of them.

    ``mixes``: over the channels as well, as convolutions and normalisations do; ``change`` is how
    many axes the result has more. Operands beside the first are rows by rows with it, or the same
    on all ranks.
    """

    def effect(site: Site) -> Value:
        operands = site.operands()
        first = operands[0] if operands else ()
        found = rows_of(first)
        if found is None:
            if any(rows_of(v) for v in operands[1:]):
                return site.unknown(f"how the operands of {site.word} lie beside each other")
            p = placements.elementwise(placement_of(v) for v in operands)
            axes = _plain_axes(first, change)
            kind = "" if operands else site.kind
            return derivation.derived(
                site.word, p, operands, site.node, kind=kind, axes=axes, keep_axes=False
            )
        axes = found.axes
        if axes is None and count is not None and mixes:
            axes = count + 2
        axis = found.placement.axis
        if _meets(axis, axes, count, mixes):
            if mixes and count is not None and axes is not None and axes > count + 2 and axis == 0:
                return site.unknown(f"{site.word} takes {count + 2} axes and is given {axes}: PyTorch since 1.12 stops there")
            return site.unknown(f"whether samples meet in {site.word}")
        lying = [placement_of(v) for v in operands]
        # output_size=y.size() says how many samples there are, which the first operand says as well
        p = placements.elementwise(q for q in lying if q.kind is not Kind.SIZE)
        left = axes + change if axes is not None else None
        return site.data(p, axes=left, keep_axes=False)

    return effect


def _plain_axes(first: Value, change: int) -> int | None:
    counts = {a.axes for a in first if isinstance(a, Data)}
    (axes,) = counts if len(counts) == 1 else (None,)
    return axes + change if axes is not None else None


def _meets(axis: int, axes: int | None, count: int | None, mixes: bool) -> bool:
    """Whether the axis of the samples is one that the function goes over."""
    if count is None or axes is None:
        return axis > (0 if mixes else 1)
    if mixes:
        return axis != 0 or axes != count + 2
    return axis >= axes - count


def pooled(count: int) -> Effect:
    """``F.max_pool2d(x, …, return_indices=True)``: the places as well, where asked for."""
    inner = grid(count)

    def effect(site: Site) -> Value | None:
        made = inner(site) or ()
        asked = site.get(-1, "return_indices")
        if site.word.endswith("_with_indices") or asked == const(True):
            return items([made, cut(made)])
        if asked not in (None, const(False)):
            return site.unknown("whether places are returned")
        return made

    return effect


def _own_weights(site: Site, count: int) -> Value | None:
    """Samples put beside each other as channels, each with weights of its own: as many groups, or a
    multiple of it, leave them apart.
    """
    x, weight, bias = (site.get(i, n) or NONE for i, n in enumerate(("input", "weight", "bias")))
    found = [r for v in (x, weight, bias) if v != NONE and (r := rows_of(v))]
    groups = placement_of(site.get(6, "groups") or const(1))
    if groups.kind is not Kind.SIZE or len(found) != 3 - (bias == NONE):
        return None
    lying = [r.placement for r in found]
    if [p.axis for p in lying] != [1, 0, 0][: len(found)] or found[0].axes not in (None, count + 2):
        return None
    if any(p.ragged or p.segments != 1 for p in lying):
        return None
    p = placements.rows(1, times=0, padded=any(p.padded for p in lying))
    made = site.data(p, axes=count + 2, keep_axes=False)
    # one image remains one
    return with_lengths(made, [*found[0].lengths[:1], *[None] * (count + 1)]) if found[0].lengths else made


def weighted(count: int) -> Effect:
    """``F.conv2d(x, weight, bias)``: weights that are the same on all ranks, or a sample's own."""
    inner = grid(count, mixes=True)

    def effect(site: Site) -> Value | None:
        if own := _own_weights(site, count):
            return own
        rest = [placement_of(site.flat(v)) for v in site.all()[1:]]
        if rows_of(site.get(0) or ()) is None or all(p.kind in placements.EQUAL for p in rest):
            return inner(site)
        lost = any(p.kind is Kind.UNKNOWN for p in rest)
        return site.data(placements.UNKNOWN if lost else placements.PER_RANK, keep_axes=False)

    return effect


def by_channel(site: Site) -> Value | None:
    """``F.batch_norm``, ``F.instance_norm``: where the samples are put beside each other as channels
    (``x.view(1, b * c, h, w)``, as adaptive instance normalisation does), each is normalised by itself,
    with weights and statistics of its own.
    """
    found = rows_of(site.get(0, "input") or ())
    if found is None or found.placement.axis != 1:
        return grid(mixes=True)(site)
    names = ("running_mean", "running_var", "weight", "bias")
    given = [v for i, n in enumerate(names, 1) if (v := site.get(i, n) or NONE) != NONE]
    lying = [found.placement, *(r.placement for v in given if (r := rows_of(v)))]
    alone = all(p.kind is Kind.ROWS and not p.ragged and p.segments == 1 for p in lying)
    if len(lying) <= len(given) or any(p.axis for p in lying[1:]) or not alone:
        return site.unknown(f"whether samples meet in {site.word}")
    p = found.placement._replace(padded=any(p.padded for p in lying))
    return with_lengths(site.data(p, axes=found.axes, keep_axes=False), found.lengths)


def normalised(site: Site) -> Value | None:
    """``F.layer_norm(x, shape)``: over as many of the last axes as the shape has."""
    found = rows_of(site.get(0) or ())
    listed = site.m.known_elements(site.get(1, "normalized_shape") or ())
    if found is not None:
        axes, count = found.axes, len(listed) if listed is not None else None
        if axes is None or count is None:
            sure = found.placement.axis == 0
        else:
            sure = found.placement.axis < axes - count
        if not sure:
            return site.unknown(f"whether samples meet in {site.word}")
    return beside_first(site)


def beside_first(site: Site) -> Value:
    """A function of the first operand by element; the others have its axes or fewer."""
    operands = site.operands()
    first = operands[0] if operands else ()
    axes = _plain_axes(first, 0)
    if rows_of(first) is None and any(rows_of(v) for v in operands[1:]):
        return site.unknown(f"how the operands of {site.word} lie beside each other")
    p = placements.elementwise(placement_of(v) for v in operands)
    kind = "" if operands else site.kind
    return derivation.derived(
        site.word, p, operands, site.node, kind=kind, axes=axes, keep_axes=False
    )


def sampled(site: Site) -> Value:
    """``F.affine_grid(theta, size)``: a place for each pixel of each sample."""
    listed = site.m.known_elements(site.get(1, "size") or ())
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.each()
    axes = len(listed) if listed is not None else None
    return site.data(found.placement, axes=axes, keep_axes=False)


def prelu(site: Site) -> Value:
    """``F.prelu(x, weight)``: a weight, or one for each channel."""
    weight = site.flat(site.get(1, "weight") or NONE)
    if weight and placement_of(weight).kind not in placements.EQUAL:
        return site.unknown("the weight of prelu")
    found = rows_of(site.get(0) or ())
    return beside_first(site) if found is None else site.data(found.placement, axes=found.axes)
