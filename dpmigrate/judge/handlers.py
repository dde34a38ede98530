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
        elif event.values["ends"] == const(False) and not _raised_by_all(trial, handler):
            words = "a rank that fails in its training goes on here alone, and the others wait for it: raise where there are several"
            yield trial.fault(handler, NAME, words)


def _raised_by_all(trial: Trial, handler: ast.ExceptHandler) -> bool:
    """Whether the program itself raises what a handler takes, an exception of its own, and all ranks do so together."""
    kinds = {_word(k) for k in (handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]) if k is not None}
    own = {n.name for n in trial.result.program.every(ast.ClassDef)}
    events = [e for e in trial.result.trace.of("raise") if isinstance(e.node, ast.Raise) and e.node.exc is not None and _word(e.node.exc) in kinds]
    return bool(events) and kinds <= own and all(e.parted is None for e in events)


def _word(raised: ast.expr) -> str:
    return ast.unparse(raised.func if isinstance(raised, ast.Call) else raised).rpartition(".")[2]


def _broad(kind: ast.expr | None) -> bool:
    """Whether an exception of the training itself may be caught."""
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(k is None or ast.unparse(k).rpartition(".")[2] not in _OTHERS for k in kinds)
