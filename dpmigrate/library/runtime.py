"""dpmigrate_runtime, which migrated programs call: every function of ``dpmigrate.contract``.

What a collective gives is the same on every rank; the event says what it was given.
"""

from __future__ import annotations

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    Data,
    Origin,
    Ref,
    Value,
    const,
    items,
    join,
    known,
    placement_of,
    value,
)
from dpmigrate.library.distributed import collective, is_main, rank, whole
from dpmigrate.library.effects import same, uniform
from dpmigrate.library.modules import wrapper
from dpmigrate.library.sites import Row, Site, prefixed, rows_of
from dpmigrate.library.torch_data import sampler

_P = "dpmigrate_runtime."


def reduced(site: Site) -> Value:
    """``sum_all``, ``mean_all``, ``gather_all``: one value gives itself, several a tuple."""
    collective(site)
    found = [whole(site, v) for v in site.arguments.positional]
    return found[0] if len(found) == 1 else items(found)


def agreed(site: Site) -> Value:
    """``any_rank``, ``from_main``: the same answer on every rank, whatever each had."""
    collective(site)
    given = site.get(0) or NOTHING
    if site.word == "any_rank":
        return value(Data("number", placements.UNIFORM))
    return whole(site, given)


def met(site: Site) -> Value:
    """All ranks come together, and nothing comes back."""
    collective(site)
    return NONE


def met_context(site: Site) -> Value:
    """All ranks come together round what is done inside ``with``."""
    collective(site)
    return site.ref("context")


def sum_loss(site: Site) -> Value:
    """``sum_loss(x)``: a sum over the rank's samples, whose gradient DDP's average makes that
    of the whole sum.
    """
    given = site.flat(site.get(0, "loss") or NOTHING)
    p = placement_of(given)
    if p.kind in (Kind.ZERO, Kind.UNKNOWN):
        return given
    if p == placements.SUM or p.kind is Kind.SIZE:
        return arithmetic.derived(site.word, placements.MEAN, [given], site.node)
    return site.unknown("sum_loss round what is no sum over the samples")


def mean_count(site: Site) -> Value:
    """``mean_count(n)``: the same on every rank, and the ranks' counts added up are W times as
    much.

    So it lies as a number of samples: a rank's sum divided by it is the rank's part of a mean.
    """
    collective(site)
    given = site.flat(site.get(0, "count") or NOTHING)
    p = placement_of(given)
    fits = p == placements.SUM or p.kind is Kind.SIZE
    made = placements.size(0) if fits else placements.UNIFORM
    return arithmetic.derived(site.word, made, [given], site.node, gradient="none")


def weighted_mean(site: Site) -> Value:
    """``weighted_mean(loss, weight)``: the mean over what all ranks have, with the gradient
    that DDP averages.
    """
    collective(site)
    given = site.flat(site.get(0, "loss") or NOTHING)
    p = placement_of(given)
    made = placements.MEAN if p.kind in (Kind.RATIO, Kind.PARTIAL) else p
    return arithmetic.derived(site.word, made, [given], site.node)


def weight_of(site: Site) -> Value:
    """``weight_of(target, weight)``: what a weighted mean of the rank was divided by, a sum
    over its samples.
    """
    given = site.flat(site.get(0, "target") or NOTHING)
    p = placements.SUM if rows_of(given) is not None else placement_of(given)
    return arithmetic.derived(site.word, p, [given], site.node, gradient="none", axes=0)


def wrapped(site: Site) -> Value:
    """``wrap(model)``."""
    collective(site)
    return wrapper(site)


def unwrapped(site: Site) -> Value:
    """``unwrap(model)``: the module in a wrapper, or the module itself."""
    found: list[Value] = []
    for a in site.get(0, "model") or NOTHING:
        made = site.m.object(a)
        inner = None
        if made is not None and made.kind == "wrapper":
            inner = site.m.heap.read((made.number, "module"))
        found.append(inner or (a,))
    return join(*found)


