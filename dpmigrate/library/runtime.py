"""dpmigrate_runtime: what the functions of migrated programs do (see dpmigrate/contract.py)."""

from __future__ import annotations

from collections.abc import Callable

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.divergence import differing
from dpmigrate.execution.heap import LENGTH, Object
from dpmigrate.execution.machine import Machine
from dpmigrate.execution.placements import Kind, Placement
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
    Value,
    atom_placement,
    const,
    items,
    join,
    known,
    placement_of,
    value,
)
from dpmigrate.library import modules, streams, torch_data
from dpmigrate.library.batches import BLOCKS, SHARED, WHOLE, divided
from dpmigrate.library.devices import chosen
from dpmigrate.library.effects import same, world_size
from dpmigrate.library.modules import taken_for_model
from dpmigrate.library.sites import SHARE_OF_BATCHES, Effect, Row, Site

_DOC = "README.md#the-runtime"
#: what a batch size is that was divided by the number of ranks
LOCAL_BATCH = "local batch"


def met(site: Site) -> None:
    """All ranks come together here."""
    site.event("collective", name=const(site.word))


def wrapped(site: Site) -> Value:
    """``ddp.wrap(model)``: DistributedDataParallel, or the model itself on one process."""
    met(site)
    model = site.get(0, "model") or NOTHING
    found: list[Value] = []
    for atom in model:
        made = site.m.heap.new(
            "wrapper", "wrap", site.node, site.frame.context, key=(site.name, atom)
        )
        inner = _inside(site, value(atom))
        taken_for_model(site, inner)
        site.m.heap.write((made.number, "module"), inner)
        for option in ("find_unused", "sync_bn", "compare", "thaws"):
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
            modules.forward(site, made)
        called = site.m.attribute(inner, str(name), site.node, site.frame)
        given = site.m.call(called, site.arguments, site.node, site.frame)
        if made is not None and made.kind == "wrapper" and site.grad():
            given = modules.through(given, made, site)
        result.append(given)
    return join(*result)


# ---------------------------------------------------------------- data


def local_batch(site: Site) -> Value:
    """``ddp.local_batch(size)``: the rank's part of a batch size."""
    site.event("batch divided", size=site.get(0, "size") or NOTHING)
    origin = Origin(site.node, LOCAL_BATCH)
    return value(Data("number", placements.size(), origin=origin))


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
                plain = other.kind == "loader" and (site.m.heap.read((other.number, "batch_sampler")) or NONE) == NONE
                if how == SHARED and kept == const(False) and plain:
                    site.event("batch divided", size=_size_of(site.m, other.number))
            site.m.heap.write((made.number, "dealt"), const(how))
            if how == SHARED:
                sampler = site.m.heap.new(
                    "sampler", "DistributedSampler", site.node, site.frame.context, key=atom
                )
                site.m.heap.write((made.number, "sampler"), value(Ref(sampler.number)))
            if how == BLOCKS:
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


# ---------------------------------------------------------------- numbers

_TOTALS = (Kind.PARTIAL, Kind.SIZE, Kind.RATIO)


def reduced(wanted: placements.Placement) -> Effect:
    """``ddp.sum_all``, ``ddp.mean_all``: parts become the whole."""

    def effect(site: Site) -> Value:
        met(site)
        given = list(site.arguments.positional)
        if site.arguments.star:
            given.append(site.arguments.star)
        over = site.arguments.keywords.get("over")
        if over and not any(divided(site.m, o) for o in site.m.objects(over)):
            whole = [_of_all_batches(site, v, over) for v in given]
            return whole[0] if len(whole) == 1 else items(whole)
        for v in given:
            flat = site.flat(v)
            if flat:
                site.event("reduce", how=const(wanted.how), given=flat)
        found = [_whole(site, v, wanted) for v in given]
        return found[0] if len(found) == 1 else items(found)

    return effect


def _of_all_batches(site: Site, v: Value, over: Value) -> Value:
    """What a rank has added up over all batches of loaders that are not divided: the same on every
    rank, whatever the order of the batches.
    """
    loaders = {o.number for o in site.m.objects(over)}
    return tuple(
        a._replace(placement=placements.UNIFORM)
        if isinstance(a, Data) and a.placement.kind in _TOTALS and a.sources <= loaders
        else a
        for a in v
    )


