"""Indices, masks, and what is gathered or scattered by places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dpmigrate.execution import arithmetic, placements, samples
from dpmigrate.execution.heap import Object
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    ONE_SAMPLE,
    SETTING,
    Const,
    Data,
    Foreign,
    Items,
    Value,
    const,
    data,
    gradient_join,
    items,
    join,
    known,
    origins,
    placement_of,
    value,
)
from dpmigrate.library.factories import DRAWN_ORDER
from dpmigrate.library.shapes import axes_of
from dpmigrate.library.sites import PADDING, PART, SINGLE, WHICH_SAMPLE, Site, on_axis, one_dim, rows_of
from dpmigrate.library.sizes import size_of
from dpmigrate.library.streams import DRAW


class Part(NamedTuple):
    """A part of an index: what it is, the first axis that it takes, and how many."""

    kind: str
    value: Value
    first: int
    width: int


@dataclass(slots=True)
class Walk:
    """An index, part by part.

    ``to`` is the new axis of the samples, None where that is not known; ``own`` the part that
    chooses on it, ``others`` the places on other axes, ``axes`` the number of axes of the
    result.
    """

    to: int | None
    own: Part | None = None
    others: tuple[Value, ...] = ()
    axes: int | None = None


def index(site: Site) -> Value | None:
    """``x[i]``: the rows stay where their axis is taken whole; chosen rows are ragged.

    The rules are numpy's (https://numpy.org/doc/stable/user/basics.indexing.html): places on
    several axes are put beside each other, and their axes stand where the first of them did.
    """
    owner, key = site.flat(site.get(0) or NOTHING), site.get(1) or NOTHING
    found = rows_of(owner)
    if found is not None and found.kind == "shape":
        return _shape_item(site, found, key)
    parts = _key(key)
    if found is None:
        return _table(site, owner, parts)
    if isinstance(known(key), str):  # no tensor, but a dictionary that nobody saw: its fields
        return _lying(site, owner, found.placement, None)
    walk = _walked(site, parts, found)
    if walk.to is None:
        return site.unknown("an index by places on several axes")
    whole = walk.own is None or walk.own.kind == "whole"
    if whole and any(_moving(site, v) for v in walk.others):
        return _lying(site, owner, placements.PER_RANK, None, *walk.others)
    if whole:
        padded = found.placement.padded and not any(_at_one(site, v) for v in parts)
        if padded and any(_from_the_end(site, v) for v in parts[:2]):
            site.event(PADDING, given=value(found))
        p = found.placement._replace(axis=walk.to, padded=padded)
        return _lying(site, owner, p, walk.axes)
    return _chosen(site, owner, found, walk)


def _from_the_end(site: Site, part: Value) -> bool:
    """``x[:, -1]``: the place moves with the padding."""
    found = known(part)
    return type(found) is int and found < 0


def _at_one(site: Site, part: Value) -> bool:
    """Whether one place is taken, counted from the front: it does not move with the padding."""
    found = known(part)
    return _part(site, part) == "one" and not (isinstance(found, int) and found < 0)


def _lying(site: Site, owner: Value, p: Placement, axes: int | None, *more: Value) -> Value:
    operands = [owner, *(site.flat(v) for v in more)]
    made = arithmetic.derived("index", p, operands, site.node, axes=axes, keep_axes=False)
    mask = all(a.kind == "mask" for a in data(owner))
    return tuple(a._replace(kind="mask") if isinstance(a, Data) and mask else a for a in made)


def _moving(site: Site, part: Value) -> bool:
    return placement_of(site.flat(part)).kind not in placements.EQUAL


def _walked(site: Site, parts: list[Value], found: Data) -> Walk:
    """Follows an index to the axis of the samples."""
    axis = found.placement.axis
    entries = _entries(site, parts, found)
    own = next((e for e in entries if e.first <= axis < e.first + e.width), None)
    group = [e for e in entries if e.kind in ("many", "order")]
    if group:
        group = [e for e in entries if e.kind in ("many", "order", "one")]
    sizes = [1 if e.kind != "one" else 0 for e in group]
    for i, e in enumerate(group):
        found_axes = [d.axes for d in data(site.flat(e.value)) if d.kind not in ("mask", "order")]
        if e.kind == "many" and found_axes:
            sizes[i] = found_axes[0] if found_axes[0] is not None else 1
    wide = max(sizes, default=0)
    kept = {"whole": 1, "slice": 1, "none": 1}
    consumed = sum(e.width for e in entries)
    stay = sum(kept.get(e.kind, e.width if e.kind == "ellipsis" else 0) for e in entries)
    whole = found.axes
    if whole is None and consumed > 2 and all(e.kind != "ellipsis" for e in entries):
        whole = consumed  # x[:, :, :n]: three axes or more, which is what matters
    axes = whole - consumed + stay + wide if whole is not None else None

    def before(entry: Part | None) -> int:
        upto = entries[: entries.index(entry)] if entry is not None else entries
        return sum(kept.get(e.kind, e.width if e.kind == "ellipsis" else 0) for e in upto)

    places = [entries.index(e) for e in group]
    together = not group or places[-1] - places[0] == len(places) - 1
    start = before(group[0]) if group and together else 0
    others = tuple(e.value for e in group if e is not own)
    if own is not None and own in group:
        alone = wide == 1 and (own.kind == "order" or not others)
        alone = alone or not any(_moving(site, v) for v in others) or _beside(site, own, others)
        return Walk(start if alone else None, own, others, axes)
    ahead = group and (not together or own is None or entries.index(group[0]) < entries.index(own))
    to = before(own) + (wide if ahead else 0)
    to += axis - own.first if own is not None else axis - consumed
    ellipsis = own is not None and own.kind == "ellipsis"
    return Walk(to, None if ellipsis else own, others, axes)


def _beside(site: Site, own: Part, others: tuple[Value, ...]) -> bool:
    """Whether samples are chosen by their places and of each what stands beside its place:
    ``x[torch.where(mask)]``. Other numbers of places than of those fail when the program runs.
    """
    by_place = {d.kind for d in data(site.flat(own.value))} == {"places"}
    lying = [placement_of(site.flat(v)) for v in others]
    return by_place and all(
        p.kind in placements.EQUAL or (p.kind is Kind.ROWS and p.ragged and p.axis == 0)
        for p in lying
    )


def _ragged(p: Placement) -> Placement:
    """Some of the rows, of each sample as many as it has."""
    segments = p.segments if p.segments == 1 else 0
    return p._replace(ragged=True, times=0, segments=segments, padded=False)


def _entries(site: Site, parts: list[Value], found: Data) -> list[Part]:
    kinds = [_part(site, p) for p in parts]
    widths = [_width(site, p, k) for p, k in zip(parts, kinds, strict=True)]
    entries: list[Part] = []
    at, axis = 0, found.placement.axis
    for part, kind, width in zip(parts, kinds, widths, strict=True):
        if kind == "ellipsis":
            # where the number of axes is not known, what follows is taken to lie behind the samples
            rest = found.axes - sum(widths) if found.axes is not None else max(axis - at + 1, 0)
            width = max(rest, 0)
        entries.append(Part(kind, part, at, width))
        at += width
    return entries


def _width(site: Site, part: Value, kind: str) -> int:
    """How many axes a part of an index takes: a mask as many as it has."""
    if kind in ("none", "ellipsis"):
        return 0
    masks = [d for d in data(site.flat(part)) if d.kind == "mask"]
    return (masks[0].axes or 1) if kind == "many" and masks else 1


def _chosen(site: Site, owner: Value, found: Data, walk: Walk) -> Value:
    """The axis of the samples is indexed itself."""
    assert walk.own is not None
    kind, own, to = walk.own.kind, walk.own.value, walk.to or 0
    p = found.placement._replace(axis=to)
    others = [placement_of(site.flat(v)) for v in walk.others]
    if kind == "order":
        if any(o.word in (DRAWN_ORDER, DRAW) for d in data(own) for o in origins(d.origin)):
            site.event("partners")
        p = p._replace(padded=False)
        fit = all(
            q.kind in placements.EQUAL or (q.kind is Kind.ROWS and q.axis == 0) for q in others
        )
        made = p if fit else placements.PER_RANK
        return _lying(site, owner, made, walk.axes if fit else None, *walk.others)
    kinds = {d.kind for d in data(site.flat(own))}
    lying = placement_of(site.flat(own))
    together = _beside(site, walk.own, walk.others)
    if kind == "many" and kinds and (together or all(q.kind in placements.EQUAL for q in others)):
        ragged = _ragged(p)
        if kinds == {"places"}:
            return _lying(site, owner, ragged, walk.axes, own, *walk.others)
        if kinds == {"mask"} and lying.kind is Kind.ROWS:
            if lying.axis + walk.own.first != found.placement.axis or walk.own.first != (
                found.placement.axis
            ):
                return site.unknown("a mask over axes before that of the samples")
            whole = next((d.axes for d in data(site.flat(own))), None) is not None
            return _lying(site, owner, ragged, walk.axes if whole else None, own)
    if kind == "slice":
        views = _views(site, found.placement, own)
        if views:
            return _lying(site, owner, p._replace(segments=views), walk.axes)
        if _first_of_each(site, found.placement, own):
            return _lying(site, owner, p, walk.axes)
    if kind == "many" and lying.kind is Kind.ROWS:
        return site.unknown("whether samples are chosen by a mask or by their places")
    if lying.kind is Kind.UNKNOWN:
        return site.unknown("what a batch is indexed by")
    if samples.is_place(own) and (p.times, p.segments, p.ragged) == (1, 1, False):
        return _of_one_sample(site, owner, walk)
    if kind == "one" and (place := site.m.constant(own)) and type(place.value) is int and place.value not in (0, -1):
        site.event("one of the samples", given=value(found), place=own)
    word = SINGLE if kind == "one" else PART
    return arithmetic.derived(word, placements.PER_RANK, [owner], site.node, keep_axes=False)


def _of_one_sample(site: Site, owner: Value, walk: Walk) -> Value:
    """``x[i]``, ``x[i, j]`` in a turn for each sample: what the turn's own sample has."""
    beside = join(*[site.flat(v) for v in walk.others]) if walk.others else NOTHING
    own = all(
        isinstance(a, Data) and (a.placement.kind is Kind.TERM or not a.turn) and
        (a.turn or a.placement.kind in placements.EQUAL) for a in beside
    )  # fmt: skip
    made = arithmetic.derived(
        ONE_SAMPLE, placements.PER_RANK, [owner], site.node, axes=walk.axes, keep_axes=False
    )
    return samples.element(made) if own else made


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


