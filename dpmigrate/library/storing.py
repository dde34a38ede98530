"""``x[i] = y``: what a tensor holds after something is stored in a part of it."""

from __future__ import annotations

from dpmigrate.execution import derivation, placements, sample_orders, samples
from dpmigrate.execution.joins import gradient_join, join
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import NONE, NOTHING, Data, Value, data, origins, placement_of
from dpmigrate.library.axes import rows_of
from dpmigrate.library.effects import whole
from dpmigrate.library.index_parts import (
    followed,
    is_moving,
    parts_of,
)
from dpmigrate.library.sites import OF_ONE_SIZE, SINGLE, WHICH_SAMPLE, Site


def stored(site: Site) -> Value | None:
    """``x[i] = y``: what holds the tensor holds another one afterwards."""
    owner, key, new = (site.get(i) or NOTHING for i in range(3))
    target = getattr(site.node, "value", None)
    if not data(owner) or type(target).__name__ not in ("Name", "Attribute", "Subscript", "Call"):
        return None
    held, given = placement_of(owner), placement_of(site.flat(new) or new)
    at = placement_of(site.flat(key))
    if getattr(target, "attr", "") == "data" or at.kind not in placements.EQUAL:
        site.event("in place", target=whole(site, target), new=join(site.flat(new), site.flat(key)))
    if any(d.kind == "shape" for d in data(owner)):
        place = site.m.constant(key)
        if place is None or place.value == held.axis or type(place.value) is not int or place.value < 0:
            site.m.assign(target, site.unknown("which size is set"), site.node, site.frame)  # type: ignore[arg-type]
        return NONE
    word = "stored"
    if held.kind is Kind.ROWS and given.kind in (Kind.ROWS, *placements.EQUAL):
        single = _of_one_number(site, owner, key)
        placement, word = (placements.PER_RANK, SINGLE) if single else (held, word)
    elif (held.kind is Kind.ROWS and _of_a_sample(site, new)) or _at_own_place(site, owner, key, new):
        placement = held
        by = any(d.order for d in data(site.flat(key)))  # each sample is put back at its own place
        new = tuple(
            a._replace(placement=held, turn=False, order=sample_orders.IN_ORDER if by else a.order) if isinstance(a, Data) else a for a in new
        )
    elif at.kind in placements.EQUAL:
        rows = given.kind is Kind.ROWS
        placement = placements.PER_RANK if rows else placements.join(held, given)
    else:
        placement = placements.PER_RANK
    flows = gradient_join(*(d.gradient for v in (owner, new) for d in data(v)))
    both = [owner, site.flat(new)]
    if at.kind not in placements.EQUAL:  # where it is stored goes by the samples
        both.append(site.flat(key))
    made = derivation.derived(word, placement, both, site.node, gradient=flows)
    places = next((d.order for d in data(site.flat(key)) if d.kind == "order" and d.order), None)
    if places is not None and placement == held and held.kind is Kind.ROWS:  # y[order] = x[order]: each at its own place again
        back = all(d.order == places for d in data(site.flat(new)) if d.order)
        made = sample_orders.given(made, sample_orders.IN_ORDER if back else frozenset({(site.node, places)}))
    site.m.write_in_place(target, made, site.node, site.frame)  # type: ignore[arg-type]
    return NONE


def _at_own_place(site: Site, owner: Value, key: Value, new: Value) -> bool:
    """Whether a turn for each sample stores what is the sample's own at its place."""
    found = rows_of(owner)
    if found is None or not samples.of_turn(new):
        return False
    p, walk = found.placement, followed(site, parts_of(key), found)
    own = walk.own is not None and samples.is_place(walk.own.value)
    beside = all(placement_of(site.flat(v)).kind in placements.EQUAL for v in walk.others)
    return own and beside and (p.times, p.segments, p.ragged) == (1, 1, False)


def _of_one_number(site: Site, owner: Value, key: Value) -> bool:
    """Whether one sample is stored in, by a number that all ranks share: ``x[0] = 1``. One process does so once in the whole batch, and a rank
    may have no sample of this number.
    """
    found = rows_of(owner)
    own = followed(site, parts_of(key), found).own if found is not None else None
    return own is not None and own.kind == "one" and not samples.is_place(own.value) and not is_moving(site, own.value)


def _of_a_sample(site: Site, new: Value) -> bool:
    """Whether what is stored belongs to one sample, in a function that puts a batch together."""
    given = data(site.flat(new))
    return bool(given) and all(
        any(o.word in (OF_ONE_SIZE, WHICH_SAMPLE) for o in origins(d.origin)) for d in given
    )
