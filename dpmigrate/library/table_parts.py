"""What an index takes of a tensor in which no axis runs over samples: a part of a table, or what a table has
for each sample of a batch.
"""

from __future__ import annotations

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.joins import join
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import NONE, Const, Data, Value, const, data, placement_of
from dpmigrate.library import streams
from dpmigrate.library.axes import rows_of
from dpmigrate.library.cutting import note_bounds
from dpmigrate.library.factories import evened, sized
from dpmigrate.library.index_parts import kind_of_part
from dpmigrate.library.shapes import axes_of, with_lengths
from dpmigrate.library.sites import OWN_SIZE, Site

#: the fields of a slice, and the parts of an index that leave an axis
_BOUNDS, _KEPT = ("lower", "upper", "step"), ("whole", "slice", "none")
#: since when a value depends on how many samples a rank has
FIRST_ROWS = "the first rows of a table, as many as a rank has samples"


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


def looked_up(site: Site, owner: Value, parts: list[Value]) -> Value:
    """What has no rows is indexed: a table is looked up by the rows of a batch, a part is taken
    of parts.
    """
    p = placement_of(owner)
    flat = [site.flat(v) or bounds(site, v) for v in parts]
    note_bounds(site, join(*flat))
    rows = [(i, r) for i, v in enumerate(flat) if (r := rows_of(v)) is not None]
    lost = any(placement_of(v).kind is Kind.UNKNOWN for v in (owner, *flat))
    if lost:
        return indexed(site, owner, placements.UNKNOWN, None, *parts)
    if not rows:
        moving = any(placement_of(v).kind not in placements.EQUAL for v in flat)
        even = p.kind is Kind.ZERO or all(d.even for d in data(owner))
        drawn = derivation.drawn([owner])
        rows_made = None if moving else _of_samples(site, parts, even=even or drawn)
        made = indexed(site, owner, placements.PER_RANK if moving else rows_made or p, _axes_left(site, owner, parts), *flat)
        if rows_made == placements.PER_RANK:
            made = derivation.since(made, FIRST_ROWS, site.node)
        elif any(bounds(site, v) for v in parts):
            made = derivation.since(made, OWN_SIZE, site.node)
        made = evened(made) if even else made
        if drawn and rows_made is not None and rows_made.kind is Kind.ROWS:
            made = streams.of_samples(site, made)
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
    has; of one that is ``even``, or drawn, they are rows as ``torch.ones(len(x))`` and ``torch.rand(len(x))`` make them.
    """
    slices = [(i, o) for i, v in enumerate(parts) for o in site.m.objects(v) if o.kind == "slice"]
    ends = [(i, [site.m.heap.read((o.number, n)) or NONE for n in _BOUNDS]) for i, o in slices]
    counted = [(i, fields) for i, fields in ends if any(placement_of(site.flat(v)).kind is Kind.SIZE for v in fields)]
    if not counted:
        return None
    (at, (lower, upper, step)), kinds = counted[0], [kind_of_part(site, v) for v in parts]
    begins = lower in (NONE, const(0)) and step in (NONE, const(1)) and len(counted) == 1 and "ellipsis" not in kinds[:at]
    if not even or not begins:
        return placements.PER_RANK
    return sized(placement_of(site.flat(upper)), sum(1 for k in kinds[:at] if k in _KEPT))


def bounds(site: Site, part: Value) -> Value:
    """Where a slice begins and ends, as far as that differs between ranks; they have batches of
    equal sizes.
    """
    found: list[Value] = []
    for made in site.m.objects(part):
        if made.kind == "slice":
            found += [site.m.heap.read((made.number, n)) or NONE for n in _BOUNDS]
    moving = [site.flat(v) for v in found]
    return join(*[v for v in moving if placement_of(v).kind not in (*placements.EQUAL, Kind.SIZE)])