def _key(key: Value) -> list[Value]:
    if len(key) == 1 and isinstance(key[0], Items):
        return list(key[0].items)
    return [key]


#: other names of None
_NEW_AXIS = (value(Foreign("numpy.newaxis")), value(Foreign("torch.newaxis")))


def _part(site: Site, part: Value) -> str:
    """What one part of an index is."""
    if part == NONE or part in _NEW_AXIS:
        return "none"
    if part == const(...):
        return "ellipsis"
    made = next((o for o in site.m.objects(part)), None)
    if made is not None and made.kind == "slice":
        bounds = [site.m.heap.read((made.number, n)) for n in ("lower", "upper", "step")]
        plain = [b for b in bounds if b not in (NONE, const(0), None)]
        return "slice" if plain else "whole"
    found = data(part)
    if found and all(d.kind == "order" for d in found):
        return "order"
    if found:
        return "one" if all(d.kind == "number" for d in found) else "many"
    if made is not None and made.kind == "list":
        return "many"
    return (
        "one" if part and len(part) == len([a for a in part if not isinstance(a, Data)]) else "many"
    )


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


def _table(site: Site, owner: Value, parts: list[Value]) -> Value:
    """What has no rows is indexed: a table is looked up by the rows of a batch, a part is taken
    of parts.
    """
    p = placement_of(owner)
    flat = [site.flat(v) or _bounds(site, v) for v in parts]
    rows = [(i, r) for i, v in enumerate(flat) if (r := rows_of(v)) is not None]
    lost = any(placement_of(v).kind is Kind.UNKNOWN for v in (owner, *flat))
    if lost:
        return _lying(site, owner, placements.UNKNOWN, None, *parts)
    if not rows:
        moving = any(placement_of(v).kind not in placements.EQUAL for v in flat)
        lying = placements.PER_RANK if moving else p
        return _lying(site, owner, lying, _axes_left(site, owner, parts), *flat)
    kinds = [_part(site, v) for v in parts]
    if (
        p.kind not in placements.EQUAL
        or "ellipsis" in kinds
        or any(placement_of(v).kind not in (*placements.EQUAL, Kind.ROWS) for v in flat)
    ):
        return _lying(site, owner, placements.PER_RANK, None, *parts)
    if kinds.count("many") > 1 and len(rows) != kinds.count("many"):
        return site.unknown("a table looked up by several indices")
    first, found = rows[0]
    before = sum(1 for k in kinds[:first] if k in ("whole", "slice", "none"))
    moved = placements.joined(r.placement for _, r in rows)
    if moved.kind is not Kind.ROWS or any(d.kind == "mask" for _, r in rows for d in [r]):
        return site.unknown("a table looked up by several indices")
    axes = next((a.axes for a in owner if isinstance(a, Data)), None)
    left = None
    if axes is not None and found.axes is not None:
        used = sum(1 for k in kinds if k in ("many", "one"))
        left = axes - used + found.axes + kinds.count("none")
    return _lying(site, owner, moved._replace(axis=moved.axis + before), left, *parts)


