"""dpmigrate_runtime: the functions that make the whole of what each rank has a part of."""

from __future__ import annotations

from collections.abc import Callable

from dpmigrate.execution import derivation, placements, sample_orders
from dpmigrate.execution.joins import join
from dpmigrate.execution.objects import KEYS
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    NOTHING,
    SETTING,
    Atom,
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
    data,
    items,
    placement_of,
    value,
)
from dpmigrate.library.batches import divided
from dpmigrate.library.pure import ANY
from dpmigrate.library.sites import Effect, Row, Site

DOC = "README.md#the-runtime"
_R = "dpmigrate_runtime."
#: the event of a loss that each rank makes of the samples of all, and that is taken for a rank's part
WHOLE = "whole already"

#: what a criterion has that puts its losses together over the ranks
OVER_RANKS = "weighted over the ranks"
#: the name of the collective that a call of it is then
OF_CRITERION = "weighted_loss"


def row(names: str, effect: Effect) -> Row:
    """A row for functions of the runtime."""
    return Row(" ".join(f"{_R}{n}" for n in names.split()), effect, (), DOC)


def met(site: Site) -> None:
    """All ranks come together here."""
    site.event("collective", name=const(site.word))


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
            new = site.in_place_of(made)
            site.m.heap.widen((new.number, "*"), held)
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
    over = [
        divided(site.m, o) for o in site.m.objects(site.arguments.keywords.get("over") or NOTHING)
    ]
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
        if isinstance(atom, Items):
            found.append(items([_uniform_in(site, i, longer=longer) for i in atom.items]))
            continue
        if made is None or made.kind not in ("list", "dict"):
            found.append(_uniform((atom,)))
            continue
        fields = list(site.m.heap.names(made.number))
        new = site.in_place_of(made)
        for name, held in fields:
            inner = _uniform_in(site, site.m.bound(held), longer=longer)
            if longer and isinstance(name, int):
                site.m.heap.widen((new.number, "*"), inner)
            elif name == "*" or isinstance(name, Const | int) or (name == KEYS and not longer):
                site.m.heap.widen((new.number, name), inner)
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


def settings(site: Site) -> Value:
    """``ddp.main_settings(tracker.config)``: on every rank those that rank 0 has."""
    made = site.m.objects(site.get(0) or NOTHING)
    if not made or any(o.kind != ANY for o in made):
        return decided(site)
    met(site)
    given = site.ref(ANY)
    if len(made) == 1:
        for name, held in list(site.m.heap.names(made[0].number)):
            held = site.m.bound(held)
            if isinstance(name, str) and name.isidentifier() and held and all(isinstance(a, Const | Setting) for a in held):
                site.m.heap.write((site.m.objects(given)[0].number, name), held)
    return given


def made_of(wanted: Callable[[Placement], bool], what: str, gives: Placement) -> Effect:
    """A function for numbers that lie in one way; round anything else it is not established.

    What it gives says how its gradient lies: DDP averages that over the ranks.
    """

    return lambda site: whole_of(site, site.flat(site.get(0) or NOTHING), wanted, what, gives)


def whole_of(site: Site, given: Value, wanted: Callable[[Placement], bool], what: str, gives: Placement) -> Value:
    """What a function for numbers that lie in one way makes of what it is given."""
    p = placement_of(given)
    if p.kind is Kind.UNKNOWN:
        return given
    if not wanted(p):
        _note_whole(site, given)
        found = site.unknown(f"{site.word} of what is no {what}")
        # the reason is what has made it so, and not what was put round it
        since = next((d.origin for d in data(given) if d.placement.kind is Kind.PER_RANK and d.origin is not None), None)
        return tuple(a._replace(origin=since) if since is not None and isinstance(a, Data) else a for a in found)
    return derivation.derived(site.word, gives, [given], site.node)


def _note_whole(site: Site, given: Value) -> None:
    """Note where what is taken for a rank's part is made of the samples of all."""
    if placement_of(given) == placements.MEAN and all(d.whole for d in data(given)):
        site.event(WHOLE, given=given)


def weighted_mean(site: Site) -> Value | None:
    """``ddp.weighted_mean(loss, count)``: a mean over what is counted. One over chosen samples stays
    what it is where all samples are counted.
    """
    return _put_together(site, site.flat(site.get(0, "loss") or NOTHING), placement_of(site.flat(site.get(1, "weight") or NOTHING)))


def of_criterion(site: Site, loss: Value) -> Value:
    """What a call of a criterion gives that ``ddp.weighted_loss`` has been given."""
    site.event("collective", name=const(OF_CRITERION))
    return _put_together(site, loss, placements.SUM)


def _put_together(site: Site, given: Value, count: Placement) -> Value:
    """The mean over all ranks of a loss that each has divided by a count."""
    p = placement_of(given)
    site.event("mean over weights of the batch", given=given)
    bent = p.kind is Kind.PER_RANK and any(d.bent for d in data(given))
    if bent or (p.kind is Kind.RATIO and count.kind is Kind.SIZE):
        return given  # of what is each rank's own it makes nothing else, and what has made it so is still seen
    if count.kind not in placements.EQUAL:
        _note_whole(site, given)
    made = whole_of(site, given, _mean, "mean", placements.MEAN)
    return tuple(
        a._replace(whole=True) if isinstance(a, Data) and a.placement == placements.MEAN else a
        for a in made
    )


