"""Every training pass has an order of its own: its sampler is told the epoch before the iterator
is made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.trace import Event
from dpmigrate.execution.values import NONE, Const, Ref, Value, const
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
            any_of_them = _whichever(trial, event)
            words = {"told" if (a,) == any_of_them else a.value for a in said if isinstance(a, Const)}
            if event.values["told"] == any_of_them:
                words = {"told"}
            told.setdefault(event.node, set()).update(words)
            if words == {"fresh"} and any(_made_again(trial, n) for loader in those for n, _ in samplers(trial.result, Ref(loader))):
                sentence = "a sampler with the same seed is made for each of these passes, and none is told the epoch: each has the order of the first"
                yield trial.fault(event.node, NAME, sentence)
            if const(True)[0] in event.values["again"] and "told" in words:
                yield trial.fault(event.node, NAME, "the sampler is told the same epoch before each of these passes")
    for node, words in told.items():
        # one pass alone needs no word; a first one that is not told, and later ones that are,
        # tell it late
        if "used" in words or {"fresh", "told"} <= words:
            sentence = "the sampler is not told the epoch before this pass begins"
            yield trial.fault(node, NAME, sentence)


def _made_again(trial: Trial, sampler: int) -> bool:
    """Whether a place makes samplers that shuffle the same data with one seed that is given, for one
    model: where the model is made anew as well, each of its trainings begins with the first order, and
    so may all passes of a program whose loaders have generators of their own.
    """
    before = trial.original.heap if trial.original is not None else None
    if before is not None and any(before.read((o.number, "generator")) for o in before.objects.values() if o.kind == "loader"):
        return False
    anew = any(o.many for e in trial.result.trace.of("wrap") for o in trial.objects(e.values["module"]))
    made = trial.result.heap.objects[sampler]
    data = trial.objects(trial.held(sampler, "data_source"))
    seeded = trial.held(sampler, "seed") not in ((), NONE)
    shuffles = trial.held(sampler, "shuffle") != const(False)
    return made.many and not anew and seeded and shuffles and bool(data) and not any(o.many for o in data)


def _whichever(trial: Trial, event: Event) -> Value:
    """The mark of all samplers that the loader of a pass may have, one of which was told."""
    loaders = [a for a in event.values["loader"] if isinstance(a, Ref)]
    return one_of({n for a in loaders for n, _ in samplers(trial.result, a)})
