"""Batches: what a pass over a loader gives (https://docs.pytorch.org/docs/stable/data.html)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpmigrate.execution import placements, sample_orders
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import ELEMENTS, LENGTH, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Const,
    Data,
    Foreign,
    Items,
    Origin,
    Ref,
    Setting,
    Value,
    const,
    items,
    value,
)
from dpmigrate.library import collating
from dpmigrate.library.collating import putting_together
from dpmigrate.library.dataset_samples import sample
from dpmigrate.library.effects import uniform
from dpmigrate.library.indexing import index
from dpmigrate.library.sites import WHICH_SAMPLE, Row, Site

_DOC = "https://docs.pytorch.org/docs/stable/data.html"
#: how a loader deals its batches: a part of each, whole ones in turn, all of them to every rank
SHARED, BLOCKS, WHOLE = "shared", "blocks", "whole"
#: the samplers that give each rank a part of the samples
SAMPLERS = ("DistributedSampler", "shard_sampler")
#: the function by which a loader puts batches together that is given none
DEFAULT_COLLATE = frozenset((
    "torch.utils.data.default_collate", "torch.utils.data.dataloader.default_collate",
    "torch.utils.data._utils.collate.default_collate",
))  # fmt: skip


def batches(site: Site) -> Value:
    """A batch of a loader: rows of the rank's share, see ``_batch``."""
    made = site.object
    assert made is not None
    site.event("batch", loader=value(Ref(made.number)))
    dataset = site.m.heap.read((made.number, "dataset")) or NOTHING
    batch = site.m.heap.read((made.number, "batch_size"))
    if batch == NONE and not site.m.heap.read((made.number, "batch_sampler")):
        return as_rows(site, sample(site, dataset, _which(site)), made.number, more=0)
    collate = site.m.heap.read((made.number, "collate_fn"))
    one = sample(site, dataset, _which(site))
    named = [a for a in collate or NONE if not (a in NONE or _is_default(a))]
    # a value of the settings in the place of torch's own function is no other function
    own = tuple(named) if len(named) == len(collate or NONE) else tuple(a for a in named if not isinstance(a, Setting))
    plain = as_rows(site, one, made.number) if len(named) < len(collate or NONE) else NOTHING
    return join(plain, _by_function(site, own, one, made.number)) if own else plain


def _is_default(collate: Atom) -> bool:
    """Whether a function is what a loader takes where it is given none."""
    return isinstance(collate, Foreign) and collate.name in DEFAULT_COLLATE


def _by_function(site: Site, collate: Value, one: Value, loader: int) -> Value:
    """A batch that a ``collate_fn`` makes of the samples."""
    seen = collating.seen(one)
    one = collating.each(site, one)
    given = site.m.listed([one], site.node, site.frame, exact=False)
    count = value(Data("number", placements.size(1), origin=Origin(site.node, "batch")))
    site.m.heap.write((site.m.objects(given)[0].number, LENGTH), count)
    at = putting_together(site.m)
    before = site.m.heap.read(at) or NONE
    site.m.heap.write(at, value(Ref(loader)))
    site.m.heap.write(collating.filling(site.m), NONE)
    result = _apart_from_turns(site, lambda: site.m.call(collate, Arguments([given]), site.node, site.frame))
    site.m.heap.write(at, before)
    held = site.deep(result)
    constants = seen and collating.followed(held)
    several = len({a.order for a in held if isinstance(a, Data) and a.order and a.placement.kind in (Kind.ROWS, Kind.PER_RANK)}) > 1
    return as_rows(site, result or SETTING, loader, collated=False, more=0, constants=constants, ordered=several)


def _apart_from_turns(site: Site, put_together: Callable[[], Value]) -> Value:
    """What a function makes of the samples of a batch, whichever turn of a loop takes it: the samples
    lie in it as it says, and that the turn is the rank's own is said of the batch as a whole.
    """
    outer, turns = list(site.m.control), list(site.m.turns)
    site.m.control[:], site.m.turns[:] = [None] * len(outer), []
    made = put_together()
    site.m.control[:], site.m.turns[:] = [new or old for new, old in zip(site.m.control, outer, strict=True)], turns
    return made


def begun(site: Site) -> Value:
    """A pass over a loader begins."""
    if site.object is not None:
        site.event("pass", loader=value(Ref(site.object.number)))
    return NONE