def method(site: Site) -> Value:
    """``method(model, "loss")``: a method of the model, run by the wrapper."""
    inner = unwrapped(site)
    out = inner
    for word in str(known(site.get(1, "name") or NOTHING) or "forward").split("."):
        out = site.m.attribute(out, word, site.node, site.frame)
    for made in site.m.objects(site.get(0) or NOTHING):
        site.event("wrapper method", wrapper=value(Ref(made.number)), method=out)
    return out


def accumulate(site: Site) -> Value:
    """``with accumulate(model, sync=last):``."""
    return site.ref("context", sync=site.arguments.keywords.get("sync"))


def divided(site: Site) -> Value:
    """``distribute(loader)``, ``shard(loader)``, ``next_epoch(loader)``: the rank's part of a
    loader's passes.
    """
    loader = site.get(0, "loader") or NOTHING
    site.event("divided", loader=loader, name=const(site.word))
    return loader


def undivided(site: Site) -> Value:
    """``whole(loader)``: every rank goes through all batches."""
    found: list[Value] = []
    for a in site.get(0, "loader") or NOTHING:
        made = site.m.object(a)
        if made is None or made.kind != "loader":
            found.append((a,))
            continue
        new = site.m.heap.new(
            "loader", made.name, site.node, site.frame.context, key=("whole", made.number)
        )
        for name, held in site.m.heap.names(made.number):
            site.m.heap.write((new.number, name), held)
        site.m.heap.write((new.number, "whole"), const(True))
        found.append(value(Ref(new.number)))
    return join(*found)


def made_on_main(site: Site) -> Value:
    """``main_only(SummaryWriter, path)``: the object on rank 0, one that does nothing elsewhere."""
    a = site.arguments
    rest = Arguments(a.positional[1:], dict(a.keywords), a.star, a.stars)
    return site.m.call(site.get(0, "factory") or NOTHING, rest, site.node, site.frame)


def main_path(site: Site) -> Value:
    """``main_path(p)``: the path on rank 0, the null device elsewhere."""
    return value(Data("text", placements.PER_RANK, origin=Origin(site.node, "a path of rank 0")))


def saved(site: Site) -> Value:
    """``save(obj, path)``: rank 0 writes."""
    site.event(
        "save",
        what=site.get(0, "obj") or NOTHING,
        path=site.get(1, "f") or NOTHING,
        main=const(True),
    )
    return NONE


def worker_number(site: Site) -> Value:
    """``worker_number(id)``: another one for each worker of each rank."""
    return value(Data("number", placements.PER_RANK, origin=Origin(site.node, "a worker's number")))


ROWS = (
    Row(prefixed(_P, "rank local_rank"), rank),
    Row(prefixed(_P, "is_main"), is_main),
    Row(prefixed(_P, "world_size device local_batch common_seed same_hash"), uniform),
    Row(prefixed(_P, "setup cleanup barrier sync_buffers seed_ranks"), met),
    Row(prefixed(_P, "main_first same_stream"), met_context),
    Row(prefixed(_P, "sum_all mean_all gather_all"), reduced),
    Row(prefixed(_P, "any_rank from_main"), agreed),
    Row(prefixed(_P, "sum_loss"), sum_loss),
    Row(prefixed(_P, "mean_count"), mean_count),
    Row(prefixed(_P, "weighted_mean"), weighted_mean),
    Row(prefixed(_P, "weight_of"), weight_of),
    Row(prefixed(_P, "wrap"), wrapped),
    Row(prefixed(_P, "unwrap"), unwrapped),
    Row(prefixed(_P, "method"), method),
    Row(prefixed(_P, "accumulate"), accumulate),
    Row(prefixed(_P, "clean_keys rank_generator"), same),
    Row(prefixed(_P, "DistributedSampler shard_sampler"), sampler),
    Row(prefixed(_P, "distribute shard next_epoch"), divided),
    Row(prefixed(_P, "whole"), undivided),
    Row(prefixed(_P, "save"), saved),
    Row(prefixed(_P, "main_only"), made_on_main),
    Row(prefixed(_P, "main_path"), main_path),
    Row(prefixed(_P, "worker_number"), worker_number),
)  # fmt: skip
