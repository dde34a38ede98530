"""Every parameter of a wrapped model gets a gradient of some loss, or ``find_unused`` is written.

That is less than DDP wants, which is a gradient in every backward: models of which one loss
reaches one part and another loss the rest are not told. A parameter without one makes
DistributedDataParallel stop in the next forward
(https://docs.pytorch.org/docs/stable/notes/ddp.html).
"""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.execution.values import Const, const
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.library.layers import BARE

NAME = "every parameter of a wrapped model is used"


def faults(trial: Trial) -> Iterator[Fault]:
    """Layers of wrapped models that no loss reaches."""
    objects = trial.result.heap.objects
    reached: dict[int, set[int]] = {}
    for _, loss in trial.losses():
        for number in loss.reached:
            if objects[number].kind == "wrapper":
                # model.parameters() in a loss comes to all that the model holds
                whole = (trial.owned(n) for n in loss.reached if objects[n].kind != "wrapper")
                reached.setdefault(number, set()).update(*whole)
    for wrapper, seen in sorted(reached.items()):
        if trial.held(wrapper, "find_unused") not in ((), const(False)):
            continue
        for number in sorted(trial.owned(wrapper) - seen):
            made = objects[number]
            leaf = made.kind == "parameter" or (made.kind == "module" and made.name not in BARE)
            frozen = Const("bool", True) in trial.held(number, "mode frozen")
            if leaf and not frozen and len(trial.owned(number)) == 1:
                yield trial.fault(
                    objects[wrapper].node, NAME,
                    f"no loss reaches {made.name} (made in {trial.line(made.node)}): "
                    "DDP would stop in the second step",
                )  # fmt: skip
                break
