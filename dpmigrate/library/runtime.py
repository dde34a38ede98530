"""dpmigrate_runtime: what the functions of migrated programs do (see dpmigrate/contract.py)."""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.divergence import differing
from dpmigrate.execution.joins import join
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.objects import LENGTH, Object
from dpmigrate.execution.trace import Parting
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Atom,
    Bound,
    Const,
    Data,
    Differs,
    Items,
    Origin,
    Ref,
    Setting,
    Unknown,
    Value,
    const,
    known,
    value,
)
from dpmigrate.library import forward_pass, streams, torch_data
from dpmigrate.library.batches import BLOCKS, SHARED, WHOLE
from dpmigrate.library.devices import chosen
from dpmigrate.library.effects import world_size
from dpmigrate.library.natures import MAIN_ALONE, MAIN_PATH
from dpmigrate.library.runtime_reductions import DOC, met, row
from dpmigrate.library.sites import SHARE_OF_BATCHES, Effect, Row, Site
from dpmigrate.library.unseen_models import taken_for_model

#: a field of a share of batches: whether they are neighbours
IN_BLOCKS = "blocks"
#: why nothing is known of the rows of what is no batch, or another one on each rank
NO_ROWS = "not shown to be a batch that is the same on all ranks"
#: what a batch size is that was divided by the number of ranks
LOCAL_BATCH = "local batch"


def wrapped(site: Site) -> Value:
    """``ddp.wrap(model)``: DistributedDataParallel, or the model itself on one process."""
    met(site)
    model = site.get(0, "model") or NOTHING
    found: list[Value] = []
    for atom in model:
        made = site.m.heap.new(
            "wrapper", "wrap", site.node, site.frame.context, key=(site.name, atom)
        )
        if (model_made := site.m.object(atom)) is not None:
            made.owner = model_made.number
        inner = _inside(site, value(atom))
        taken_for_model(site, inner)
        site.m.heap.write((made.number, "module"), inner)
        for option in ("find_unused", "sync_bn", "compare", "thaws", "move_inputs", "again"):
            given = site.arguments.keywords.get(option)
            if given is not None:
                site.m.heap.write((made.number, option), given)
        site.event("wrap", object=value(Ref(made.number)), module=inner)
        found.append(value(Ref(made.number)))
    return join(*found)


def _inside(site: Site, model: Value) -> Value:
    """The model behind a wrapper."""
    found: list[Value] = []
    for atom in model:
        made = site.m.object(atom)
        if made is not None and made.kind == "wrapper":
            found.append(site.m.heap.read((made.number, "module")) or NOTHING)
        else:
            found.append(value(atom))
    return join(*found)


def unwrapped(site: Site) -> Value:
    """``ddp.unwrap(model)``: the bare model."""
    return _inside(site, site.get(0, "model") or NOTHING)


def method(site: Site) -> Value:
    """``ddp.method(model, name)``: a method of the model that goes through the wrapper."""
    return site.ref("through", model=site.get(0, "model"), name=site.get(1, "name"))


def method_called(site: Site) -> Value:
    """The method is called: a forward pass of the wrapper."""
    owner = site.object
    assert owner is not None
    model = site.m.heap.read((owner.number, "model")) or NOTHING
    name = known(site.m.heap.read((owner.number, "name")) or NOTHING)
    result: list[Value] = []
    for atom in model:
        made = site.m.object(atom)
        inner = _inside(site, value(atom))
        if made is not None and made.kind == "wrapper":
            forward_pass.forward(site, made)
            site.event("through a method", module=value(atom))
        called = site.m.attribute(inner, str(name), site.node, site.frame)
        given = site.m.call(called, site.arguments, site.node, site.frame)
        if made is not None and made.kind == "wrapper" and site.grad():
            given = forward_pass.through(given, made, site)
        result.append(given)
    return join(*result)


def cleaned(site: Site) -> Value:
    """``ddp.clean_keys(state)``: a state with the names of the bare model. What of it differs between
    ranks does so still.
    """
    moving = tuple(a for a in site.get(0) or NOTHING if isinstance(a, Data | Differs | Unknown))
    return join(site.ref("state", cleaned=const(True)), moving)


# ---------------------------------------------------------------- data


