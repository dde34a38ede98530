"""What fails on one rank while it trains ends all of them: no handler goes on, or trains again, alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.values import const
from dpmigrate.judge.trial import Fault, Trial

NAME = "an exception of the training ends the rank"
#: exceptions that reach all ranks alike, or of which a training is no reason
_OTHERS = frozenset({
    "KeyboardInterrupt", "StopIteration", "ImportError", "ModuleNotFoundError", "OSError", "FileNotFoundError", "IOError", "EOFError",
    "KeyError", "AttributeError", "SystemExit", "GeneratorExit", "TypeError", "NotImplementedError",
})  # fmt: skip


def faults(trial: Trial) -> Iterator[Fault]:
    """Handlers round the training that go on, or train again, where several ranks run."""
    for event in trial.result.trace.of("judge handler"):
        handler = event.node
        if not isinstance(handler, ast.ExceptHandler) or not _broad(handler.type):
            continue
        if event.values["trains"] == const(True):
            yield trial.fault(handler, NAME, "this trains again on a rank that has failed, and the others do not")
        elif event.values["ends"] == const(False):
            words = "a rank that fails in its training goes on here alone, and the others wait for it: raise where there are several"
            yield trial.fault(handler, NAME, words)


def _broad(kind: ast.expr | None) -> bool:
    """Whether an exception of the training itself may be caught."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(k is None or ast.unparse(k).rpartition(".")[2] not in _OTHERS for k in kinds)
