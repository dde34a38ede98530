"""``x[i]``: what an index takes of a tensor."""

from __future__ import annotations

from dpmigrate.execution import derivation, placements, samples
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
from dpmigrate.library.factories import DRAWN_ORDER, evened, sized
from dpmigrate.library.index_parts import (
    Walk,
    at_one,
    followed,
    from_the_end,
    is_moving,
    kind_of_part,
    parts_of,
    ragged_rows,
    stand_beside,
)
from dpmigrate.library.results import part_of_results
from dpmigrate.library.shapes import axes_of, with_lengths
from dpmigrate.library.sites import OWN_SIZE, PADDING, PART, SINGLE, Site
from dpmigrate.library.sizes import size_of
from dpmigrate.library.streams import DRAW

#: the fields of a slice, and the parts of an index that leave an axis
_BOUNDS, _KEPT = ("lower", "upper", "step"), ("whole", "slice", "none")
#: since when a value depends on how many samples a rank has
FIRST_ROWS = "the first rows of a table, as many as a rank has samples"


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
        note_bounds(site, join(*[_bounds(site, v) for v in walk.others]))
        return indexed(site, owner, placements.PER_RANK, None, *walk.others)
    if whole:
        padded = found.placement.padded and not any(at_one(site, v) for v in parts)
        if padded and any(from_the_end(site, v) for v in parts[:2]):
            site.event(PADDING, given=value(found))
        p = found.placement._replace(axis=walk.to, padded=padded)
        return indexed(site, owner, p, walk.axes)
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


def indexed(site: Site, owner: Value, p: Placement, axes: int | None, *more: Value) -> Value:
    """What an index takes of ``owner``, lying as ``p`` says; ``more`` are the parts of the index
    that it is made of as well. A part of a mask is a mask.
    """
    operands = [owner, *(site.flat(v) for v in more)]
    made = derivation.derived(
        "index", p, operands, site.node, kind=site.kind_of(operands), axes=axes, keep_axes=False
    )
    mask = {a.kind for a in data(owner)} == {"mask"}
    return tuple(a._replace(kind="mask") if isinstance(a, Data) and mask else a for a in made)


def rows_chosen(site: Site, owner: Value, found: Data, walk: Walk) -> Value:
    """The axis of the samples is indexed itself."""
    assert walk.own is not None
    kind, own, to = walk.own.kind, walk.own.value, walk.to or 0
    p = found.placement._replace(axis=to)
    others = [placement_of(site.flat(v)) for v in walk.others]
    if kind == "order":
        if any(o.word in (DRAWN_ORDER, DRAW) for d in data(own) for o in origins(d.origin)):
            site.event("partners")
        p = p._replace(padded=False)
        wide = axes_of(own) or 1
        fit = all(
            q.kind in placements.EQUAL
            or (q.kind is Kind.ROWS and q.axis == 0 and (wide == 1 or axes_of(site.flat(v)) == wide))
            for q, v in zip(others, walk.others, strict=True)
        )
        made = p if fit else placements.PER_RANK
        return indexed(site, owner, made, walk.axes if fit else None, *walk.others)
    kinds = {d.kind for d in data(site.flat(own))}
    lying = placement_of(site.flat(own))
    together = stand_beside(site, walk.own, walk.others)
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
        return _of_one_sample(site, owner, walk)
    _note_place(site, value(found), kind, own)
    word = SINGLE if kind == "one" else PART
    return derivation.derived(word, placements.PER_RANK, [owner], site.node, keep_axes=False)


def _of_one_sample(site: Site, owner: Value, walk: Walk) -> Value:
    """``x[i]``, ``x[i, j]`` in a turn for each sample: what the turn's own sample has."""
    beside = join(*[site.flat(v) for v in walk.others]) if walk.others else NOTHING
    own = all(
        isinstance(a, Data) and (a.placement.kind is Kind.TERM or not a.turn) and
        (a.turn or a.placement.kind in placements.EQUAL) for a in beside
    )  # fmt: skip
    made = derivation.derived(
        ONE_SAMPLE, placements.PER_RANK, [owner], site.node, axes=walk.axes, keep_axes=False
    )
    return samples.element(made, site.node) if own else made


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


