"""An index, part by part: what each part is, which axes it takes, and where the samples lie afterwards."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import NamedTuple

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NONE,
    Data,
    Foreign,
    Items,
    Value,
    const,
    data,
    known,
    origins,
    placement_of,
    value,
)
from dpmigrate.library.factories import PLACES
from dpmigrate.library.sites import Site


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


def from_the_end(site: Site, part: Value) -> bool:
    """``x[:, -1]``: the place moves with the padding."""
    found = known(part)
    return type(found) is int and found < 0


def at_one(site: Site, part: Value) -> bool:
    """Whether one place is taken, counted from the front: it does not move with the padding."""
    found = known(part)
    return kind_of_part(site, part) == "one" and not (isinstance(found, int) and found < 0)


def is_moving(site: Site, part: Value) -> bool:
    """Whether a part of an index differs between ranks."""
    return placement_of(site.flat(part)).kind not in placements.EQUAL


def followed(site: Site, parts: list[Value], found: Data) -> Walk:
    """Follows an index to the axis of the samples."""
    axis = found.placement.axis
    entries = _entries(site, parts, found)
    own = next((e for e in entries if e.first <= axis < e.first + e.width), None)
    group = [e for e in entries if e.kind in ("many", "order")]
    if group:
        group = [e for e in entries if e.kind in ("many", "order", "one")]
    sizes = [1 if e.kind != "one" else 0 for e in group]
    for i, e in enumerate(group):
        found_axes = [d.axes for d in data(site.flat(e.value)) if d.kind != "mask"]
        if e.kind in ("many", "order") and found_axes:
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
        # an order of all samples with axes of one element behind it: arange(len(x))[:, None]
        alone = own.kind == "order" and sizes[group.index(own)] == wide
        alone = alone or (wide == 1 and not others)
        alone = alone or not any(is_moving(site, v) for v in others) or stand_beside(site, own, others) or one_of_each(site, found, own, others)
        return Walk(start if alone else None, own, others, axes)
    ahead = group and (not together or own is None or entries.index(group[0]) < entries.index(own))
    to = before(own) + (wide if ahead else 0)
    to += axis - own.first if own is not None else axis - consumed
    ellipsis = own is not None and own.kind == "ellipsis"
    return Walk(to, None if ellipsis else own, others, axes)


def stand_beside(site: Site, own: Part, others: tuple[Value, ...]) -> bool:
    """Whether samples are chosen by their places and of each what stands beside its place:
    ``x[torch.where(mask)]``. Other numbers of places than of those fail when the program runs.
    """
    by_place = {d.kind for d in data(site.flat(own.value))} == {"places"}
    lying = [placement_of(site.flat(v)) for v in others]
    return by_place and all(
        p.kind in placements.EQUAL or (p.kind is Kind.ROWS and p.ragged and p.axis == 0)
        for p in lying
    )


def one_of_each(site: Site, found: Data, own: Part, others: tuple[Value, ...]) -> bool:
    """Whether of each sample that a mask has chosen one place is taken, its own: ``z[torch.arange(len(t)), t]`` of ``z = x[mask]``, ``t = y[mask]``."""
    places, beside = data(site.flat(own.value)), [d for v in others for d in data(site.flat(v))]
    if not found.placement.ragged or not beside or not places or not all(_counts_chosen(site, d) for d in places):
        return False
    chosen = {_chosen_by(d) for d in (found, *places, *beside)}
    rows = all(d.placement.kind is Kind.ROWS and d.placement.ragged and d.placement.axis == 0 and d.axes == 1 for d in beside)
    return rows and len(chosen) == 1 and chosen != {""}


def _counts_chosen(site: Site, places: Data) -> bool:
    """Whether places go from the first sample to the last one of those that are chosen: ``torch.arange(len(t))``, as it stands in the index."""
    call, before = (places.origin.node, places.origin.before) if places.origin is not None and places.origin.word == PLACES else (None, None)
    if not isinstance(call, ast.Call) or len(call.args) != 1 or before is None or before.word != "size":
        return False
    written = site.node.slice if isinstance(site.node, ast.Subscript) else None
    return isinstance(written, ast.Tuple) and call in written.elts and not {k.arg for k in call.keywords} - {"device", "dtype"}


def _chosen_by(d: Data) -> str:
    """The text of the mask by which samples are chosen; '' where there is none, or several."""
    masks = [o.node.slice for o in origins(d.origin) if o.word == "index" and isinstance(o.node, ast.Subscript)]
    return ast.dump(masks[0]) if len(masks) == 1 else ""


def ragged_rows(p: Placement) -> Placement:
    """Some of the rows, of each sample as many as it has."""
    segments = p.segments if p.segments == 1 else 0
    return p._replace(ragged=True, times=0, segments=segments, padded=False)


def _entries(site: Site, parts: list[Value], found: Data) -> list[Part]:
    kinds = [kind_of_part(site, p) for p in parts]
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


def parts_of(key: Value) -> list[Value]:
    """The parts of an index: ``i`` and ``j`` of ``x[i, j]``."""
    if len(key) == 1 and isinstance(key[0], Items):
        return list(key[0].items)
    return [key]

#: other names of None
_NEW_AXIS = (value(Foreign("numpy.newaxis")), value(Foreign("torch.newaxis")))


def kind_of_part(site: Site, part: Value) -> str:
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
