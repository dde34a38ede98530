"""Every training pass goes over the rank's share, in batches divided by the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.objects import Object
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import (
    NONE,
    Const,
    Data,
    Differs,
    Ref,
    Setting,
    Unbound,
    Unknown,
    const,
    origins,
)
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.notes import SHARE
from dpmigrate.judge.redrawn import LENGTHS, NUMBERS
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.batches import SAMPLERS, SHARED, divided
from dpmigrate.library.dataset_samples import OWN_ORDER
from dpmigrate.library.natures import DRAW

NAME = "training passes are sharded"
#: by what each rank has certainly put a data set together for itself
_HOW = {DRAW: "drawn numbers", LENGTHS: "what differs between processes"}


def faults(trial: Trial) -> Iterator[Fault]:
    """Loaders of training batches without a share of the rank's own."""
    found = list(trial.loaders())
    for made in found:
        words = _wrong(trial, made)
        if words:
            yield trial.fault(made.node, NAME, words, established=_known(trial, made))
    shared = _shared(trial)
    for event in trial.result.trace.of("judge pass"):
        loaders = [o for o in trial.objects(event.values["loader"]) if o.number in trial.sources | shared]
        why = {a.value for a in event.values["apart"] if isinstance(a, Const) and a.value}
        if loaders and why:
            known = next((how for word, how in _HOW.items() if word in why), None)
            how = known or ("drawn numbers" if NUMBERS in why else "the order of a set")
            words = f"each rank has put the data set together for itself, by {how}: the shares do not fit"
            yield trial.fault(event.node, NAME, words, established=known is not None)
    for event in trial.result.trace.of(OWN_ORDER):
        if any(divided(trial.result, o) for o in trial.objects(event.values["loader"])):
            words = "the data set gives its next sample, whichever it is asked for: a sampler cannot divide it"
            yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("batch divided"):
        if event.values["size"] == const(1):
            words = "batches of one sample cannot be divided: apply with --batch per-rank"
            yield trial.fault(event.node, NAME, words)
    yield from _repeating(trial)
    before = trial.original_loaders()
    if len(before) == len(found):
        for old, new in zip(before, found, strict=True):
            words = _order(trial, old, new)
            if words:
                yield trial.fault(new.node, NAME, words)
    if not found and any(True for _ in trial.losses()):
        node, _ = next(iter(trial.losses()))
        words = "the loader of the training batches is not seen"
        yield trial.fault(node, NAME, words, established=False)


def _shared(trial: Trial) -> set[int]:
    """The loaders of which each rank takes its share of the batches."""
    shares = [o for o in trial.result.heap.objects.values() if o.name == SHARE]
    assert isinstance(trial.result, Judged)
    return {n for o in shares for n in trial.result.gone_through((Ref(o.number),))}


def _repeating(trial: Trial) -> Iterator[Fault]:
    """Samplers that repeat samples where their loader drops the last batch: an epoch may have a batch
    more than on one process.
    """
    for made in trial.loaders():
        dropping = trial.held(made.number, "drop_last") == const(True)
        if not dropping or trial.held(made.number, "dealt"):
            continue
        for sampler in trial.objects(trial.held(made.number, "sampler")):
            filled = trial.held(sampler.number, "drop_last") in ((), const(False))
            if sampler.name == "DistributedSampler" and filled:
                words = (
                    f"the sampler of {made.name}(…) repeats samples to share them evenly, where the loader "
                    "drops the last batch: give the sampler drop_last=True as well"
                )
                yield trial.fault(made.node, NAME, words)


def _known(trial: Trial, made: Object) -> bool:
    """Whether all is known of a loader that decides how it is divided."""
    fields = ("sampler", "batch_sampler", "batch_size", "shuffle", "dealt")
    return not any(isinstance(a, Unknown) for f in fields for a in trial.held(made.number, f))


def _order(trial: Trial, old: Object, new: Object) -> str:
    """What is wrong with the order of a loader, against that of the original."""
    assert trial.original is not None
    heap = trial.original.heap
    held = heap.read((old.number, "shuffle")) or const(False)
    shuffled = tuple(a for a in held if not isinstance(a, Unbound))
    own = heap.read((old.number, "sampler")) or heap.read((old.number, "batch_sampler")) or NONE
    if own != NONE or trial.held(new.number, "dealt"):
        return ""
    for sampler in trial.objects(trial.held(new.number, "sampler")):
        now = trial.held(sampler.number, "shuffle") or const(True)
        if sampler.name != "DistributedSampler":
            continue
        if shuffled == const(False) and now != const(False):
            return "the original goes through the samples in their order, this loader shuffles"
        if shuffled == const(True) and now != const(True):
            return "the original shuffles, this loader may not"
        chosen = bool(shuffled) and all(isinstance(a, Setting) for a in shuffled)
        if chosen and any(isinstance(a, Const) for a in now):
            return "the original shuffles where that is chosen, this loader does not ask"
    return ""


def _wrong(trial: Trial, made: Object) -> str:
    """What is wrong with a loader of training batches, on any way."""
    dealt = trial.held(made.number, "dealt")
    if dealt == const(SHARED):
        return ""
    if dealt:
        return f"training goes over {made.name}(…), which is for evaluations"
    sampler = trial.held(made.number, "sampler") or trial.held(made.number, "batch_sampler")
    own = trial.objects(sampler)
    all_seen = "every rank would train on the whole data set"
    apart = next((a for a in sampler if isinstance(a, Differs) and a.origin is not None), None)
    if own and apart is not None and apart.origin is not None:  # what it is made of, each rank has for itself
        first = list(origins(apart.origin))[-1]
        since = f"{first.word}, {trial.line(first.node)}"
        return f"not all ranks may have the same loader here: they part by what differs: {since}"
    if not own or len(own) < len(sampler):
        return f"{all_seen}: the loader has no sampler that divides it"
    for held in own:
        if held.name not in SAMPLERS:
            return f"{all_seen}: its sampler is {held.name}"
    if trial.held(made.number, "shuffle") not in ((), const(False), NONE):
        return "a loader with a sampler cannot shuffle as well"
    size = trial.held(made.number, "batch_size")
    whole = any(not isinstance(a, Data) or a.placement.kind is not Kind.SIZE for a in size)
    if trial.divided and whole:
        return "every rank would take whole batches: the batch size is not divided"
    return ""