def local_batch(site: Site) -> Value:
    """``ddp.local_batch(size)``: the rank's part of a batch size."""
    site.event("batch divided", size=site.get(0, "size") or NOTHING)
    origin = Origin(site.node, LOCAL_BATCH)
    return value(Data("number", placements.size(), origin=origin))


def local_rows(site: Site) -> Value:
    """``ddp.local_rows(batch)``: the rank's rows of a batch that all ranks have drawn alike.

    They count as those of a loader that is dealt out, whose batches the program draws by itself.
    """
    made = site.made("loader")
    site.m.heap.write((made.number, "dealt"), const(SHARED))
    return _share(site, site.get(0, "batch") or NOTHING, made.number)


def _share(site: Site, v: Value, loader: int) -> Value:
    """The rank's rows of what is the same on all ranks."""
    found: list[Atom] = []
    for a in v:
        made = site.m.object(a)
        if isinstance(a, Items):
            found.append(Items(tuple(_share(site, i, loader) for i in a.items)))
        elif isinstance(a, Data) and a.placement.kind in placements.EQUAL and a.axes != 0:
            origin, sources = Origin(site.node, "batch"), a.sources | {loader}
            found.append(a._replace(placement=placements.rows(), sources=sources, origin=origin, even=False, lengths=()))
        elif made is not None and made.kind == "list":
            held = site.flat(value(a))
            rows = _share(site, held, loader)
            plain = [d._replace(kind="tensor") for d in rows if isinstance(d, Data)]
            found += plain or ([Unknown(NO_ROWS, site.node)] if held else [_rows_of(site, loader)])  # texts and settings have no data
        elif made is not None and made.kind == "dict":
            new = site.m.heap.new("dict", "dict", site.node, site.frame.context, key=("rows", made.number))
            for at, held in list(site.m.heap.names(made.number)):
                site.m.heap.write((new.number, at), held if isinstance(at, str) and at.startswith("#") else _share(site, held, loader))
            found.append(Ref(new.number))
        elif isinstance(a, Setting):
            found.append(_rows_of(site, loader))
        elif a == NONE[0] or isinstance(a, Unknown) or (isinstance(a, Data) and a.placement.kind is placements.Kind.UNKNOWN and a.origin is not None):
            found.append(a)  # why it is not known, it says itself
        else:
            found.append(Unknown(NO_ROWS, site.node))
    return tuple(found)


def _rows_of(site: Site, loader: int) -> Data:
    """The rank's rows of what is the same on all ranks, whatever it is."""
    return Data("any", placements.rows(), sources=frozenset({loader}), origin=Origin(site.node, "batch"))


def dealt(how: str) -> Effect:
    """A loader that deals the batches of another one."""

    def effect(site: Site) -> Value:
        found: list[Value] = []
        for atom in site.get(0, "loader") or NOTHING:
            made = site.m.heap.new(
                "loader", site.word, site.node, site.frame.context, key=(site.name, atom)
            )
            other = site.m.object(atom)
            if other is not None:
                _taken_over(site, made, other)
                kept = site.get(1, "keep_batch_size") or const(False)
                # a loader with a batch sampler has batches of that one's size
                plain = (
                    other.kind == "loader"
                    and (site.m.heap.read((other.number, "batch_sampler")) or NONE) == NONE
                )
                if how == SHARED and kept == const(False) and plain:
                    site.event("batch divided", size=_size_of(site.m, other.number))
            site.m.heap.write((made.number, "dealt"), const(how))
            if how == SHARED:
                sampler = site.m.heap.new(
                    "sampler", "DistributedSampler", site.node, site.frame.context, key=atom
                )
                site.m.heap.write((made.number, "sampler"), value(Ref(sampler.number)))
            if how == BLOCKS:
                in_blocks = site.get(1, "blocks") or const(False)
                site.m.heap.write((made.number, IN_BLOCKS), in_blocks)
                origin = Origin(site.node, SHARE_OF_BATCHES)
                count = Data("number", placements.SUM, origin=origin)
                site.m.heap.write((made.number, LENGTH), value(count))
            site.event("loader", object=value(Ref(made.number)))
            found.append(value(Ref(made.number)))
        return join(*found)

    return effect


def _size_of(m: Machine, loader: int) -> Value:
    """The batch size of a loader: 1 where it is given none."""
    told = any(m.heap.read((loader, name)) for name in ("batch_sampler", "**"))
    return m.heap.read((loader, "batch_size")) or (NOTHING if told else const(1))


