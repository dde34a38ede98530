"""``x[i]``: what an index takes of a tensor."""

from __future__ import annotations

from dpmigrate.execution import derivation, placements, sample_orders, samples
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import LENGTH, Object
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    ONE_SAMPLE,
    PLACE,
    RESULTS,
    SETTING,
    Const,
    Data,
    Origin,
    Setting,
    Value,
    cast_kind,
    const,
    data,
    items,
    known,
    origins,
    placement_of,
    value,
)
from dpmigrate.library.axes import rows_of
from dpmigrate.library.cutting import note_bounds
from dpmigrate.library.factories import DRAWN_ORDER
from dpmigrate.library.index_parts import (
    Walk,
    at_one,
    followed,
    from_the_end,
    is_moving,
    kind_of_part,
    one_of_each,
    parts_of,
    ragged_rows,
    stand_beside,
)
from dpmigrate.library.natures import DRAW
from dpmigrate.library.results import part_of_results
from dpmigrate.library.shapes import axes_of
from dpmigrate.library.sites import PADDING, PART, SINGLE, Site
from dpmigrate.library.sizes import size_of
from dpmigrate.library.table_parts import bounds, indexed, looked_up


def index(site: Site) -> Value | None:
    """``x[i]``: the rows stay where their axis is taken whole; chosen rows are ragged.

    The rules are numpy's (https://numpy.org/doc/stable/user/basics.indexing.html): places on
    several axes are put beside each other, and their axes stand where the first of them did.
    """
    owner, key = site.flat(site.get(0) or NOTHING), site.get(1) or NOTHING
    if owner and all(isinstance(a, Data) and a.kind == "packed" for a in owner):
        # a named tuple: the places of all samples, the numbers of places of each turn, two orders
        return cast_kind(owner, "packed", "tensor") if known(key) == 0 else site.unknown("a field of packed sequences")
    found = rows_of(owner)
    if found is not None and found.kind == "shape":
        return _shape_item(site, found, key)
    parts = [_numbers(site, v) for v in parts_of(key)]
    if found is None and (order := _order_with_axes(site, owner, parts)):
        return order
    if found is None:
        if parts and any(d.origin is not None and d.origin.word == PART for d in data(owner)):
            _note_place(site, owner, kind_of_part(site, parts[0]), parts[0])  # of `x[:8]`
        return looked_up(site, owner, parts)
    word = known(key)
    if isinstance(word, str):  # no tensor, but a dictionary that nobody saw: its fields
        if found.kind == RESULTS:
            return part_of_results(site, found, word)
        return indexed(site, owner, found.placement, None)
    walk = followed(site, parts, found)
    if walk.to is None:
        return site.unknown("an index by places on several axes")
    whole = walk.own is None or walk.own.kind == "whole"
    if whole and any(is_moving(site, v) for v in walk.others):
        note_bounds(site, join(*[bounds(site, v) for v in walk.others]))
        return indexed(site, owner, placements.PER_RANK, None, *walk.others)
    if whole:
        padded = found.placement.padded and not any(at_one(site, v) for v in parts)
        if padded and any(from_the_end(site, v) for v in parts[:2]):
            site.event(PADDING, given=value(found))
        p = found.placement._replace(axis=walk.to, padded=padded)
        chosen = frozenset[int]().union(*(d.marks for v in parts for d in data(site.flat(v))))
        made = indexed(site, owner, p, walk.axes)
        return tuple(a._replace(marks=a.marks | chosen) if isinstance(a, Data) else a for a in made) if chosen else made
    return rows_chosen(site, owner, found, walk)


def _numbers(site: Site, part: Value) -> Value:
    """``range(len(x))`` in an index: the places of all samples, one after the other."""
    made = site.m.object(part[0]) if len(part) == 1 else None
    if made is None or made.kind != "iterator":
        return part
    if site.m.heap.read((made.number, "*")) != value(Setting(PLACE)):
        return part
    count = site.m.heap.read((made.number, LENGTH)) or NOTHING
    return derivation.derived(
        "range", placements.PER_RANK, [count], site.node, kind="order", axes=1, gradient="none"
    )