def _axes_left(site: Site, owner: Value, parts: list[Value]) -> int | None:
    """How many axes a part of a table has that plain places and slices choose."""
    axes = axes_of(owner)
    kinds = [_part(site, v) for v in parts]
    # of a setting it is not known whether it is one place
    open_ = [a for k, v in zip(kinds, parts, strict=True) if k == "one" for a in v if not isinstance(a, Const | Data)]
    by_places = [v for k, v in zip(kinds, parts, strict=True) if k in ("many", "order")]
    chosen = axes_of(join(*by_places)) if by_places else 0
    if axes is None or open_ or chosen is None or any(d.kind == "mask" for d in data(join(*by_places))):
        return None
    return max(axes - kinds.count("one") - len(by_places) + chosen + kinds.count("none"), 0)


def _bounds(site: Site, part: Value) -> Value:
    """Where a slice begins and ends, as far as that differs between ranks; they have batches of
    equal sizes.
    """
    found: list[Value] = []
    for made in site.m.objects(part):
        if made.kind == "slice":
            names = ("lower", "upper", "step")
            found += [site.m.heap.read((made.number, n)) or NONE for n in names]
    moving = [site.flat(v) for v in found]
    return join(*[v for v in moving if placement_of(v).kind not in (*placements.EQUAL, Kind.SIZE)])


