"""What a step's loss is does not go by a number that each rank has drawn for itself.

In one process a draw like ``random.choice(tasks)`` holds for the whole batch. Where each rank goes by
one of its own, the step mixes the tasks, and sums over the turns have other counts on each rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution import placements
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.totals import by_a_draw
from dpmigrate.judge.trial import Fault, Trial

NAME = "a draw that says what the loss is, is one for all ranks"


def faults(trial: Trial) -> Iterator[Fault]:
    """Tests of numbers that each rank draws for itself, by which it has another loss."""
    assert isinstance(trial.result, Judged)
    for test in trial.result.chosen:
        words = "the loss goes by a number that each rank draws for itself: ddp.from_main makes it one"
        yield trial.fault(test, NAME, words)


def draws(trial: Trial) -> tuple[ast.AST, ...]:
    """Tests by such numbers of what a step makes of its batch, and whether its numbers are finite, where
    a loss is not shown to be a mean over the samples, each with what its rank has drawn.
    """
    assert isinstance(trial.result, Judged)
    if all(d.placement == placements.MEAN or by_a_draw(d) for _, d in trial.losses()):
        return ()
    return tuple({**trial.result.chosen, **trial.result.chosen_for_batches, **trial.result.finite})
