"""Numbers that are read as those of the whole data are; losses are means over the global batch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.arithmetic import (
    MEAN_BY_PART,
    PART_BY_WHOLE,
    WEIGHTED_AGAIN,
    WHOLE_AND_PART,
    WHOLE_BY_PART,
)
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event, Parting
from dpmigrate.execution.values import NONE, NOTHING, Data, Origin, Ref, Value, atom_placement, const, data, placement_of
from dpmigrate.judge.accumulating import HOLDER
from dpmigrate.judge.file_calls import RUNTIME
from dpmigrate.judge.notes import SHARE, TOLD_OF, is_loader
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.batches import divided
from dpmigrate.library.natures import BY_NATURE, DRAW
from dpmigrate.library.runtime import IN_BLOCKS
from dpmigrate.library.sites import UNSEEN_CODE
from dpmigrate.library.streams import DRAWN

#: what a reduction makes whole
_PARTS = (Kind.PARTIAL, Kind.SIZE, Kind.RATIO)
#: what is added up over batches; a mean may be that of the last batch, which is no total
ADDED_UP = (placements.SUM, placements.RATIO)
#: what a number becomes where it is told
_SHOWN = ("number", "any", "text")
#: what is the same on all ranks, or not known
_AGREED = (*placements.EQUAL, Kind.UNKNOWN)
#: since when a number is as many times too great as there are ranks
_GROWS = (WHOLE_BY_PART, MEAN_BY_PART)
#: functions of the runtime that put parts of all ranks together, for a loss
_PUT_TOGETHER = ("batch_rows", "batch_sum", "batch_mean", "mean_count")
NAME = "losses and totals are those of all samples"
COUPLED = "a loss takes each sample by itself"
APART = "a loss is a mean of what each sample gives"


def over_weights(trial: Trial) -> tuple[ast.AST, ...]:
    """The calls of losses with gradients that are means over valid targets or weights of classes,
    where some loss is no mean over the samples.
    """
    if all(d.placement == placements.MEAN for _, d in trial.losses()):
        return ()
    return tuple(dict.fromkeys(e.node for e in trial.result.trace.of("mean over weights")))


def faults(trial: Trial) -> Iterator[Fault]:
    """Losses that are no mean over the ranks, and reductions of what is no such part."""
    if any(f"{RUNTIME}{word}" in trial.result.trace.foreign for word in _PUT_TOGETHER):
        for node, loss in trial.losses():
            if by_a_draw(loss):
                words = f"what the ranks put together for a loss may hold what each of them has drawn for itself: {trial.since(loss)}"
                yield trial.fault(node, APART, words, established=False)
    for event in trial.result.trace.of("sum of the batch", "mean of the batch"):
        if any(trial.result.heap.objects[n].kind == DRAWN for d in data(event.values["given"]) for n in d.marks):
            words = "what the ranks put together is made of what each of them has drawn for itself"
            yield trial.fault(event.node, APART, words, established=False)
    yield from _of_losses(without_draws(trial))
    yield from _told(trial)
    for event in _out_of_order(trial):
        words = "rows are put end to end in the order in which the ranks took turns: ddp.shard(loader, blocks=True) keeps that of the data"
        yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("layer on what all ranks have"):
        if any(d.whole or trained_on(trial, d) for d in data(event.values["given"])):
            words = "each rank would run layers on the samples of all: what is compared has to be compared behind them"
            yield trial.fault(event.node, COUPLED, words)
    for event in trial.result.trace.of("mean over weights of the batch"):
        if any(_shuffled(trial, o) for d in data(event.values["given"]) for o in full_loaders(trial.result, d)):
            words = "means over batches of which each rank has others are put together, in an evaluation of all of them: that has to be under no_grad()"
            yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("sum of the batch"):
        full = any(full_loaders(trial.result, d) for d in data(event.values["given"]))
        if full or any(atom_placement(a).kind is Kind.UNIFORM for a in event.values["given"]):
            words = "a number that is the same on every rank is added up, as in an evaluation of all batches: that has to be under no_grad()"
            yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("reduce"):
        how = event.values["how"][0].value  # type: ignore[union-attr]
        given = placement_of(event.values["given"])
        if how == "rows" and _the_same(trial, event.values["given"]):
            words = "what every rank has of all samples is put together: each would count several times"
            yield trial.fault(event.node, NAME, words)
        elif how == "sum" and given.kind is Kind.UNIFORM:
            yield trial.fault(
                event.node, NAME, "a number that is the same on every rank is added up"
            )
        elif any(_since(d) == WEIGHTED_AGAIN for d in data(event.values["given"])):
            yield trial.fault(event.node, NAME, f"what is put together was {WEIGHTED_AGAIN}")
        elif how == "sum" and any(_holds_wholes(d) for d in data(event.values["given"])):
            words = f"{WHOLE_AND_PART} is put together: what all ranks have counts once for each of them"
            yield trial.fault(event.node, NAME, words)
        elif how == "sum" and any(in_full(trial.result, d) for d in data(event.values["given"])):
            words = "what each rank has added up over all of the data is added up: it counts once for each of them"
            yield trial.fault(event.node, NAME, words)
        elif how == "sum" and given == placements.MEAN:
            yield trial.fault(event.node, NAME, "means of the ranks are added up")
        elif how == "mean" and any(_since(d) == "comparison" and d.kind in _SHOWN for d in data(event.values["given"])):
            words = "what each rank decides by its part of a batch is averaged"
            yield trial.fault(event.node, NAME, words)
        elif how == "mean" and given == placements.SUM:
            yield trial.fault(event.node, NAME, "sums of the ranks are averaged")


def without_draws(trial: Trial) -> Trial:
    """The trial that shows how losses are made of samples: where each rank has a loss of its own by what it draws, that with equal draws."""
    return trial.drawn_alike if any(by_a_draw(loss) for _, loss in trial.losses()) else trial


def telling(trial: Trial) -> Trial:
    """The trial that shows what the numbers that are told are made of: where some of samples hold draws as well, that with equal draws."""
    told = (d for event in trial.result.trace.of(*TOLD_OF) for d in data(event.values["numbers"]))
    return trial.drawn_alike if any(by_a_draw(d) and d.sources for d in told) else trial


def _of_losses(trial: Trial) -> Iterator[Fault]:
    """Losses that are no mean over the ranks."""
    ended = trial.result.trace.ended
    if ended is not None:
        yield trial.fault(None, NAME, f"the program is not understood: {ended}", established=False)
    for node, loss in trial.losses():
        if loss.placement.kind is Kind.ROWS and _since(loss).endswith(UNSEEN_CODE):
            words = f"how the loss takes the samples together is not known: it is what {_since(loss)}, gives"
            yield trial.fault(node, COUPLED, words, established=False)
        elif loss.placement.kind is Kind.PER_RANK:
            words = f"a rank's loss may be no mean over its samples: {trial.since(loss)}"
            yield trial.fault(node, APART, words, established=False)
        elif loss.placement != placements.MEAN and loss.placement.kind not in placements.EQUAL:
            known = loss.placement.kind is not Kind.UNKNOWN
            yield trial.fault(node, NAME, f"the loss is {trial.since(loss)}", established=known)
    for node, why in trial.unknown_losses():
        words = f"the loss may be one that is not known: {why}"
        yield trial.fault(node, NAME, words, established=False)


def _shuffled(trial: Trial, loader: Object) -> bool:
    """Whether a loader shuffles, in an order of each rank's own."""
    if trial.held(loader.number, "dealt"):
        return False  # of ddp.whole(loader) all have the same order
    return trial.held(loader.number, "shuffle") not in (NOTHING, NONE, const(False))