def gather(site: Site) -> Value:
    """``x.gather(dim, index)``, ``take_along_dim``: coupled where the axis is that of the
    samples.
    """
    last = site.word in ("take_along_dim", "take_along_axis")
    owner, chosen = (
        site.flat(site.get(0) or NOTHING),
        site.flat(site.get(1 if last else 2, "index") or ()),
    )
    try:
        dim = one_dim(site, 2 if last else 1, -1)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    found, keys = rows_of(owner), rows_of(chosen)
    if found is None:
        p, q = placement_of(owner), placement_of(chosen)
        if keys is None or p.kind not in placements.EQUAL:
            linear = q.kind in placements.EQUAL
            return _lying(
                site, owner, p if linear else placements.elementwise([p, q]), None, chosen
            )
        if on_axis(dim, keys) is not True:
            return site.unknown("which rows of a table are gathered")
        return _lying(site, owner, keys.placement, keys.axes, chosen)
    hit = on_axis(dim, found)
    if hit is None:
        return site.unknown(f"the axis of {site.word}")
    q = placement_of(chosen)
    aligned = keys is not None and keys.placement.axis == found.placement.axis
    if hit or not aligned:
        lost = q.kind is Kind.UNKNOWN or (not hit and keys is None)
        return _lying(
            site, owner, placements.UNKNOWN if lost else placements.PER_RANK, None, chosen
        )
    return _lying(site, owner, placements.join(found.placement, q), found.axes, chosen)


