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
    optional = _optional(trial.result)
    seen: Counter[tuple[str, str]] = Counter()
    for node, key in _unbound(trial.result).items():
        seen[key] += 1
        kind, name = key
        if before[key] and kind == "maybe unbound" and name in optional:
            continue  # the program asks whether it is there; what is guarded anew asks again
        if seen[key] > before[key]:
            may = "may not be" if kind == "maybe unbound" else "is not"
            yield trial.fault(node, NAME, f"{name} {may} bound here")


def _optional(execution: Execution) -> set[str]:
    """The names of imports that may fail: ``try: import wandb``."""
    tried = execution.program.every(ast.Try)
    imports = (s for t in tried for s in t.body if isinstance(s, ast.Import | ast.ImportFrom))
    return {(a.asname or a.name).split(".")[0] for s in imports for a in s.names}


def _unbound(execution: Execution) -> dict[ast.Name, tuple[str, str]]:
    """The names that are read unbound, or may be, on whatever way."""
    return {
        e.node: (e.kind, e.node.id)
        for e in execution.trace.of("unbound", "maybe unbound")
        if isinstance(e.node, ast.Name)
    }