def in_full(execution: Execution, d: Data) -> bool:
    """Whether data come from loaders alone that every rank goes through in full, in whatever order."""
    made = [execution.heap.objects[n] for n in d.sources]
    loaders = [o for o in made if is_loader(execution, o)]
    return bool(loaders) and len(full_loaders(execution, d)) == len(loaders)


def full_loaders(execution: Execution, d: Data) -> list[Object]:
    """The loaders behind data that every rank goes through in full. A function that trains and
    evaluates is one place, and what it is given comes from the loaders of both.
    """
    made = [execution.heap.objects[n] for n in sorted(d.sources)]
    if any(o.name == SHARE for o in made):
        return []
    return [o for o in made if is_loader(execution, o) and not divided(execution, o)]


def by_a_draw(d: Data) -> bool:
    """Whether data differ since each rank has drawn something, as a weight: what else there may be
    in them that differs is not seen.
    """
    return d.placement.kind is Kind.PER_RANK and d.origin is not None and d.origin.word == DRAW


def _holds_wholes(d: Data) -> bool:
    """Whether what all ranks have was added to a rank's part, at once or in a turn before."""
    origin = d.origin
    while origin is not None and origin.word.startswith("sum_all of"):
        origin = origin.before
    return origin is not None and origin.word == WHOLE_AND_PART


def _since(d: Data) -> str:
    return d.origin.word if d.origin is not None else ""