def scatter(site: Site) -> Value:
    """``scatter(dim, index, src)``, ``index_add``: rows written into rows, or added up into a
    table.
    """
    owner = site.flat(site.get(0) or NOTHING)
    try:
        dim = one_dim(site, 1, 0)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    found = rows_of(owner)
    others = [v for v in (site.flat(a) for a in site.all()[2:]) if v]
    lying = placements.joined([placements.ZERO])
    if found is not None:
        hit = on_axis(dim, found)
        if hit is None:
            return site.unknown(f"the axis of {site.word}")
        rows = [rows_of(v) for v in others]
        beside = all(r is not None and r.placement.axis == found.placement.axis for r in rows)
        if not hit and beside:
            joined = placements.joined([found.placement, *(placement_of(v) for v in others)])
            return _lying(site, owner, joined, found.axes, *others)
        if (
            not hit
            and all(placement_of(v).kind in placements.EQUAL for v in others)
            and (site.word.startswith("index"))
        ):
            return _lying(site, owner, found.placement, found.axes, *others)
        return site.unknown("what is scattered into the rows of a batch")
    lying = placement_of(owner)
    if all(placement_of(v).kind in placements.EQUAL for v in others):
        return _lying(
            site, owner, lying if lying.kind is not Kind.ZERO else placements.UNIFORM, None
        )
    adds = site.word in ("scatter_add", "index_add")
    rows_only = [r for v in others if (r := rows_of(v)) is not None]
    if adds and lying.kind is Kind.ZERO and len(rows_only) == len(others) == 2:
        if all(r.placement.axis == dim for r in rows_only):
            return _lying(site, owner, placements.SUM, None, *others)
    return _lying(site, owner, placements.PER_RANK, None, *others)


def index_select(site: Site) -> Value:
    """``x.index_select(dim, places)``."""
    owner, places = site.flat(site.get(0) or ()), site.get(2, "index") or ()
    try:
        dim = one_dim(site, 1, 0)
    except LookupError:
        return site.unknown(f"the axis of {site.word}")
    if dim < 0:
        axes = next((a.axes for a in data(owner)), None)
        if axes is None:
            return site.unknown(f"the axis of {site.word}")
        dim += axes
    found = rows_of(owner)
    if found is None:
        made = _table(site, owner, [places])
        return tuple(
            a._replace(placement=a.placement._replace(axis=a.placement.axis + dim))
            if isinstance(a, Data) and a.placement.kind is Kind.ROWS
            else a
            for a in made
        )
    if dim == found.placement.axis:
        kind = "order" if {d.kind for d in data(site.flat(places))} == {"order"} else "many"
        return _chosen(site, owner, found, Walk(dim, Part(kind, places, dim, 1), (), found.axes))
    if _moving(site, places):
        return _lying(site, owner, placements.PER_RANK, None, places)
    return _lying(site, owner, found.placement, found.axes)