def _order_with_axes(site: Site, owner: Value, parts: list[Value]) -> Value:
    """``arange(len(x))[:, None]``: the order of all samples still, with axes of one element behind."""
    first, *rest = [kind_of_part(site, v) for v in parts]
    if {d.kind for d in data(owner)} != {"order"} or first != "whole" or {*rest} != {"none"}:
        return NOTHING
    return tuple(
        a._replace(axes=a.axes + len(rest)) if isinstance(a, Data) and a.axes is not None else a
        for a in owner
    )


def _note_place(site: Site, owner: Value, kind: str, place: Value) -> None:
    """One sample is taken by a number that all ranks share: some may have fewer samples."""
    numbers = all(isinstance(a, Setting) or (isinstance(a, Const) and type(a.value) is int) for a in place)
    first = all(isinstance(a, Const) and a.value in (0, -1) for a in place)
    if kind == "one" and numbers and not first:
        site.event("one of the samples", given=owner, place=place)


def rows_chosen(site: Site, owner: Value, found: Data, walk: Walk) -> Value:
    """The axis of the samples is indexed itself."""
    assert walk.own is not None
    kind, own, to = walk.own.kind, walk.own.value, walk.to or 0
    p = found.placement._replace(axis=to)
    others = [placement_of(site.flat(v)) for v in walk.others]
    if kind == "one" and found.alike and all(q.kind in placements.EQUAL for q in others):
        return value(Data(found.kind, placements.UNIFORM, axes=walk.axes))  # whichever sample it is taken of
    if kind == "order":
        p = p._replace(padded=p.padded and not walk.others)  # x[order, last]: one place of each sample
        if any(o.word in (DRAWN_ORDER, DRAW) for d in data(own) for o in origins(d.origin)):
            site.event("partners")
        wide = axes_of(own) or 1
        fit = all(
            q.kind in placements.EQUAL
            or (q.kind is Kind.ROWS and q.axis == 0 and (wide == 1 or axes_of(site.flat(v)) == wide))
            for q, v in zip(others, walk.others, strict=True)
        )
        made = indexed(site, owner, p if fit else placements.PER_RANK, walk.axes if fit else None, *walk.others)
        order = _of_places(site, own)
        return made if order is None else sample_orders.put_in(made, order)
    kinds = {d.kind for d in data(site.flat(own))}
    lying = placement_of(site.flat(own))
    together = stand_beside(site, walk.own, walk.others)
    if kind == "many" and one_of_each(site, found, walk.own, walk.others):
        return indexed(site, owner, p, walk.axes, *walk.others)
    if kind == "many" and kinds and (together or all(q.kind in placements.EQUAL for q in others)):
        ragged = ragged_rows(p)
        if kinds == {"places"}:
            return indexed(site, owner, ragged, walk.axes, own, *walk.others)
        if kinds == {"mask"} and lying.kind is Kind.ROWS:
            if lying.axis + walk.own.first != found.placement.axis or walk.own.first != (
                found.placement.axis
            ):
                return site.unknown("a mask over axes before that of the samples")
            whole = next((d.axes for d in data(site.flat(own))), None) is not None
            return indexed(site, owner, ragged, walk.axes if whole else None, own)
    if kind == "slice":
        views = _views(site, found.placement, own)
        if views:
            return indexed(site, owner, p._replace(segments=views), walk.axes)
        if _first_of_each(site, found.placement, own):
            return indexed(site, owner, p, walk.axes)
    if kind == "many" and lying.kind is Kind.ROWS:
        return site.unknown("whether samples are chosen by a mask or by their places")
    if lying.kind is Kind.UNKNOWN:
        return site.unknown("what a batch is indexed by")
    if samples.is_place(own) and (p.times, p.segments, p.ragged) == (1, 1, False):
        return _of_one_sample(site, owner, walk, own)
    _note_place(site, value(found), kind, own)
    word = SINGLE if kind == "one" else PART
    part = derivation.derived(word, placements.PER_RANK, [owner], site.node, keep_axes=False)
    order = _of_places(site, own)
    if kind != "many" or order is None:
        return part
    return tuple(a._replace(order=order) if isinstance(a, Data) and a.order else a for a in part)  # put into that one