def _the_same(trial: Trial, v: Value) -> bool:
    """Whether a value, or a list of the program, holds only data that all ranks have."""
    found = data(v, deep=True)
    for made in trial.objects(v):
        found += data(trial.result.contents(made), deep=True)
    loaders = {n for d in found for n in d.sources if is_loader(trial.result, trial.result.heap.objects[n])}
    return bool(loaders) and all(d.placement.kind is Kind.UNIFORM for d in found)


def _out_of_order(trial: Trial) -> Iterator[Event]:
    """Where rows of a divided evaluation are put end to end of which each rank has every n-th batch:
    they are in another order than the data.
    """
    for event in trial.result.trace.of("reduce"):
        if event.values["how"] == const("rows") and _in_turns(trial, event.values["given"]):
            yield event


def _in_turns(trial: Trial, v: Value) -> bool:
    """Whether data come from shares of batches, none of which has neighbouring ones."""
    found = data(v, deep=True)
    for made in trial.objects(v):
        found += data(trial.result.contents(made), deep=True)
    shares = [n for d in found for n in d.sources if trial.result.heap.objects[n].name == SHARE]
    return bool(shares) and all(trial.held(n, IN_BLOCKS) == const(False) for n in shares)


def _told(trial: Trial) -> Iterator[Fault]:
    """Numbers that are told, or decide the course, before the ranks have put their parts
    together.
    """
    trial = telling(trial)
    shares = {o.number for o in trial.result.heap.objects.values() if o.name == SHARE}
    # where it is not known what is differentiated, it is not known either of what loader the batches are only measured on
    training_seen = any(True for _ in trial.losses()) and not any(True for _ in trial.unknown_losses())
    for event, d, over in numbers_told(trial):
        seen = True
        main = trial.on_main(event) or event.kind == "save by rank 0"
        if d.origin is not None and d.origin.word == WHOLE_BY_PART and d.gradient == "none":
            words = f"{d.origin.word}, {trial.line(d.origin.node)}: it is as many times too great as there are ranks"
            yield trial.fault(event.node, NAME, words)
            continue
        if (main or event.parted is None) and d.sources & shares - over:
            words = "this is read before the ranks add up their parts"
        elif d.placement.kind is Kind.PER_RANK and not of_samples(d):
            continue  # a time, or a draw
        elif (main or _by_all(event, d)) and d.gradient == "none" and _evaluated(trial, d):
            words = "rank 0 tells the number of its own part"
            seen = training_seen
        else:
            continue
        known = seen and (d.placement.kind in _PARTS or of_samples(d))
        words = f"{words} ({trial.since(d)})"
        yield trial.fault(event.node, NAME, words, established=known)


def _by_all(event: Event, d: Data) -> bool:
    """Whether every rank tells a number that the ranks have not put together."""
    return event.parted is None and not (d.placement.kind is Kind.UNKNOWN and _reduced(d))


def of_own_batches(trial: Trial) -> Iterator[tuple[Event, bool]]:
    """Where a total of the training is told that no reduction has put together, that of the rank's
    own batches, and whether that is known: else it may be one. The training itself does not
    depend on it.
    """
    trial = telling(trial)
    for event, d, over in numbers_told(trial):
        if is_told(trial, d):
            continue
        known = d.placement in ADDED_UP or of_samples(d)
        perhaps = d.placement.kind is Kind.UNKNOWN and not _reduced(d)
        if (known or perhaps) and event.kind != "schedule" and trained_on(trial, d) - over:
            yield event, known


def is_told(trial: Trial, d: Data) -> bool:
    """Whether the user is told of all that holds data which a loop has added up: of variables, entries
    and objects, or of what the loop gives to a function that keeps them.
    """
    objects = trial.result.heap.objects
    held = [objects[n] for n in sorted(d.marks) if objects[n].kind == HOLDER]
    return bool(trial.told and held) and all(trial.told & _names(trial, made) for made in held)


def _names(trial: Trial, holder: Object) -> set[str]:
    """What the holder of a total is called where it is given something, and in the calls that lead there."""
    match holder.node:
        case ast.AugAssign(target=target):  # ``labels += batch.tolist()``
            parts: list[ast.AST] = [target]
        case ast.Assign(targets=targets):
            parts = [*targets]
        case None:
            parts = []
        case node:
            parts = [node]
    for c in trial.result.trace.leading(holder.context):
        if isinstance(call := c.node, ast.Call):
            parts += [call.func.value] if isinstance(call.func, ast.Attribute) else []
            parts += [*call.args, *(k.value for k in call.keywords)]
    # stats["loss"] is told of where stats is
    whole = [n.value for part in parts for n in ast.walk(part) if isinstance(n, ast.Subscript)]
    return {ast.unparse(part) for part in (*parts, *whole)}