def _whole(site: Site, v: Value, wanted: placements.Placement) -> Value:
    """The whole of a part; what is no such part is not made right by it."""
    found: list[Value] = []
    for atom in v:
        made = site.m.object(atom)
        if made is not None and made.kind in ("list", "dict"):
            inner = site.m.contents(made)
            held = _whole(site, inner, wanted)
            new = site.m.heap.new(
                made.kind, made.kind, site.node, site.frame.context, key=made.number
            )
            site.m.heap.write((new.number, "*"), held)
            found.append(value(Ref(new.number)))
        elif isinstance(atom, Items):
            found.append(items([_whole(site, i, wanted) for i in atom.items]))
        elif isinstance(atom, Data):
            p = atom.placement
            fits = (
                p.kind in (Kind.ZERO, Kind.UNIFORM) if wanted.how == "mean" else p.kind is Kind.ZERO
            )
            fits = fits or placements.join(p, wanted) == wanted
            origin = None if fits else Origin(site.node, f"{site.word} of what is {p}", atom.origin)
            placement = placements.UNIFORM if fits else placements.UNKNOWN
            found.append(
                value(
                    atom._replace(
                        placement=placement, origin=origin, gradient="none", reached=frozenset()
                    )
                )
            )
        elif isinstance(atom, Const | Setting) and atom_placement(atom).kind is not Kind.ZERO:
            # the same on every rank: its mean is itself, its sum so many times as much
            found.append(value(atom) if wanted.how == "mean" else SETTING)
        else:
            found.append(value(atom))
    return join(*found)


def gathered(site: Site) -> Value:
    """``ddp.gather_all(x)``: the rows of all ranks in their order."""
    met(site)
    given = site.arguments.positional
    over = [divided(site.m, o) for o in site.m.objects(site.arguments.keywords.get("over") or NOTHING)]
    if over and not any(over):
        return given[0] if len(given) == 1 else items(given)
    found: list[Value] = []
    for v in given:
        if all(over):
            site.event("reduce", how=const("rows"), given=v)
        found.append(_uniform_in(site, v))
    return found[0] if len(found) == 1 else items(found)


def _uniform_in(site: Site, v: Value, *, longer: bool = True) -> Value:
    """The same, with what lists hold; ``longer`` where they get the elements of all ranks."""
    found: list[Value] = []
    for atom in v:
        made = site.m.object(atom)
        if made is None or made.kind not in ("list", "dict"):
            found.append(_uniform((atom,)))
            continue
        new = site.m.heap.new(made.kind, made.kind, site.node, site.frame.context, key=made.number)
        for name, held in site.m.heap.names(made.number):
            inner = _uniform_in(site, site.m.bound(held), longer=longer)
            if longer and isinstance(name, int):
                site.m.heap.widen((new.number, "*"), inner)
            elif name == "*" or isinstance(name, Const | int):
                site.m.heap.write((new.number, name), inner)
        found.append(value(Ref(new.number)))
    return join(*found)


def _uniform(v: Value) -> Value:
    found: list[Atom] = []
    for a in v:
        if isinstance(a, Data):
            a = a._replace(
                placement=placements.UNIFORM, origin=None, gradient="none", reached=frozenset()
            )
        elif isinstance(a, Items):
            a = Items(tuple(_uniform(i) for i in a.items))
        if not isinstance(a, Differs):
            found.append(a)
    return tuple(found)


def decided(site: Site) -> Value:
    """``ddp.any_rank(flag)``, ``ddp.from_main(v)``: the same on all ranks."""
    met(site)
    given = site.get(0) or NOTHING
    if site.word == "from_main":
        site.event("rank 0 decides", given=given)
    found = _uniform_in(site, given, longer=False)
    kept = tuple(a for a in found if not isinstance(a, Data) or a.kind != "number")
    # a number that was another one on each rank is some number now, beside what else it may be
    return kept if kept and len(kept) == len(found) else join(kept, SETTING)


def made_of(wanted: Callable[[Placement], bool], what: str, gives: Placement) -> Effect:
    """A function for numbers that lie in one way; round anything else it is not established.

    What it gives says how its gradient lies: DDP averages that over the ranks.
    """

    def effect(site: Site) -> Value:
        given = site.flat(site.get(0) or NOTHING)
        p = placement_of(given)
        if p.kind is Kind.UNKNOWN:
            return given
        if not wanted(p):
            return site.unknown(f"{site.word} of what is no {what}")
        return arithmetic.derived(site.word, gives, [given], site.node)

    return effect


