"""What all ranks must do together is reached by all of them, equally often."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import const
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.runtime_reductions import OF_CRITERION

NAME = "all ranks reach what they do together"


def faults(trial: Trial) -> Iterator[Fault]:
    """Collectives, backward passes and steps where ranks may have gone different ways, and
    collectives where the ranks take turns.
    """
    for event in trial.result.trace.of("collective", "backward", "step", "forward"):
        parted = event.parted
        if event.kind == "collective" and event.values["in turn"] == const(True):
            words = "rank 0 waits here for the others, which wait until it has left ddp.main_first()"
            yield trial.fault(event.node, NAME, words)
        if parted is not None and _together(trial, event):
            some = (
                "some ranks do not come here" if parted.certain else "some ranks may not come here"
            )
            why = f"{parted.origin.word}, {trial.line(parted.origin.node)}"
            fault = trial.fault(event.node, NAME, f"{some}: {why}", established=parted.certain)
            yield replace(fault, of_gradients=event.kind == "collective" and event.values["name"] == const(OF_CRITERION))


def together(trial: Trial) -> frozenset[tuple[int, int]]:
    """The places of the collectives to which all ranks come whenever one of them does."""
    places: dict[tuple[int, int], bool] = {}
    for event in trial.result.trace.of("collective"):
        if isinstance(event.node, ast.expr):
            place = event.node.lineno, event.node.col_offset
            places[place] = places.get(place, True) and event.parted is None
    return frozenset(place for place, alike in places.items() if alike)


def _together(trial: Trial, event: Event) -> bool:
    """Whether the event is one for all ranks: a collective, or training of what is wrapped."""
    if event.kind == "forward":
        # a wrapper sends its buffers in forward, also in an evaluation
        return any(o.kind == "wrapper" for o in trial.objects(event.values["module"]))
    return event.kind == "collective" or bool(trial.trained)
