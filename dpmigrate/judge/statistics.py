"""An evaluation that is divided among the ranks uses one set of running statistics.

DistributedDataParallel makes the buffers of all ranks those of rank 0 in the forward of the wrapper,
before each rank's BatchNorm updates its own
(https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html,
``broadcast_buffers``). After the last training batch they differ, and the ranks' parts of an
evaluation through the bare model would be those of different models.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.objects import Object
from dpmigrate.execution.values import Data, Ref, const, data, origins
from dpmigrate.judge.notes import SHARE, is_loader
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.batches import divided
from dpmigrate.library.natures import OWN_STATISTICS

NAME = "a divided evaluation uses one set of running statistics"


def faults(trial: Trial) -> Iterator[Fault]:
    """Forward passes of bare models over a rank's part, with statistics of the rank's own."""
    for event in trial.result.trace.of("judge statistics"):
        over = {a.object for a in event.values["over"] if isinstance(a, Ref)}
        parts = [d for d in data(event.values["given"]) if _of_a_part(trial, d, over)]
        own = event.values["own"]
        if parts and const(True)[0] in own:
            words = "each rank evaluates with running statistics of its own: sync_buffers() is missing"
            known = const(False)[0] not in own
            yield trial.fault(event.node, NAME, words, established=known)
    for event in trial.result.trace.of("reduce"):
        found = (o for d in data(event.values["given"]) for o in origins(d.origin))
        own_of = next((o for o in found if o.word == OWN_STATISTICS), None)
        if own_of is not None:
            words = "each rank has evaluated with running statistics of its own: sync_buffers() is missing"
            yield trial.fault(own_of.node, NAME, words)


def _of_a_part(trial: Trial, d: Data, over: set[int]) -> bool:
    """Whether data come from batches of which each rank has its part, and goes through it. Those of
    the training itself are no evaluation: a look at the current batch.
    """
    looked_at = d.sources & over - trial.sources
    return any(_is_part(trial, trial.result.heap.objects[n]) for n in looked_at)


def _is_part(trial: Trial, made: Object) -> bool:
    return made.name == SHARE or (is_loader(trial.result, made) and divided(trial.result, made))
