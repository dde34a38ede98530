"""While it trains each rank draws random numbers of its own: dropout, noise, augmentation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.objects import Object
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Ref, const, data, origins, placement_of
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.notes import DROPPING, is_loader
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.batches import divided
from dpmigrate.library.files import MADE_BEFORE
from dpmigrate.library.streams import GENERATOR

NAME = "each rank draws its own random numbers while it trains"
SEEDS = "until training begins all ranks draw the same random numbers"


def faults(trial: Trial) -> Iterator[Fault]:
    """Draws in training from a stream that is the same on all ranks, and seeds of a rank's own
    before that: the ranks would build other models and split the data otherwise.
    """
    for event in trial.result.trace.of("seed"):
        given = event.values["given"]
        apart = placement_of(given).kind not in placements.EQUAL
        if event.values["own"] == const(False) and apart and not _in_turn(event):
            known = any(d.placement.kind is placements.Kind.PER_RANK for d in data(given))
            words = "each rank seeds its random numbers by a number of its own"
            yield trial.fault(event.node, SEEDS, words, established=known)
    assert isinstance(trial.result, Judged)
    for event in trial.result.trace.of("draw", "forward"):
        after = event.number > trial.result.trained  # what is drawn there trains nothing
        if const(True)[0] in event.values["alike"] and not after and _draws(trial, event):
            generator = const(GENERATOR) == event.values.get("stream")
            seeded = " from a generator that has one seed on all ranks" if generator else ""
            words = f"the ranks draw the same random numbers here{seeded}"
            # a rule says so where it leaves the streams equal on purpose
            yield trial.fault(event.node, NAME, words, established=False)
    for event in trial.backwards:
        if event.values["alike"] == const(True):
            words = "training inside same_stream(): every rank draws the same numbers for its samples"
            yield trial.fault(event.node, NAME, words)


def _in_turn(event: Event) -> bool:
    """Whether a number is a rank's own by what rank 0 makes before the others come: behind
    ``main_first()`` all go on with rank 0's streams.
    """
    apart = [d for d in data(event.values["given"]) if d.placement.kind not in placements.EQUAL]
    whole = event.parted is not None and event.parted.origin.word == MADE_BEFORE
    return whole and all(o.word == MADE_BEFORE for d in apart for o in list(origins(d.origin))[-1:])


def in_evaluation(trial: Trial) -> Iterator[ast.AST]:
    """Where numbers are drawn for the samples of an evaluation that is divided over the ranks: the
    ranks draw others than one process does.
    """
    for event, loaders in _over_loaders(trial):
        evaluates = loaders and all(o.number not in trial.sources for o in loaders)
        if evaluates and any(divided(trial.result, o) for o in loaders) and const(True)[0] in event.values["of a sample"]:
            yield event.node


def in_full_evaluation(trial: Trial) -> Iterator[ast.AST]:
    """Where each rank draws other numbers in an evaluation that every rank makes in full."""
    for event, loaders in _over_loaders(trial):
        full = any(o.number not in trial.sources and not divided(trial.result, o) for o in loaders)
        if full and event.values["own"] == const(True) and event.values["alike"] != const(True):
            yield event.node


def _over_loaders(trial: Trial) -> Iterator[tuple[Event, list[Object]]]:
    """The draws, each with the loaders that are gone through there."""
    for event in trial.result.trace.of("draw"):
        over = {a.object for a in event.values["over"] if isinstance(a, Ref)}
        yield event, [o for n in over if is_loader(trial.result, o := trial.result.heap.objects[n])]


def _draws(trial: Trial, event: Event) -> bool:
    """Whether numbers are drawn that the ranks should not share: by torch, for samples, or by a layer
    that drops while it trains. Single numbers that the program draws from Python's and NumPy's
    streams, or from its own generators, may decide what all ranks do.
    """
    if event.kind == "draw":
        torch = const("torch") == event.values["stream"]
        return torch or const(True)[0] in event.values["of a sample"]
    names = (
        trial.result.heap.objects[a.object].name
        for a in event.values["module"]
        if isinstance(a, Ref)
    )
    return any(n.startswith(DROPPING) for n in names)