def _taken_over(site: Site, made: Object, other: Object) -> None:
    made.marks |= other.marks
    for name, held in site.m.heap.names(other.number):
        site.m.heap.write((made.number, name), held)
    if other.kind != "loader" and "loader" not in site.m.kinds(other):
        site.m.heap.write((made.number, "dataset"), value(Ref(other.number)))


def next_epoch(site: Site) -> Value:
    """``ddp.next_epoch(loader)``: the loader, with the next order."""
    return site.get(0, "loader") or NOTHING


# ---------------------------------------------------------------- the process


def own(word: str) -> Effect:
    """A number that each rank has for itself."""

    def effect(site: Site) -> Value:
        return value(Data("number", placements.PER_RANK, origin=Origin(site.node, word)))

    return effect


def meeting(site: Site) -> Value:
    """A collective without a result."""
    met(site)
    return NONE


def seeded(site: Site) -> Value:
    """``ddp.seed_ranks()``: from here on each rank draws numbers of its own."""
    streams.parted(site)
    return meeting(site)


def own_generator(site: Site) -> Value:
    """``ddp.rank_generator(g)``: a generator with a seed of the rank's own."""
    return streams.generator(
        site, "generator_of_numbers", own("the seed of the rank")(site) or NONE
    )


def set_up(site: Site) -> Value:
    """``ddp.setup()``."""
    site.event("setup")
    return meeting(site)


def saved(site: Site) -> Value:
    """``ddp.save(obj, path)``: rank 0 writes."""
    what, where = site.get(0, "obj") or NOTHING, site.get(1, "f") or NOTHING
    site.event("save by rank 0", what=what, path=where)
    return NONE


#: the field of an object that rank 0 alone has
OF_MAIN = "#of rank 0"


def main_only(site: Site) -> Value:
    """``ddp.main_only(factory, …)``: the object on rank 0, one that does nothing on the others;
    what is no object, as a line that was typed, the others do not have.
    """
    factory = site.get(0, "factory") or NOTHING
    given = Arguments(site.arguments.positional[1:], site.arguments.keywords, site.arguments.star)
    alone = Parting(Origin(site.node, MAIN_ALONE), True)
    site.m.control.append(alone)
    made = site.m.call(factory, given, site.node, site.frame)
    site.m.control.pop()
    plain = all(isinstance(a, Const | Setting | Data) for a in made)
    for held in site.m.objects(made):
        site.m.heap.write((held.number, OF_MAIN), const(True))
    return differing(made, alone) if plain else made


def path(site: Site) -> Value:
    """``ddp.main_path(p)``: a path that rank 0 writes to; the other ranks have the null device.
    A function in its place, to which a logger writes, is kept.
    """
    site.event("main path", path=site.get(0) or NOTHING)
    functions = tuple(a for a in site.get(0) or NOTHING if _is_function(site, a))
    name = Data("text", placements.PER_RANK, origin=Origin(site.node, MAIN_PATH))
    return functions or value(name)


def _is_function(site: Site, atom: Atom) -> bool:
    made = site.m.object(atom)
    return isinstance(atom, Bound) or (made is not None and made.kind == "function")


def equal(site: Site) -> Value:
    """A number that is the same on all ranks, which no rank is asked for."""
    return SETTING


ROWS = (
    row("setup", set_up),
    row("cleanup barrier sync_buffers", meeting),
    row("seed_ranks", seeded),
    row("wrap", wrapped),
    row("unwrap", unwrapped),
    row("method", method),
    row("accumulate", lambda s: s.ref("context")),
    row("clean_keys", cleaned),
    row("local_batch", local_batch),
    row("local_rows", local_rows),
    row("distribute", dealt(SHARED)),
    row("shard", dealt(BLOCKS)),
    row("whole", dealt(WHOLE)),
    row("next_epoch", next_epoch),
    row("shard_sampler DistributedSampler", torch_data.sampler),
    row("rank local_rank worker_number", own("the number of the rank")),
    row("is_main", own(MAIN_ALONE)),
    row("world_size", world_size),
    row("device", chosen),
    row("save", saved),
    row("main_only", main_only),
    row("main_path", path),
    row("common_seed same_hash", equal),
    row("rank_generator", own_generator),
    Row("<through>.__call__", method_called, (), DOC),
)