def _reduced(d: Data) -> bool:
    """Whether the ranks have put something together of which data are made."""
    origin = d.origin
    while origin is not None and not origin.word.startswith(("sum_all of", "mean_all of")):
        origin = origin.before
    return origin is not None


def of_training(trial: Trial) -> Iterator[tuple[Event, bool]]:
    """Where a mean over the rank's part of a training batch is told, such as its loss, also in a
    text that holds a time beside it; and other numbers of the batch that is being trained on. And
    whether that is known: else something is told there that may be one.
    """
    trial = telling(trial)
    for event, d, over in numbers_told(trial):
        mean = d.placement == placements.MEAN and not d.whole
        beside = d.kind == "text" and d.placement.kind is Kind.PER_RANK and not of_samples(d)
        other = d.placement in ADDED_UP or of_samples(d)  # a tensor is told as it is, too
        known = mean or beside or (other and d.sources & over and not _divided_part(d))
        perhaps = d.kind in _SHOWN and d.placement.kind is Kind.UNKNOWN and d.sources & over and not _reduced(d)
        if (known or perhaps) and event.kind != "schedule" and trained_on(trial, d) and not is_told(trial, d):
            yield event, bool(known)


def of_parts(trial: Trial) -> Iterator[Event]:
    """Where a sum over the rank's part of a training batch is told, divided by a number that is
    that of the whole batch.
    """
    trial = telling(trial)
    for event, d, _ in numbers_told(trial):
        if _divided_part(d) and event.kind != "schedule" and trained_on(trial, d):
            yield event


def of_no_sums(trial: Trial) -> Iterator[tuple[Event, Data]]:
    """Where the ranks put numbers of training batches together that are no sums or means over
    samples: a root or a quotient of those of a rank's part is not that of the batch.
    """
    for event in trial.result.trace.of("reduce"):
        for d in data(event.values["given"]):
            if event.values["how"] != const("rows") and of_samples(d) and trained_on(trial, d):
                yield event, d


def decided_by_part(trial: Trial) -> Iterator[tuple[ast.AST, Origin | None]]:
    """Where numbers of rank 0's part of the training's samples decide, and where these come from:
    what all ranks do, or whether something is saved.
    """
    for event, by in decisions(trial):
        if not isinstance(by, Data) or by.placement.kind not in _AGREED:
            yield event.node, by.origin


def decisions(trial: Trial) -> Iterator[tuple[Event, Data | Parting]]:
    """Where rank 0 decides what all ranks do, or whether something is saved, by what is made of its
    training batches: the numbers, and what parts the ranks.
    """
    for event in trial.result.trace.of("rank 0 decides", "save by rank 0"):
        by: Iterable[Data | Parting] = ()
        if event.kind == "rank 0 decides":
            by = data(event.values["given"])
        elif event.parted is not None and event.parted.certain:
            by = (event.parted,)
        yield from ((event, b) for b in by if divided_loaders(trial, b.sources))


def _divided_part(d: Data) -> bool:
    return d.placement == placements.SUM and d.origin is not None and d.origin.word == PART_BY_WHOLE


def numbers_told(trial: Trial) -> Iterator[tuple[Event, Data, set[int]]]:
    """The numbers that differ between ranks and are told, each with the loaders and shares that
    are gone through there.
    """
    for event in trial.result.trace.of(*TOLD_OF):
        over = {a.object for a in event.values["over"] if isinstance(a, Ref)}
        for d in data(event.values["numbers"]):
            if d.placement.kind not in (*placements.EQUAL, Kind.ROWS):
                yield event, d, over


def of_samples(d: Data) -> bool:
    """Whether data differ between the ranks since each has samples of its own, and not by nature, as a
    time or a draw does, of which texts hold both. What grows with the number of ranks has words of its own.
    """
    return d.placement.kind is Kind.PER_RANK and bool(d.sources) and _since(d) not in BY_NATURE and _since(d) not in _GROWS


def trained_on(trial: Trial, d: Data) -> set[int]:
    """The divided loaders of training batches that data come from."""
    return divided_loaders(trial, d.sources)


def divided_loaders(trial: Trial, sources: frozenset[int]) -> set[int]:
    objects = trial.result.heap.objects
    return {
        n for n in sources & trial.sources
        if is_loader(trial.result, objects[n]) and divided(trial.result, objects[n])
    }  # fmt: skip


def _evaluated(trial: Trial, d: Data) -> bool:
    """Whether data come from divided loaders of which none is trained on."""
    objects = trial.result.heap.objects
    loaders = [o for n in d.sources if (o := objects.get(n)) and is_loader(trial.result, o)]
    return bool(loaders) and all(
        o.number not in trial.sources and divided(trial.result, o) for o in loaders
    )
