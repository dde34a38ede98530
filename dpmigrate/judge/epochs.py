"""Every training pass has an order of its own: its sampler is told the epoch before the iterator
is made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import Const, Ref, Value, const
from dpmigrate.judge.notes import one_of, samplers, told_of
from dpmigrate.judge.trial import Fault, Trial
from dpmigrate.judge.watching import peeks

NAME = "every pass has an order of its own"


def faults(trial: Trial) -> Iterator[Fault]:
    """Training passes that may begin without a word of the epoch since the last one."""
    training = {o.number for o in trial.loaders()}
    # turns of a loop that is gone through one by one are one place
    told: dict[ast.AST, set[str]] = {}
    for event in trial.result.trace.of("judge pass"):
        those = training & {o.number for o in trial.objects(event.values["loader"])}
        if those and event.node not in peeks(trial.result.program):
            said = [a for n in those for a in event.values[told_of(n)]]
            words = {a.value for a in said if isinstance(a, Const)}
            if event.values["told"] == _whichever(trial, event):
                words = {"told"}
            told.setdefault(event.node, set()).update(words)
            if const(True)[0] in event.values["again"] and "told" in words:
                yield trial.fault(event.node, NAME, "the sampler is told the same epoch before each of these passes")
    for node, words in told.items():
        # one pass alone needs no word; a first one that is not told, and later ones that are,
        # tell it late
        if "used" in words or {"fresh", "told"} <= words:
            sentence = "the sampler is not told the epoch before this pass begins"
            yield trial.fault(node, NAME, sentence)


def _whichever(trial: Trial, event: Event) -> Value:
    """The mark of all samplers that the loader of a pass may have, one of which was told."""
    loaders = [a for a in event.values["loader"] if isinstance(a, Ref)]
    return one_of({n for a in loaders for n, _ in samplers(trial.result, a)})
