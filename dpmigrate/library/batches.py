"""Batches: what a pass over a loader gives (https://docs.pytorch.org/docs/stable/data.html)."""

from __future__ import annotations

import ast
from functools import lru_cache

from dpmigrate.execution import identity, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import EXISTS, LENGTH, Delta, Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Bound,
    Const,
    Data,
    Items,
    Origin,
    Ref,
    Value,
    const,
    items,
    join,
    known,
    value,
)
from dpmigrate.library.effects import uniform
from dpmigrate.library.indexing import index
from dpmigrate.library.sites import WHICH_SAMPLE, Row, Site

_DOC = "https://docs.pytorch.org/docs/stable/data.html"
#: how a loader deals its batches: a part of each, whole ones in turn, all of them to every rank
SHARED, BLOCKS, WHOLE = "shared", "blocks", "whole"
#: the event of a data set that gives its samples in an order of its own
OWN_ORDER = "order of its own"
#: objects of the program that keep what a sample leaves for the next one
_STATE = ("instance", "list", "dict", "set")
#: the samplers that give each rank a part of the samples
SAMPLERS = ("DistributedSampler", "shard_sampler")


def batches(site: Site) -> Value:
    """A batch of a loader: rows of the rank's share, see ``_batch``."""
    made = site.object
    assert made is not None
    site.event("batch", loader=value(Ref(made.number)))
    dataset = site.m.heap.read((made.number, "dataset")) or NOTHING
    batch = site.m.heap.read((made.number, "batch_size"))
    if batch == NONE and not site.m.heap.read((made.number, "batch_sampler")):
        return as_rows(site, sample(site, dataset, _which(site)), made.number)
    collate = site.m.heap.read((made.number, "collate_fn"))
    one = sample(site, dataset, _which(site))
    if collate and collate != NONE:
        given = site.m.listed([one], site.node, site.frame, exact=False)
        count = value(Data("number", placements.size(1), origin=Origin(site.node, "batch")))
        site.m.heap.write((site.m.objects(given)[0].number, LENGTH), count)
        result = site.m.call(collate, Arguments([given]), site.node, site.frame)
        return as_rows(site, result or SETTING, made.number, collated=False)
    return as_rows(site, one, made.number)


def begun(site: Site) -> Value:
    """A pass over a loader begins."""
    if site.object is not None:
        site.event("pass", loader=value(Ref(site.object.number)))
    return NONE


def _which(site: Site) -> Value:
    """The index of a sample: each rank has other ones."""
    origin = Origin(site.node, WHICH_SAMPLE)
    return value(Data("number", placements.PER_RANK, origin=origin))


def sample(site: Site, dataset: Value, index: Value) -> Value:
    """One sample of a data set, as its ``__getitem__`` gives it."""
    found: list[Value] = []
    for atom in dataset:
        made = site.m.object(atom)
        if made is None:
            found.append(SETTING)
            continue
        method = site.m.method_of(made, "__getitem__") or site.m.method_of(made, "__iter__")
        if made.kind == "instance" and method is not None:
            found.append(_item_of(site, method, index))
            continue
        if site.m.heap.read((made.number, "dealing")):
            own_order(site)
        inner = site.m.heap.read((made.number, "dataset"))
        tensors = site.m.heap.read((made.number, "tensors"))
        if tensors:
            found.append(_unbatched(tensors))
        elif inner:
            found.append(sample(site, inner, index))
        elif made.kind == "list":
            found.append(site.m.contents(made) or SETTING)
        else:
            found.append(value(Data("samples", placements.UNIFORM)))
    return join(*found) or SETTING


def _item_of(site: Site, method: Atom, index: Value) -> Value:
    """``dataset[i]``; draws in it come from worker streams.

    What no table knows of it is not missed: whatever a sample is made of, batches are rows of it.
    """
    missed = dict(site.m.trace.missed)
    site.m.heap.mark()
    result = site.m.call(value(method), Arguments([index]), site.node, site.frame)
    result = site.m.elements(result, site.node, site.frame) if _generator(site, result) else result
    frozen = _frozen(site, result, 4)
    delta = site.m.heap.rollback()
    site.m.trace.missed = missed
    assert isinstance(method, Bound)
    node = site.m.heap.objects[method.function].extra.node
    if not _asks_which(node) and (_takes_next(node) or _leaves_state(site, delta)):
        own_order(site)
    return frozen or SETTING


def own_order(site: Site) -> None:
    """Samples come in an order of the data set's own, whichever is asked for."""
    if site.object is not None and site.object.kind == "loader":
        site.event(OWN_ORDER, loader=value(Ref(site.object.number)))


@lru_cache(4096)
def _asks_which(node: ast.AST) -> bool:
    """Whether ``__getitem__`` reads the index that it is given, for more than a test of its bounds."""
    if not isinstance(node, ast.FunctionDef) or node.name != "__getitem__":
        return True  # an iterable data set goes on by itself
    if node.args.vararg or len(node.args.args) < 2:
        return True
    bounds = {
        n
        for a in ast.walk(node)
        if isinstance(a, ast.Assert | ast.Raise)
        or (isinstance(a, ast.If) and not a.orelse and all(isinstance(s, ast.Raise) for s in a.body))
        for n in ast.walk(a)
    }
    index = node.args.args[1].arg
    return any(
        isinstance(n, ast.Name) and n.id == index and isinstance(n.ctx, ast.Load) and n not in bounds
        for n in ast.walk(node)
    )


