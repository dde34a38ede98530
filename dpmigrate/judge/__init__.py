"""Judges a migrated program by executing it on paper: what must hold before anything is written.

Each module holds one invariant: a function ``faults`` from a ``Trial`` to what breaks it. The judge
reads the trace alone and knows neither facts nor rules, so that a fault in those cannot hide here.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.engine import Execution
from dpmigrate.judge import (
    backwards,
    bound,
    epochs,
    files,
    group,
    parted,
    sharded,
    streams,
    totals,
    unused,
    wrapped,
)
from dpmigrate.judge.trial import Fault, Trial, executed
from dpmigrate.program import Program

_INVARIANTS = (
    bound, group, wrapped, sharded, epochs, streams, parted, totals, unused, backwards, files,
)  # fmt: skip


def faults(
    result: Program, original: Execution | None = None, *, divided: bool = True
) -> Iterator[Fault]:
    """What would be wrong with a migrated program; ``original`` is the program before, executed,
    where there is one. ``divided``: batch sizes are those of all ranks together, and not of each.

    What the engine cannot establish is a fault as well: it says which knowledge was missing.
    """
    case = Trial(executed(result), original, divided)
    for invariant in _INVARIANTS:
        yield from invariant.faults(case)


__all__ = ["Fault", "Trial", "executed", "faults"]
