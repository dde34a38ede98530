"""What a forward of a wrapper gave is differentiated once.

DistributedDataParallel averages the gradients of the first backward that comes after a forward;
what a second one adds stays each rank's own, and the ranks diverge
(https://docs.pytorch.org/docs/stable/notes/ddp.html). ``ddp.wrap`` averages those of each.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.judge.notes import COMPLETED, USED
from dpmigrate.judge.trial import Fault, Trial

NAME = "one backward follows a forward of a wrapper"


def faults(trial: Trial) -> Iterator[Fault]:
    """Backward passes through wrappers of which every one comes after another backward; such within others."""
    for event in trial.result.trace.of("judge reentrant"):
        words = "this differentiates within the backward pass, past the averaging of gradients: checkpoint(…, use_reentrant=False)"
        yield trial.fault(event.node, NAME, words)
    for event in trial.result.trace.of("judge backward"):
        for number, passed in event.values.items():
            made = trial.result.heap.objects[int(number)]
            if passed == USED and made.name not in COMPLETED:
                yield trial.fault(
                    event.node, NAME,
                    f"this goes through the model wrapped in {trial.line(made.node)} again, "
                    "without a forward in between: the gradients of this backward are not averaged",
                )  # fmt: skip
