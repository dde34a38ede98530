"""No name is read before it is bound, where the original was fine."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from dpmigrate.execution.engine import Execution
from dpmigrate.judge.trial import Fault, Trial

NAME = "every name is bound"


def faults(trial: Trial) -> Iterator[Fault]:
    """Names that the result may read unbound at more places than the original."""
    before = Counter(_unbound(trial.original).values()) if trial.original is not None else Counter()
    seen: Counter[tuple[str, str]] = Counter()
    for node, key in _unbound(trial.result).items():
        seen[key] += 1
        if seen[key] > before[key]:
            kind, name = key
            may = "may not be" if kind == "maybe unbound" else "is not"
            yield trial.fault(node, NAME, f"{name} {may} bound here")


def _unbound(execution: Execution) -> dict[ast.Name, tuple[str, str]]:
    """The names that are read unbound, or may be, on whatever way."""
    return {
        e.node: (e.kind, e.node.id)
        for e in execution.trace.of("unbound", "maybe unbound")
        if isinstance(e.node, ast.Name)
    }
