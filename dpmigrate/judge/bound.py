"""No name is read before it is bound, where the original was fine."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from dpmigrate.execution.engine import Execution
from dpmigrate.judge.trial import Fault, Trial

NAME = "every name is bound"


def faults(trial: Trial) -> Iterator[Fault]:
    """Names that the result may read unbound more often than the original."""
    before = _unbound(trial.original) if trial.original is not None else Counter()
    for kind in ("unbound", "maybe unbound"):
        seen: Counter[tuple[str, str]] = Counter()
        for event in trial.result.trace.of(kind):
            if not isinstance(event.node, ast.Name):
                continue
            key = (kind, event.node.id)
            seen[key] += 1
            if seen[key] > before[key]:
                may = "may not be" if kind == "maybe unbound" else "is not"
                yield trial.fault(event.node, NAME, f"{event.node.id} {may} bound here")


def _unbound(execution: Execution) -> Counter[tuple[str, str]]:
    return Counter(
        (e.kind, e.node.id)
        for e in execution.trace.of("unbound", "maybe unbound")
        if isinstance(e.node, ast.Name)
    )