@lru_cache(4096)
def _takes_next(node: ast.AST) -> bool:
    """Whether ``__getitem__`` goes on with an iterator: ``next(self.rows)``."""
    called = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return any(isinstance(f, ast.Name) and f.id == "next" for f in called)


def _leaves_state(site: Site, delta: Delta) -> bool:
    """Whether a sample changes what was there before it: what the next one finds depends on it."""
    objects = site.m.heap.objects
    made = {n for n, name in delta if name == EXISTS}
    return any(
        n in objects and n not in made and objects[n].kind in _STATE and not str(name).startswith("#")
        and not identity.alike(site.m.heap.read((n, name)), new)
        for (n, name), new in delta.items()
    )  # fmt: skip


def _generator(site: Site, v: Value) -> bool:
    return any(o.kind == "generator" for o in site.m.objects(v))


def _frozen(site: Site, v: Value, depth: int) -> Value:
    """A sample as a value that outlives the branch: dictionaries and lists become tuples with
    names.
    """
    found: list[Atom] = []
    for a in v:
        made = site.m.object(a)
        if isinstance(a, Items):
            found.append(Items(tuple(_frozen(site, i, depth - 1) for i in a.items)))
        elif made is not None and made.kind in ("list", "dict") and depth:
            held = [(n, site.m.bound(x)) for n, x in site.m.heap.names(made.number)]
            fields = tuple(
                items(
                    [(n,) if isinstance(n, Const) else const(str(n)), _frozen(site, x, depth - 1)]
                )
                for n, x in held
            )
            found.append(Items((const(f"<{made.kind}>"), *fields)))
        else:
            found.append(a)
    return tuple(found)


def _unbatched(v: Value) -> Value:
    """A sample of tensors that lie side by side."""
    found: list[Atom] = []
    for a in v:
        if isinstance(a, Items):
            found.append(Items(tuple(_unbatched(i) for i in a.items)))
        elif isinstance(a, Data):
            axes = a.axes - 1 if a.axes else None
            found.append(a._replace(axes=axes))
        else:
            found.append(a)
    return tuple(found)


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
    return Data(
        kind, lying, "none", frozenset([loader]), frozenset(), axes, origin, dealt == const(BLOCKS)
    )


def as_rows(site: Site, v: Value, loader_number: int, *, collated: bool = True) -> Value:
    """A batch made of samples: whatever a sample holds is rows; ``collated`` by torch as
    tensors.
    """
    found: list[Atom] = []
    for a in v:
        match a:
            case Items() if a.items and _tag(a.items[0]):
                found += _container(site, a, loader_number)
            case Items():
                parts = (as_rows(site, i, loader_number, collated=collated) for i in a.items)
                found.append(Items(tuple(parts)))
            case Data(kind="number" | "text", placement=placements.PER_RANK):
                found.append(_batch(site, "batch", loader_number, None))
            case Data(placement=placements.Placement(kind=Kind.ROWS)) if not collated:
                batch = _batch(site, "tensor", loader_number, a.axes)  # put together already
                if batch.placement.kind is Kind.ROWS:
                    lying = batch.placement._replace(axis=a.placement.axis, padded=a.placement.padded)
                    batch = batch._replace(placement=lying)
                found.append(batch)
            case Data():
                plain = a.kind in ("samples", "any")
                kept = a.kind == "mask" or (a.kind == "array" and not collated)
                kind = "batch" if plain else a.kind if kept else "tensor"
                known_axes = a.axes is not None and a.placement.kind is not Kind.UNKNOWN
                axes = (a.axes or 0) + 1 if known_axes else None
                found.append(_batch(site, kind, loader_number, axes))
            case Const(value=None):
                found.append(a)
            case Const():
                kinds = ((str, "list of texts"), (bool, "mask"))
                kind = next((k for t, k in kinds if isinstance(a.value, t)), "tensor")
                found.append(_batch(site, kind, loader_number, 1))
            case Ref() if site.m.heap.objects[a.object].kind in ("list", "dict"):
                made = site.m.heap.objects[a.object]
                for name, held in site.m.heap.names(made.number):
                    if not (isinstance(name, str) and name.startswith("#")):
                        site.m.heap.write((made.number, name), as_rows(site, held, loader_number))
                found.append(a)
            case _:
                found.append(_batch(site, "batch", loader_number, None))
    return join(*[(a,) for a in found])


def _tag(v: Value) -> bool:
    return v in (const("<list>"), const("<dict>"))


def _container(site: Site, a: Items, loader_number: int) -> list[Atom]:
    kind = "dict" if a.items[0] == const("<dict>") else "list"
    made = site.m.heap.new(kind, kind, site.node, site.frame.context, key=("batch", loader_number))
    for pair in a.items[1:]:
        (both,) = pair
        assert isinstance(both, Items)
        name, held = both.items
        key = name[0]
        place = (
            key if kind == "dict" and not str(known(name)).startswith(("#", "*")) else known(name)
        )
        if kind == "list" and isinstance(place, str) and place.isdigit():
            place = int(place)
        rows = (
            held
            if isinstance(place, str) and place.startswith("#")
            else as_rows(site, held, loader_number)
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
