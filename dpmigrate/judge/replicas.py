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
from dpmigrate.execution.values import Data, Value, const, data
from dpmigrate.judge.trial import Fault, Trial

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
        if event.kind == "attribute" and event.values["name"] != const("data"):
            continue
        given = _own(event.values["new"])
        if given and any(_replica(d, wrapped) for d in data(target)):
            words = f"each rank writes values of its own into a parameter: {trial.since(given[0])}"
            yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("step", "schedule"):
        given = _own(_steered(event))
        if given:
            words = f"each rank sets its optimizer by a number of its own: {trial.since(given[0])}"
            yield trial.fault(event.node, NAME, words)


def _own(v: Value) -> list[Data]:
    """The data in a value that are certainly not those of the other ranks."""
    return [d for d in data(v) if d.placement.kind not in _ALIKE]


def _replica(target: Data, wrapped: set[int]) -> bool:
    """Whether data are a parameter of a wrapped model, and not what a layer has made."""
    return target.placement.kind is Kind.UNIFORM and not target.reached.isdisjoint(wrapped)


def _steered(event: Event) -> Value:
    """What steers an optimizer: its settings at a step, the number that its scheduler is given."""
    return event.values["settings" if event.kind == "step" else "metric"]