def _of_places(site: Site, places: Value) -> frozenset[object] | None:
    """The order in which samples are that are taken at places which have one of their own, as those that ``sort()`` gives."""
    return next((d.order for d in data(site.flat(places)) if d.order and d.order != sample_orders.IN_ORDER), None)


def _of_one_sample(site: Site, owner: Value, walk: Walk, place: Value) -> Value:
    """``x[i]``, ``x[i, j]`` in a turn for each sample: what the turn's own sample has."""
    beside = join(*[site.flat(v) for v in walk.others]) if walk.others else NOTHING
    own = all(
        isinstance(a, Data) and (a.placement.kind is Kind.TERM or not a.turn) and
        (a.turn or a.placement.kind in placements.EQUAL) for a in beside
    )  # fmt: skip
    made = derivation.derived(
        ONE_SAMPLE, placements.PER_RANK, [owner], site.node, axes=walk.axes, keep_axes=False
    )
    return sample_orders.at_place(site.m, made, place, site.node) if own else made


def _first_of_each(site: Site, p: Placement, part: Value) -> bool:
    """``x[:n]`` by a number of samples that every rank has, as the size of another batch: the
    ranks' first rows are the first ones of the global batch, of which each rank has every W-th.
    """
    made = next(iter(site.m.objects(part)), None)
    if made is None or p.segments != 1 or p.times != 1 or p.ragged:
        return False
    lower, upper, step = (
        site.m.heap.read((made.number, n)) or NONE for n in ("lower", "upper", "step")
    )
    count = upper[0] if len(upper) == 1 else None
    of_all = isinstance(count, Data) and count.placement == placements.size(1)
    return lower in (NONE, const(0)) and step in (NONE, const(1)) and of_all


def _views(site: Site, p: Placement, part: Value) -> int:
    """How many whole segments a slice takes (``z[:n]`` of two views), 0 where it cuts through
    them.
    """
    made = next(iter(site.m.objects(part)), None)
    if made is None or p.segments < 2 or not p.times or p.ragged:
        return 0
    lower, upper, step = (
        site.m.heap.read((made.number, n)) or NONE for n in ("lower", "upper", "step")
    )
    if step not in (NONE, const(1)):
        return 0
    bounds = []
    for v, default in ((lower, 0), (upper, p.segments)):
        q = placement_of(v)
        if v in (NONE, const(0)):
            bounds.append(default if v == NONE else 0)
        elif q.kind is Kind.SIZE and q.times > 0 and q.times % p.times == 0:
            bounds.append(q.times // p.times)
        else:
            return 0
    return max(min(bounds[1], p.segments) - bounds[0], 0)


def _shape_item(site: Site, found: Data, key: Value) -> Value:
    """``shape[i]`` where the number of axes is not known."""
    place = site.m.constant(key)
    if place is not None and type(place.value) is int:
        return size_of(site, found, place.value)
    made = next(iter(site.m.objects(key)), None)
    if made is not None and made.kind == "slice":
        start, stop = (_end(site, made, name) for name in ("lower", "upper"))
        p = found.placement
        if type(start) is int and start > p.axis:
            if p.padded and start < 2:  # one of the first two axes is as long as the longest sample of the rank
                return value(Data("number", placements.PADDED, sources=found.sources, axes=0, origin=Origin(site.node, "size")))
            return value(Data("number", placements.UNIFORM))
        first = start or 0
        if type(first) is int and first < 0 and stop is None and not p.axis:
            return items([size_of(site, found, i) for i in range(first, 0)])
        if type(first) is int and first >= 0 and type(stop) is int and stop >= first:
            return items([size_of(site, found, i) for i in range(first, stop)])
        if type(first) is int and first >= 0 and (stop is None or type(stop) is int):
            # ``x.shape[:-1]``: the samples have axes of their own, or their number would be cut off
            return value(found._replace(placement=p._replace(axis=p.axis - first)))
    size = value(found._replace(kind="number", placement=placements.size(0)))
    return site.m.listed([size, SETTING], site.node, site.frame, exact=False)


def _end(site: Site, made: Object, name: str) -> object:
    """A bound of a slice: a number, None where there is none, a text where it is not known."""
    given = site.m.heap.read((made.number, name)) or NONE
    known = site.m.constant(given)
    return known.value if known is not None else "not known"