def looked_up(site: Site, owner: Value, parts: list[Value]) -> Value:
    """What has no rows is indexed: a table is looked up by the rows of a batch, a part is taken
    of parts.
    """
    p = placement_of(owner)
    flat = [site.flat(v) or _bounds(site, v) for v in parts]
    note_bounds(site, join(*flat))
    rows = [(i, r) for i, v in enumerate(flat) if (r := rows_of(v)) is not None]
    lost = any(placement_of(v).kind is Kind.UNKNOWN for v in (owner, *flat))
    if lost:
        return indexed(site, owner, placements.UNKNOWN, None, *parts)
    if not rows:
        moving = any(placement_of(v).kind not in placements.EQUAL for v in flat)
        even = p.kind is Kind.ZERO or all(d.even for d in data(owner))
        rows_made = None if moving else _of_samples(site, parts, even=even)
        made = indexed(site, owner, placements.PER_RANK if moving else rows_made or p, _axes_left(site, owner, parts), *flat)
        if rows_made == placements.PER_RANK:
            made = _since(site, made, FIRST_ROWS)
        elif any(_bounds(site, v) for v in parts):
            made = _since(site, made, OWN_SIZE)
        made = evened(made) if even else made
        return with_lengths(made, [1]) if kind_of_part(site, parts[0]) == "none" else made
    kinds = [kind_of_part(site, v) for v in parts]
    if (
        p.kind not in placements.EQUAL
        or "ellipsis" in kinds
        or any(placement_of(v).kind not in (*placements.EQUAL, Kind.ROWS) for v in flat)
    ):
        return indexed(site, owner, placements.PER_RANK, None, *parts)
    if kinds.count("many") > 1 and len(rows) != kinds.count("many"):
        return site.unknown("a table looked up by several indices")
    first, found = rows[0]
    before = sum(1 for k in kinds[:first] if k in _KEPT)
    moved = placements.joined(r.placement for _, r in rows)
    if moved.kind is not Kind.ROWS or any(d.kind == "mask" for _, r in rows for d in [r]):
        return site.unknown("a table looked up by several indices")
    axes = next((a.axes for a in owner if isinstance(a, Data)), None)
    left = None
    if axes is not None and found.axes is not None:
        used = sum(1 for k in kinds if k in ("many", "one"))
        left = axes - used + found.axes + kinds.count("none")
    return indexed(site, owner, moved._replace(axis=moved.axis + before), left, *parts)


def _since(site: Site, made: Value, word: str) -> Value:
    """Data that are what they are since this node."""
    return tuple(a._replace(origin=Origin(site.node, word, a.origin)) if isinstance(a, Data) else a for a in made)


def _axes_left(site: Site, owner: Value, parts: list[Value]) -> int | None:
    """How many axes a part of a table has that plain places and slices choose."""
    axes = axes_of(owner)
    kinds = [kind_of_part(site, v) for v in parts]
    # of a setting it is not known whether it is one place
    open_ = [a for k, v in zip(kinds, parts, strict=True) if k == "one" for a in v if not isinstance(a, Const | Data)]
    by_places = [v for k, v in zip(kinds, parts, strict=True) if k in ("many", "order")]
    chosen = axes_of(join(*by_places)) if by_places else 0
    if axes is None or open_ or chosen is None or any(d.kind == "mask" for d in data(join(*by_places))):
        return None
    return max(axes - kinds.count("one") - len(by_places) + chosen + kinds.count("none"), 0)


def _of_samples(site: Site, parts: list[Value], *, even: bool) -> Placement | None:
    """How a part of a table lies that begins or ends at a number of the rank's samples, None where no
    slice does. The first rows of a table, as many as a rank has samples, are others than the global batch
    has; of one that is ``even`` they are rows as ``torch.ones(len(x))`` makes them.
    """
    bounds = [[site.m.heap.read((o.number, n)) or NONE for n in _BOUNDS] for v in parts for o in site.m.objects(v) if o.kind == "slice"]
    slices = [i for i, v in enumerate(parts) if any(o.kind == "slice" for o in site.m.objects(v))]
    counted = [(i, ends) for i, ends in zip(slices, bounds, strict=True) if any(placement_of(site.flat(v)).kind is Kind.SIZE for v in ends)]
    if not counted:
        return None
    (at, (lower, upper, step)), kinds = counted[0], [kind_of_part(site, v) for v in parts]
    begins = lower in (NONE, const(0)) and step in (NONE, const(1)) and len(counted) == 1 and "ellipsis" not in kinds[:at]
    if not even or not begins:
        return placements.PER_RANK
    return sized(placement_of(site.flat(upper)), sum(1 for k in kinds[:at] if k in _KEPT))


def _bounds(site: Site, part: Value) -> Value:
    """Where a slice begins and ends, as far as that differs between ranks; they have batches of
    equal sizes.
    """
    found: list[Value] = []
    for made in site.m.objects(part):
        if made.kind == "slice":
            found += [site.m.heap.read((made.number, n)) or NONE for n in _BOUNDS]
    moving = [site.flat(v) for v in found]
    return join(*[v for v in moving if placement_of(v).kind not in (*placements.EQUAL, Kind.SIZE)])