def masked_select(site: Site) -> Value:
    """``x.masked_select(mask)``: the chosen elements, one after the other."""
    both = rows_of(site.each())
    if both is None:
        return site.each()
    ragged = both.placement._replace(
        axis=0, ragged=True, times=0, segments=1, padded=False
    )
    if both.placement.axis:
        ragged = ragged._replace(segments=0)
    return site.data(ragged, axes=1, keep_axes=False)


def nonzero(site: Site) -> Value:
    """``mask.nonzero()``: places in the rank's own batch. A tuple of them has the places of the
    samples, each as often as its mask holds, and beside each the places in what that sample has.
    """
    found = rows_of(site.get(0) or ())
    if found is None:
        return site.each()
    own = found.axes == 1
    if site.arguments.keywords.get("as_tuple") == const(True) or site.word == "where":
        if found.placement.axis == 0 and found.axes and not own:
            beside = site.data(_ragged(found.placement), axes=1, gradient="none", keep_axes=False)
            return items([_places(site, True, 1), *([beside] * (found.axes - 1))])
        place = _places(site, own, 1)
        return items([place] * (found.axes or 1))
    return _places(site, own, 2)


def _places(site: Site, own: bool, axes: int) -> Value:
    return site.data(
        placements.PER_RANK, kind="places" if own else "tensor", axes=axes, gradient="none",
        keep_axes=False,
    )  # fmt: skip


def stored(site: Site) -> Value | None:
    """``x[i] = y``: what holds the tensor holds another one afterwards."""
    owner, key, new = (site.get(i) or NOTHING for i in range(3))
    target = getattr(site.node, "value", None)
    if not data(owner) or type(target).__name__ not in ("Name", "Attribute"):
        return None
    held, given = placement_of(owner), placement_of(site.flat(new))
    at = placement_of(site.flat(key))
    if any(d.kind == "shape" for d in data(owner)):
        place = site.m.constant(key)
        if place is None or place.value == held.axis or type(place.value) is not int or place.value < 0:
            site.m.assign(target, site.unknown("which size is set"), site.node, site.frame)  # type: ignore[arg-type]
        return NONE
    if held.kind is Kind.ROWS and (
        given.kind in (Kind.ROWS, *placements.EQUAL) or _of_a_sample(site, new)
    ):
        placement = held
    elif _at_own_place(site, owner, key, new):
        placement = held
        new = tuple(
            a._replace(placement=held, turn=False) if isinstance(a, Data) else a for a in new
        )
    elif at.kind in placements.EQUAL:
        rows = given.kind is Kind.ROWS
        placement = placements.PER_RANK if rows else placements.join(held, given)
    else:
        placement = placements.PER_RANK
    flows = gradient_join(*(d.gradient for v in (owner, new) for d in data(v)))
    both = [owner, site.flat(new)]
    made = arithmetic.derived("stored", placement, both, site.node, gradient=flows)
    site.m.assign(target, made, site.node, site.frame)  # type: ignore[arg-type]
    return NONE


def _at_own_place(site: Site, owner: Value, key: Value, new: Value) -> bool:
    """Whether a turn for each sample stores what is the sample's own at its place."""
    found = rows_of(owner)
    if found is None or not samples.of_turn(new):
        return False
    p, walk = found.placement, _walked(site, _key(key), found)
    own = walk.own is not None and samples.is_place(walk.own.value)
    beside = all(placement_of(site.flat(v)).kind in placements.EQUAL for v in walk.others)
    return own and beside and (p.times, p.segments, p.ragged) == (1, 1, False)


def _of_a_sample(site: Site, new: Value) -> bool:
    """Whether what is stored belongs to one sample, in a function that puts a batch together."""
    given = data(site.flat(new))
    return bool(given) and all(
        any(o.word == WHICH_SAMPLE for o in origins(d.origin)) for d in given
    )


def where(site: Site) -> Value:
    """``torch.where(c, x, y)`` chooses by element; with the condition alone it gives places."""
    return nonzero(site) if len(site.all()) == 1 else site.each()
