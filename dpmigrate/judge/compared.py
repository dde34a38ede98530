"""Numbers of samples of one rank are held against none that is meant for all ranks together.

The size of a rank's batch is never that of the global one, and what a rank has counted over its batches
comes to a limit as many times later as there are ranks. All ranks do the same then, so that nothing else
notices. A rank's batch is compared with ``ddp.local_batch(size)``, and counts are multiplied by
``ddp.world_size()``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.execution.values import Const, const, data
from dpmigrate.judge import totals
from dpmigrate.judge.accumulating import TOTAL
from dpmigrate.judge.comparing import COMPARED
from dpmigrate.judge.trial import Fault, Trial

NAME = "numbers of samples are compared with those of as many ranks"


def faults(trial: Trial) -> Iterator[Fault]:
    """Counts of a rank's training samples that are held against a limit; sizes of its batches that
    are held against what ``ddp.local_batch`` divides.
    """
    calls = (e.node for e in trial.result.trace.of("judge runtime") if e.values["name"] == const("local_batch"))
    divided = {ast.unparse(n.args[0]) for n in calls if isinstance(n, ast.Call) and n.args}
    for event in trial.result.trace.of(COMPARED):
        whole = {a.value for a in event.values["limit"] if isinstance(a, Const)} <= divided
        for d in data(event.values["sizes"]):
            if not totals.trained_on(trial, d):
                continue
            if any(trial.result.heap.objects[n].kind == TOTAL for n in d.marks):
                words = f"how many samples one rank has had is compared here with a number for all ({trial.since(d)})"
                yield trial.fault(event.node, NAME, words)
            elif whole and d.placement == placements.size(1):
                words = "the size of one rank's batch is compared here with that of the global batch"
                yield trial.fault(event.node, NAME, words)