def _which(site: Site) -> Value:
    """The index of a sample: each rank has other ones."""
    origin = Origin(site.node, WHICH_SAMPLE)
    return value(Data("number", placements.PER_RANK, origin=origin))


def divided(m: Machine, made: Object) -> bool:
    """Whether each rank goes through its share of a loader only."""
    how = m.heap.read((made.number, "dealt"))
    if how:
        return const(WHOLE)[0] not in how
    held = m.heap.read((made.number, "sampler")) or m.heap.read((made.number, "batch_sampler"))
    return any(o.name in SAMPLERS for o in m.objects(held or NOTHING))


def _batch(site: Site, kind: str, loader: int, axes: int | None) -> Data:
    """Data of a batch.

    Where the loader deals whole batches, a turn of the pass is one that the program has on one
    process too; where it is not divided, all ranks have the same batches.
    """
    dealt = site.m.heap.read((loader, "dealt"))
    lying = placements.UNIFORM if dealt == const(WHOLE) else placements.rows()
    origin = Origin(site.node, "batch")
    order = sample_orders.IN_ORDER if lying.kind is Kind.ROWS else frozenset[object]()
    return Data(
        kind, lying, "none", frozenset([loader]), frozenset(), axes, origin, dealt == const(BLOCKS), order=order
    )


def _of_a_batch(site: Site, number: Data, loader: int) -> Data:
    """A number that is put beside the samples of a batch: one of all of them."""
    batch = _batch(site, number.kind, loader, number.axes)
    if batch.placement.kind is not Kind.ROWS:
        return batch
    sized = number.placement.kind is Kind.SIZE
    return batch._replace(placement=number.placement if sized else placements.PER_RANK)


def _put_together(site: Site, a: Data, loader: int, *, collated: bool, more: int, ordered: bool) -> Data:
    """What is made of the samples: rows. What is not known of it may be filled up to the longest of the
    rank's samples, where a function that puts a batch together does that.
    """
    plain = a.kind in ("samples", "any")
    kept = a.kind == "mask" or (a.kind == "array" and not collated)
    lost = a.placement.kind is Kind.UNKNOWN
    axes = a.axes + more if a.axes is not None and not lost else None
    batch = _batch(site, "batch" if plain else a.kind if kept else "tensor", loader, axes)
    batch = batch._replace(alike=a.alike and collated, order=a.order if ordered else batch.order)
    filled = lost and not collated and collating.is_filled_up(site.m)
    if filled and batch.placement.kind is Kind.ROWS:
        return batch._replace(placement=batch.placement._replace(padded=True))
    return batch


def as_rows(
    site: Site, v: Value, loader_number: int, *, collated: bool = True, more: int = 1,
    seen: set[int] | None = None, constants: bool = False, ordered: bool = False, place: tuple[object, ...] = (),
) -> Value:  # fmt: skip
    """A batch made of samples: whatever a sample holds is rows; ``collated`` by torch as
    tensors, which have one axis ``more`` unless what is given is a batch already, in which what
    samples meet in differs. ``seen``: the containers that are made rows already, which may hold each
    other. ``constants``: what is not made of the samples stays what it is. ``ordered``: its parts have
    the samples in several orders. ``place``: where in a batch this is, by keys and indices.
    """
    found: list[Atom] = []
    seen = set() if seen is None else seen
    how: dict[str, Any] = {
        "collated": collated, "more": more, "seen": seen, "constants": constants, "ordered": ordered,
    }  # fmt: skip
    for a in v:
        match a:
            case Items() if a.items and collating.tagged(a.items[0]):
                found += _container(site, a, loader_number, how, place)
            case Items():
                parts = (as_rows(site, i, loader_number, place=(*place, n), **how) for n, i in enumerate(a.items))
                found.append(Items(tuple(parts)))
            case Data() if not collated and collating.meet(a):
                found.append(collating.differing(a, loader_number))
            case Data() if constants and collating.constant(a):
                found.append(a)
            case Data() if not more and (a.kind == "number" or a.axes == 0):
                found.append(_of_a_batch(site, a, loader_number))
            case Data(kind="number" | "text", placement=placements.PER_RANK):
                axes = more if a.kind == "number" and a.axes == 0 else None  # what is not known to be a number may be anything
                found.append(_batch(site, "batch", loader_number, axes))
            case Data(placement=placements.Placement(kind=Kind.ROWS)) if not collated:
                kind = "mask" if a.kind == "mask" else "tensor"
                batch = _batch(site, kind, loader_number, a.axes)  # put together already
                if batch.placement.kind is Kind.ROWS:
                    lying = a.placement
                    times = lying.times or int(not lying.ragged)
                    order = a.order if ordered else batch.order
                    batch = batch._replace(placement=lying._replace(times=times), order=order)
                found.append(batch)
            case Data():
                found.append(_put_together(site, a, loader_number, collated=collated, more=more, ordered=ordered))
            case Const() | Setting() if constants or a == NONE[0]:
                found.append(a)
            case Const():
                kinds = ((str, "list of texts"), (bool, "mask"))
                kind = next((k for t, k in kinds if isinstance(a.value, t)), "tensor")
                found.append(_batch(site, kind, loader_number, 1))
            case Ref() if site.m.heap.objects[a.object].kind in ("list", "dict"):
                made = site.m.heap.objects[a.object]
                fields = [] if a.object in seen else list(site.m.heap.names(made.number))
                seen.add(a.object)
                own = None if collated else collating.own_items(site.m, made, loader_number, ordered=ordered)
                for name, held in fields:
                    if own is not None and name == ELEMENTS:
                        site.m.heap.write((made.number, name), own)
                    elif not (isinstance(name, str) and name.startswith("#")):
                        rows = as_rows(site, held, loader_number, place=(*place, name), **how)
                        site.m.heap.write((made.number, name), rows)
                found.append(a)
            case _:
                found.append(_batch(site, "batch", loader_number, None))
    return join(*[(a,) for a in found])