def criterion(site: Site) -> Value:
    """``ddp.weighted_loss(nn.CrossEntropyLoss(weight=w))``: the criterion, whose calls put their losses together from now on."""
    given = site.get(0, "criterion") or NOTHING
    made = site.m.objects(given)
    if not made or any(o.kind != "criterion" for o in made):
        return site.unknown("what a criterion of the program's own makes of its weights")
    for each in made:
        site.m.heap.write((each.number, OVER_RANKS), const(True))
    return given


def counted(site: Site) -> Value:
    """``ddp.mean_count(n)``: what has a gradient loses it there; of a number that all ranks have it is
    that number.
    """
    if placement_of(site.flat(site.get(0, "count") or NOTHING)).kind in placements.EQUAL:
        return site.get(0, "count") or NOTHING
    if any(d.gradient != "none" and d.reached for d in data(site.flat(site.get(0, "count") or NOTHING))):
        return site.unknown("mean_count of what is made by the model")
    return made_of(_sum, "number of samples", placements.size())(site) or NOTHING


def term(site: Site) -> Value | None:
    """``ddp.sum_term(value)``: a sum over the rank's part of the batch, as a term of a mean."""
    site.event("sum of the batch", given=site.flat(site.get(0, "value") or NOTHING))
    return made_of(_sum, "sum over the samples", placements.MEAN)(site)


def of_batch(how: Placement) -> Effect:
    """``ddp.batch_sum``, ``ddp.batch_mean``: the number of the global batch. With a gradient it is
    that of the rank's part, which DDP averages; without one it is any number that all ranks have.
    """

    def effect(site: Site) -> Value:
        given = site.flat(site.get(0, "value") or NOTHING)
        p = placement_of(given)
        if p.kind is Kind.UNKNOWN:
            return given
        site.event(f"{how.how} of the batch", given=given)
        if p != how and p.kind is not (Kind.SIZE if how == placements.SUM else Kind.UNIFORM):
            return site.unknown(f"{site.word} of what is no {how.how} over the samples")
        learns = any(d.gradient != "none" for d in data(given))
        made = site.data(placements.MEAN if learns else placements.UNIFORM)
        return tuple(a._replace(whole=learns, every=p.kind is Kind.SIZE) if isinstance(a, Data) else a for a in made)

    return effect


def rows_of_batch(site: Site) -> Value:
    """``ddp.batch_rows(x)``: the samples of all ranks, with the gradient of the rank's own."""
    given = site.flat(site.get(0, "value") or NOTHING)
    p = placement_of(given)
    if p.kind is Kind.UNKNOWN:
        return given
    site.event("sum of the batch", given=given)
    told = (site.constant(1, "dim", 0), site.constant(2, "segments", 1), site.constant(3, "each", 1))
    if p.kind is not Kind.ROWS or p.padded or p.ragged or told != (p.axis, p.segments, p.times):
        return site.unknown(f"{site.word} of what are no such rows")
    if any(d.kind in ("order", "places") for d in data(given)):
        return site.unknown(f"{site.word} of numbers of samples")
    if any(d.order and d.order != sample_orders.IN_ORDER for d in data(given)):
        return site.unknown(f"{site.word} of samples that each rank has in an order of its own")
    learns = any(d.gradient != "none" for d in data(given))
    axes = given[0].axes if len(given) == 1 and isinstance(given[0], Data) else None
    made = site.data(placements.MEAN if learns else placements.UNIFORM, axes=axes, keep_axes=False)
    return tuple(a._replace(whole=learns, every=True) if isinstance(a, Data) else a for a in made)


def with_gradients(effect: Effect) -> Effect:
    """The same where gradients are recorded; without them the runtime gives what it is given."""
    return lambda site: effect(site) if site.grad() else site.get(0)


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


def weights(site: Site) -> Value | None:
    """``ddp.weight_of(targets, weight=…)``: the weights of the rank's targets, by class weights that are those of all ranks."""
    classes = site.flat(site.get(1, "weight") or NOTHING)
    if any(d.placement.kind not in placements.EQUAL and not d.whole for d in data(classes)):
        return derivation.since(site.data(placements.PER_RANK), "class weights of the rank's own", site.node)
    return made_of(_rows, "target of the samples", placements.SUM)(site)


def _sum(p: Placement) -> bool:
    return p == placements.SUM or p.kind in (Kind.SIZE, Kind.ZERO)


def _mean(p: Placement) -> bool:
    return p == placements.MEAN or p.kind in (Kind.RATIO, *placements.EQUAL)


def _rows(p: Placement) -> bool:
    return p.kind is Kind.ROWS


ROWS = (
    row("sum_all", reduced(placements.SUM)),
    row("mean_all", reduced(placements.MEAN)),
    row("gather_all", gathered),
    row("any_rank from_main", decided),
    row("main_settings", settings),
    row("sum_loss", made_of(_sum, "sum over the samples", placements.MEAN)),
    row("sum_term", with_gradients(term)),
    row("weighted_mean", collective(weighted_mean)),
    row("weighted_loss", criterion),
    row("mean_count", collective(counted)),
    row("batch_sum", collective(of_batch(placements.SUM))),
    row("batch_rows", collective(rows_of_batch)),
    row("batch_mean", collective(of_batch(placements.MEAN))),
    row("weight_of", weights),
)
