"""The process group is there for all that needs it, and ended where the program ends."""

from __future__ import annotations

from collections.abc import Iterator

from dpmigrate.contract import COLLECTIVE
from dpmigrate.execution.values import Const, Value, const
from dpmigrate.judge.notes import BEFORE, GROUP
from dpmigrate.judge.trial import Fault, Trial

NAME = "the process group is set up first and ended last"


def faults(trial: Trial) -> Iterator[Fault]:
    """Calls of the runtime outside of the life of the group; a group that is not ended."""
    for event in trial.result.trace.of("judge runtime"):
        (word,) = _words(event.values["name"])[:1]
        group = set(_words(event.values["group"]))
        if word == "setup":
            if "up" in group:
                yield trial.fault(event.node, NAME, "setup() is called a second time")
        elif event.values["working"] == const(True) and word in COLLECTIVE:
            words = f"{word}() is called where a DataLoader puts batches together: workers are no ranks"
            yield trial.fault(event.node, NAME, words)
        elif "before" in group and word != "device":
            yield trial.fault(event.node, NAME, f"{word}() is called before setup()")
        elif "down" in group:
            yield trial.fault(event.node, NAME, f"{word}() is called after cleanup()")
    for event in trial.result.trace.of("judge own ranks"):
        words = "the program divides its work by itself here, beside the launcher"
        yield trial.fault(event.node, NAME, words)
    last = set(_words(trial.result.heap.read(GROUP) or BEFORE))
    if "up" in last:
        # a process that ends otherwise, as by an exception, ends its group as well
        words = "cleanup() is not called on every way to the end"
        yield trial.fault(None, NAME, words, established=False)
    if last == {"before"}:
        yield trial.fault(None, NAME, "setup() is not called")


def _words(v: Value) -> list[str]:
    return [a.value for a in v if isinstance(a, Const)]
