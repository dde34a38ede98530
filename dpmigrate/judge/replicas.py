"""What the ranks have in common stays the same: parameters, and the settings of optimizers.

DistributedDataParallel sends rank 0's parameters to all ranks once, in the wrap, and averages gradients
from then on (https://docs.pytorch.org/docs/stable/notes/ddp.html). What a rank writes into a
parameter by itself, and a learning rate of its own, make another model of its replica.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Data, Differs, Origin, Value, const, data, origins
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.notes import is_loader
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.batch_state import RESCALED
from dpmigrate.library.batches import divided
from dpmigrate.library.natures import DRAW

NAME = "the replicas of a model stay the same"
#: what is the same on every rank, or not known
_ALIKE = (*placements.EQUAL, Kind.UNKNOWN)


def faults(trial: Trial) -> Iterator[Fault]:
    """Parameters of wrapped models that are written, and optimizers that are set, by what differs
    between ranks.
    """
    wrapped = {
        n for e in trial.result.trace.of("wrap") for o in trial.objects(e.values["module"])
        for n in trial.owned(o.number)
    }  # fmt: skip
    for event in trial.result.trace.of("in place", "attribute", "item"):
        target = event.values["target" if event.kind == "in place" else "owner"]
        if event.kind == "attribute" and event.values["name"] not in (const("data"), const("requires_grad")):
            continue
        given = _own(event.values["new"]) or (_own(event.values["key"]) if event.kind == "item" else [])
        parted = event.parted
        if parted is not None and parted.certain and not trial.on_main(event):
            if _divided(trial, event, parted.sources, parted.origin) and any(_replica(d, wrapped) for d in data(target)):
                words = f"some ranks write into a parameter, others do not: {_told(trial, parted.origin)}"
                yield trial.fault(event.node, NAME, words)
                continue
        if given and any(_replica(d, wrapped) for d in data(target)):
            words = f"each rank writes values of its own into a parameter: {trial.since(given[0])}"
            yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("requires grad"):
        given = _own(event.values["told"])
        owned = {n for o in trial.objects(event.values["target"]) for n in trial.owned(o.number)}
        if given and (owned & wrapped or any(_replica(d, wrapped) for d in data(event.values["target"]))):
            words = f"each rank chooses for itself which parameters are trained: {trial.since(given[0])}"
            yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of(RESCALED):
        given = _own(event.values["given"])
        weight = event.values["weight"]
        own = {n for o in trial.objects(weight) for n in trial.owned(o.number)}
        if given and (own & wrapped or any(_replica(d, wrapped) for d in data(weight))):
            words = "max_norm scales the rows of a weight that a rank's samples ask for, in place: the ranks would have other weights"
            yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("load state"):
        yield from _loaded(trial, event)
    for event in trial.result.trace.of("step", "schedule"):
        given = _own(_steered(event))
        if given:
            words = f"each rank sets its optimizer by a number of its own: {trial.since(given[0])}"
            yield trial.fault(event.node, NAME, words)


def _loaded(trial: Trial, event: Event) -> Iterator[Fault]:
    """States that ranks have chosen by numbers of their own, or that some of them load alone."""
    if trial.on_main(event):
        return
    given, parted = event.values["given"], event.parted
    differs = (a for a in given if isinstance(a, Differs) and _divided(trial, event, a.sources, a.origin))
    chosen = next((a.origin for a in differs if a.origin), None)
    own = next((d for d in _own(given) if _divided(trial, event, d.sources, d.origin)), None)
    since = _told(trial, chosen) if chosen is not None else trial.since(own) if own else ""
    if since:
        words = f"each rank loads a state that it has chosen for itself: {since}"
        yield trial.fault(event.node, NAME, words)
    elif parted is not None and parted.certain and _divided(trial, event, parted.sources, parted.origin):
        words = f"some ranks load a state, others do not: {_told(trial, parted.origin)}"
        yield trial.fault(event.node, NAME, words)


def _divided(trial: Trial, event: Event, sources: frozenset[int], origin: Origin | None) -> bool:
    """Whether data differ between ranks, and the training goes on with that: where they are made of batches alone, of those
    of a loader that the ranks share. Of another loader each rank goes through all batches, but may draw numbers of its own
    for them: dropout in a model that is evaluated as it trains.
    """
    loaders = [o for n in sources if is_loader(trial.result, o := trial.result.heap.objects[n])]
    if len(loaders) < len(sources) or not loaders or any(divided(trial.result, o) for o in loaders):
        return True
    assert isinstance(trial.result, Judged)
    return event.number < trial.result.trained and any(o.word.startswith(DRAW) for o in origins(origin))


def _told(trial: Trial, origin: Origin) -> str:
    return f"{origin.word}, {trial.line(origin.node)}"


def _own(v: Value) -> list[Data]:
    """The data in a value that are certainly not those of the other ranks."""
    return [d for d in data(v) if d.placement.kind not in _ALIKE]


def _replica(target: Data, wrapped: set[int]) -> bool:
    """Whether data are a parameter of a wrapped model, and not what a layer has made."""
    return target.placement.kind is Kind.UNIFORM and not target.reached.isdisjoint(wrapped)


def _steered(event: Event) -> Value:
    """What steers an optimizer: its settings at a step, the number that its scheduler is given."""
    return event.values["settings" if event.kind == "step" else "metric"]
