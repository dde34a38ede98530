"""Numbers that are read as those of the whole data are; losses are means over the global batch."""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Data, data, placement_of
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.judge.watching import is_loader
from dpmigrate.library.runtime import divided

#: what a reduction makes whole
_PARTS = (Kind.PARTIAL, Kind.SIZE, Kind.RATIO)
_OWN = (*_PARTS, Kind.PER_RANK)
NAME = "losses and totals are those of all samples"


def faults(trial: Trial) -> Iterator[Fault]:
    """Losses that are no mean over the ranks, and reductions of what is no such part."""
    for node, loss in trial.losses():
        if loss.placement != placements.MEAN and loss.placement.kind not in (
            *placements.EQUAL,
            Kind.PER_RANK,  # what is coupled is said by a rule, and may be kept on purpose
        ):
            known = loss.placement.kind is not Kind.UNKNOWN
            yield trial.fault(node, NAME, f"the loss is {trial.since(loss)}", established=known)
    shares = {o.number for o in trial.result.heap.objects.values() if o.name == "shard"}
    for event in trial.result.trace.of("print", "write", "schedule"):
        if event.parted is not None:
            continue  # progress, in the loop over the share
        for v in event.values.values():
            for d in data(v, deep=True):
                part = d.placement.kind not in (*placements.EQUAL, Kind.ROWS)
                if part and d.sources & shares:
                    words = f"this is read before the ranks add up their parts ({trial.since(d)})"
                    known = d.placement.kind in _PARTS
                    yield trial.fault(event.node, NAME, words, established=known)
    yield from _of_rank_0(trial)
    for event in trial.result.trace.of("reduce"):
        how = event.values["how"][0].value  # type: ignore[union-attr]
        given = placement_of(event.values["given"])
        if how == "sum" and given.kind is Kind.UNIFORM:
            yield trial.fault(
                event.node, NAME, "a number that is the same on every rank is added up"
            )
        elif how == "sum" and given == placements.MEAN:
            yield trial.fault(event.node, NAME, "means of the ranks are added up")
        elif how == "mean" and given == placements.SUM:
            yield trial.fault(event.node, NAME, "sums of the ranks are averaged")


def _of_rank_0(trial: Trial) -> Iterator[Fault]:
    """Results of an evaluation of which rank 0 alone writes its own part."""
    for event in trial.result.trace.of("print", "write", "schedule"):
        if not trial.on_main(event):
            continue
        for v in event.values.values():
            for d in data(v, deep=True):
                if d.gradient == "none" and _evaluated(trial, d) and d.placement.kind in _OWN:
                    words = f"rank 0 writes the number of its own part ({trial.since(d)})"
                    yield trial.fault(event.node, NAME, words)


def _evaluated(trial: Trial, d: Data) -> bool:
    """Whether data come from divided loaders of which none is trained on."""
    objects = trial.result.heap.objects
    loaders = [o for n in d.sources if (o := objects.get(n)) and is_loader(trial.result, o)]
    return bool(loaders) and all(
        o.number not in trial.sources and divided(trial.result, o) for o in loaders
    )