def _container(site: Site, a: Items, loader_number: int, how: dict[str, Any], at: tuple[object, ...]) -> list[Atom]:
    kind = "dict" if a.items[0] == const("<dict>") else "list"
    made = site.m.heap.new(kind, kind, site.node, site.frame.context, key=("batch", loader_number, at))
    for pair in a.items[1:]:
        (both,) = pair
        assert isinstance(both, Items)
        name, held = both.items
        place = collating.field(kind, name)
        rows = (
            held
            if isinstance(place, str) and place.startswith("#")
            else as_rows(site, held, loader_number, place=(*at, place), **how)
        )
        site.m.heap.write((made.number, place), rows)
    return [Ref(made.number)]


#: the mark of a loader whose batches are graphs
GRAPHS = "graphs"
_COUNTS = ("num_graphs", "num_nodes", "num_edges")
#: fields of a batch of graphs with a row for each graph; ``y`` may as well be one of nodes, where
#: it meets what is made of those
_OF_GRAPHS = ("y", "label", "labels", "target", "u")


def batch_attribute(site: Site) -> Value:
    """A field of a batch whose class is not known: rows as well; of a batch of graphs a row for
    each node or edge, of which graphs have different numbers.
    """
    d = site.receiver
    if not isinstance(d, Data):
        return SETTING
    word = site.word.removeprefix(".")
    moving = d.placement.kind is Kind.ROWS
    if moving and any(GRAPHS in site.m.heap.objects[n].marks for n in d.sources):
        if word in _COUNTS:
            number = placements.size() if word == "num_graphs" else placements.SUM
            return value(d._replace(kind="number", placement=number, axes=None))
        if word not in _OF_GRAPHS:
            return value(d._replace(placement=d.placement._replace(ragged=True), axes=None))
    return value(d._replace(axes=None))


def batch_item(site: Site) -> Value | None:
    """``batch[0]``, ``batch["image"]``: a part of a batch; with another index it is a tensor."""
    if isinstance(site.receiver, Data):
        key = site.m.constant(site.get(1) or NOTHING)
        if key is not None and isinstance(key.value, int | str):
            return value(site.receiver._replace(kind="batch", axes=None))
        return index(site)
    return SETTING


def batch_pairs(site: Site) -> Value:
    """``batch.items()``."""
    return site.m.listed(
        [items([SETTING, batch_attribute(site)])], site.node, site.frame, exact=False
    )


ROWS = (
    Row("<loader>.__iter__", batches, source=_DOC),
    Row("<loader>.begun", begun, source=_DOC),
    Row("<batch>.__getitem__ <batch>.get <batch>.pop", batch_item, source=_DOC),
    Row("<batch>.__iter__ <list_of_texts>.__iter__ <batch>.values", batch_attribute, source=_DOC),
    Row("<batch>.items", batch_pairs, source=_DOC),
    Row("<batch>.keys", uniform, source=_DOC),
)  # fmt: skip
