"""While it trains each rank draws random numbers of its own: dropout, noise, augmentation."""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Ref, const, data, placement_of
from dpmigrate.judge.trial import Fault, Trial

NAME = "each rank draws its own random numbers while it trains"
SEEDS = "until training begins all ranks draw the same random numbers"
_DRAWING = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "RReLU")


def faults(trial: Trial) -> Iterator[Fault]:
    """Draws in training from a stream that is the same on all ranks, and seeds of a rank's own
    before that: the ranks would build other models and split the data otherwise.
    """
    for event in trial.result.trace.of("seed"):
        given = event.values["given"]
        apart = placement_of(given).kind not in placements.EQUAL
        if event.values["own"] == const(False) and apart:
            known = any(d.placement.kind is placements.Kind.PER_RANK for d in data(given))
            words = "each rank seeds its random numbers by a number of its own"
            yield trial.fault(event.node, SEEDS, words, established=known)
    for event in trial.result.trace.of("draw", "forward"):
        if const(True)[0] in event.values["alike"] and _draws(trial, event):
            seeded = " from a generator that has one seed on all ranks" if "same" in event.values else ""
            words = f"the ranks draw the same random numbers here{seeded}"
            # a rule says so where it leaves the streams equal on purpose
            yield trial.fault(event.node, NAME, words, established=False)
    for event in trial.backwards:
        if event.values["alike"] == const(True):
            words = "training inside same_stream(): every rank draws the same numbers for its samples"
            yield trial.fault(event.node, NAME, words)


def _draws(trial: Trial, event: Event) -> bool:
    """Whether numbers are drawn that the ranks should not share: by a function, or by a layer that
    drops while it trains. What the program itself draws from Python's and NumPy's streams may
    decide what all ranks do; what a data set draws is about the sample alone.
    """
    if event.kind == "draw":
        if "same" in event.values:
            return True
        return const("torch") == event.values["stream"] or const(True) == event.values["of a sample"]
    names = (
        trial.result.heap.objects[a.object].name
        for a in event.values["module"]
        if isinstance(a, Ref)
    )
    return any(n.startswith(_DRAWING) for n in names)