def weighted_mean(site: Site) -> Value | None:
    """``ddp.weighted_mean(loss, count)``: a mean over what is counted. One over chosen samples stays
    what it is where all samples are counted.
    """
    p = placement_of(site.flat(site.get(0) or NOTHING))
    count = placement_of(site.flat(site.get(1, "weight") or NOTHING))
    if p.kind is Kind.RATIO and count.kind is Kind.SIZE:
        return site.get(0)
    made = made_of(_mean, "mean", placements.MEAN)(site) or NOTHING
    return tuple(
        a._replace(whole=True) if isinstance(a, Data) and a.placement == placements.MEAN else a for a in made
    )


def collective(effect: Effect) -> Effect:
    """The same where all ranks come together for it, which they do for gradients alone: without
    them the runtime gives what it is given.
    """

    def together(site: Site) -> Value | None:
        if not site.grad():
            return site.get(0)
        met(site)
        return effect(site)

    return together


def _sum(p: Placement) -> bool:
    return p == placements.SUM or p.kind in (Kind.SIZE, Kind.ZERO)


def _mean(p: Placement) -> bool:
    return p == placements.MEAN or p.kind in (Kind.RATIO, *placements.EQUAL)


def _rows(p: Placement) -> bool:
    return p.kind is Kind.ROWS


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
    return streams.generator(site, "generator_of_numbers", own("the seed of the rank")(site) or NONE)


def set_up(site: Site) -> Value:
    """``ddp.setup()``."""
    site.event("setup")
    return meeting(site)


def saved(site: Site) -> Value:
    """``ddp.save(obj, path)``: rank 0 writes."""
    what, where = site.get(0, "obj") or NOTHING, site.get(1, "f") or NOTHING
    site.event("save by rank 0", what=what, path=where)
    return NONE


def main_only(site: Site) -> Value:
    """``ddp.main_only(factory, …)``: the object on rank 0, one that does nothing on the others;
    what is no object, as a line that was typed, the others do not have.
    """
    factory = site.get(0, "factory") or NOTHING
    given = Arguments(site.arguments.positional[1:], site.arguments.keywords, site.arguments.star)
    alone = Parting(Origin(site.node, "rank 0 alone"), True)
    site.m.control.append(alone)
    made = site.m.call(factory, given, site.node, site.frame)
    site.m.control.pop()
    plain = all(isinstance(a, Const | Setting | Data) for a in made)
    return differing(made, alone) if plain else made


def path(site: Site) -> Value:
    """``ddp.main_path(p)``: a path that rank 0 writes to; the other ranks have the null device.
    A function in its place, to which a logger writes, is kept.
    """
    functions = tuple(a for a in site.get(0) or NOTHING if _is_function(site, a))
    name = Data("text", placements.PER_RANK, origin=Origin(site.node, "rank 0's path"))
    return functions or value(name)


def _is_function(site: Site, atom: Atom) -> bool:
    made = site.m.object(atom)
    return isinstance(atom, Bound) or (made is not None and made.kind == "function")


def equal(site: Site) -> Value:
    """A number that is the same on all ranks, which no rank is asked for."""
    return SETTING


_R = "dpmigrate_runtime."


def _row(names: str, effect: Effect) -> Row:
    return Row(" ".join(f"{_R}{n}" for n in names.split()), effect, (), _DOC)


ROWS = (
    _row("setup", set_up),
    _row("cleanup barrier sync_buffers", meeting),
    _row("seed_ranks", seeded),
    _row("wrap", wrapped),
    _row("unwrap", unwrapped),
    _row("method", method),
    _row("accumulate", lambda s: s.ref("context")),
    _row("clean_keys", same),
    _row("local_batch", local_batch),
    _row("distribute", dealt(SHARED)),
    _row("shard", dealt(BLOCKS)),
    _row("whole", dealt(WHOLE)),
    _row("next_epoch", next_epoch),
    _row("shard_sampler DistributedSampler", torch_data.sampler),
    _row("sum_all", reduced(placements.SUM)),
    _row("mean_all", reduced(placements.MEAN)),
    _row("gather_all", gathered),
    _row("any_rank from_main main_settings", decided),
    _row("sum_loss", made_of(_sum, "sum over the samples", placements.MEAN)),
    _row("weighted_mean", collective(weighted_mean)),
    _row("mean_count", collective(made_of(_sum, "number of samples", placements.size()))),
    _row("weight_of", made_of(_rows, "target of the samples", placements.SUM)),
    _row("rank local_rank worker_number", own("the number of the rank")),
    _row("is_main", own("rank 0 alone")),
    _row("world_size", world_size),
    _row("device", chosen),
    _row("save", saved),
    _row("main_only", main_only),
    _row("main_path", path),
    _row("common_seed same_hash", equal),
    _row("rank_generator", own_generator),
    Row("<through>.__call__", method_called, (), _DOC),
)
