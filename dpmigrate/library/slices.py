"""Parts of tensors along an axis, and tensors put beside each other: ``select``, ``narrow``,
``broadcast_tensors``, transforms along the last axis.
"""

from __future__ import annotations

from dpmigrate.execution import arithmetic, broadcasting, derivation, placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Value, const, data, placement_of
from dpmigrate.library.axes import dims_of, on_axis, one_dim, rows_of
from dpmigrate.library.shapes import plain
from dpmigrate.library.sites import Site
from dpmigrate.library.sizes import beside


def select(site: Site) -> Value:
    """``x.select(dim, index)``: one place of an axis, which goes away."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    try:
        dim = one_dim(site, 1, 0)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    hit = on_axis(dim, found)
    if hit is None or (dim < 0 and found.axes is None and found.placement.axis):
        return site.unknown(f"the axis of {site.word}")
    axes = found.axes - 1 if found.axes is not None else None
    if hit:
        return site.data(placements.PER_RANK, axes=axes, keep_axes=False)
    if placement_of(site.flat(site.get(2, "index") or ())).kind not in placements.EQUAL:
        return site.data(placements.PER_RANK, axes=axes, keep_axes=False)
    place = dim if dim >= 0 else dim + (found.axes or 0)
    before = dim >= 0 or found.axes is not None
    p = found.placement
    moved = p._replace(axis=p.axis - int(before and place < p.axis))
    return site.data(moved, axes=axes, keep_axes=False)


def narrow(site: Site) -> Value:
    """``x.narrow(dim, start, length)``: a part of an axis."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    try:
        hit = on_axis(one_dim(site, 1, 0), found)
    except LookupError:
        hit = None
    if hit is None:
        return site.unknown(f"the axis of {site.word}")
    bounds = [placement_of(site.flat(v)).kind for v in site.all()[2:]]
    if hit or any(k not in placements.EQUAL for k in bounds):
        return site.data(placements.PER_RANK, axes=found.axes, keep_axes=False)
    return site.data(found.placement, axes=found.axes)


def broadcast(site: Site) -> Value:
    """``torch.broadcast_tensors(a, b)``: each with the axes of all."""
    parts = [site.flat(v) for v in site.arguments.positional]
    p = placements.elementwise(broadcasting.aligned(parts))
    axes = broadcasting.axes_of(parts)
    rows = [d for v in parts for d in data(v) if d.placement.kind is Kind.ROWS]
    each = []
    for v in parts:
        made = derivation.derived(site.word, p, [v], site.node, axes=axes, keep_axes=False)
        spread = p.kind is Kind.ROWS and placement_of(v).kind in placements.EQUAL
        each.append(beside(made, rows) if spread else made)
    return site.m.listed(each, site.node, site.frame)


def least_axes(site: Site) -> Value:
    """``atleast_2d``: axes of one element before the first."""
    given = site.operands()
    found = rows_of(given[0]) if given else None
    if len(given) != 1 or (found is not None and found.axes is None):
        return site.unknown(f"the axes of {site.word}")
    if found is None:
        return plain(site)
    least = int(site.word[-2])
    p, axes = found.placement, found.axes or 0
    # a tensor of 1 axis gets one before and one behind, of 2 axes one behind, for atleast_3d
    before = 1 if axes == 1 and least > 1 else 0
    return site.data(p._replace(axis=p.axis + before), axes=max(axes, least), keep_axes=False)


def spectrum(site: Site) -> Value:
    """``torch.stft(x, …)``: frequencies and times in the place of the last axis."""
    return _of_last(site, 1, 1 if site.arguments.keywords.get("return_complex") == const(True)
                    else None)  # fmt: skip


def signal(site: Site) -> Value:
    """``torch.istft(x, …)``: a signal in the place of frequencies and times."""
    return _of_last(site, 2, -1)


def _of_last(site: Site, count: int, change: int | None) -> Value:
    found = rows_of(site.get(0) or ())
    if found is None:
        return plain(site)
    if any(placement_of(v).kind not in placements.EQUAL for v in site.operands()[1:]):
        return site.unknown(f"the window of {site.word}")
    if found.axes is None and found.placement.axis:
        return site.unknown(f"the axes of {site.word}")
    if found.axes is not None and found.placement.axis >= found.axes - count:
        return site.data(placements.PER_RANK, keep_axes=False)
    axes = found.axes + change if found.axes is not None and change is not None else None
    return site.data(found.placement, axes=axes, keep_axes=False)


def grid_of(site: Site) -> Value:
    """``torch.meshgrid(a, b)``: a tensor of as many axes as there are vectors, for each of them; rows among
    them meet each other.
    """
    given = site.arguments.positional
    vectors = site.m.known_elements(given[0]) if len(given) == 1 else list(given)
    if vectors is None or site.arguments.star:
        moving = any(rows_of(v) for v in site.operands())
        return site.data(placements.PER_RANK, keep_axes=False) if moving else plain(site)
    parts = [site.flat(v) or v for v in vectors]
    kinds = [placement_of(v).kind for v in parts]
    p = placements.UNIFORM if all(k in placements.EQUAL for k in kinds) else placements.PER_RANK
    p = placements.UNKNOWN if Kind.UNKNOWN in kinds else p
    each = derivation.derived(site.word, p, parts, site.node, kind=site.kind_of(parts), axes=len(parts), keep_axes=False)
    return site.m.listed([each] * len(parts), site.node, site.frame)


def split_sizes(site: Site) -> Value:
    """``x.split_with_sizes(sizes, dim)``."""
    found = rows_of(site.get(0) or ())
    listed = site.m.known_elements(site.get(1, "split_sizes") or ())
    try:
        hit = on_axis(one_dim(site, 2, 0), found) if found is not None else False
    except LookupError:
        hit = None
    if hit is not False or listed is None:
        return site.unknown(f"which parts {site.word} gives")
    if found is None:
        return site.m.listed([plain(site)] * len(listed), site.node, site.frame)
    part = site.data(found.placement, axes=found.axes)
    return site.m.listed([part] * len(listed), site.node, site.frame)


def matrices_normed(site: Site) -> Value:
    """``torch.linalg.matrix_norm(x)``: a number for each matrix."""
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.data(
            placements.elementwise(placement_of(v) for v in site.operands()), keep_axes=False
        )
    try:
        dims = dims_of(site, 2)
    except LookupError:
        dims = [0]
    plainly = dims is None and "keepdim" not in site.arguments.keywords and not site.get(3)
    if found.axes is None or not plainly:
        return site.unknown(f"the axes of {site.word}")
    if found.placement.axis >= found.axes - 2:
        return site.data(placements.PER_RANK, keep_axes=False)
    return site.data(found.placement, axes=found.axes - 2, keep_axes=False)


def vectors(site: Site) -> Value:
    """``torch.linalg.vecdot(x, y)``: a sum along the last axis."""
    operands = [site.flat(v) for v in site.all()[:2]]
    both = arithmetic.elementwise(site.word, operands, site.node)
    found = rows_of(both)
    if found is None or site.get(2, "dim") is not None:
        p = placement_of(both)
        equal = p.kind in placements.EQUAL
        return site.data(p, keep_axes=False) if equal else site.unknown(f"the axis of {site.word}")
    if found.axes is not None and found.placement.axis == found.axes - 1:
        return site.data(placements.SUM, axes=found.axes - 1, keep_axes=False)
    axes = found.axes - 1 if found.axes is not None else None
    return derivation.derived(
        site.word, found.placement, operands, site.node, axes=axes, keep_axes=False
    )
