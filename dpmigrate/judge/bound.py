"""No name is read before it is bound, where the original was fine."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from dpmigrate.execution.engine import Execution
from dpmigrate.judge.trial import Fault, Trial

NAME = "every name is bound"


def faults(trial: Trial) -> Iterator[Fault]:
    """Names that the result may read unbound at more lines than the original: whether all ways that
    lead there are without a value, and whether that is seen at the first read of the line, may differ.
    """
    before = Counter(n for n, _ in _unbound(trial.original)) if trial.original is not None else Counter()
    optional = _optional(trial.result)
    seen: Counter[str] = Counter()
    for (name, _), (kind, node) in _unbound(trial.result).items():
        seen[name] += 1
        if before[name] and kind == "maybe unbound" and name in optional:
            continue  # the program asks whether it is there; what is guarded anew asks again
        if seen[name] > before[name]:
            may = "may not be" if kind == "maybe unbound" else "is not"
            yield trial.fault(node, NAME, f"{name} {may} bound here")


def _optional(execution: Execution) -> set[str]:
    """The names of imports that may fail: ``try: import wandb``."""
    tried = execution.program.every(ast.Try)
    imports = (s for t in tried for s in t.body if isinstance(s, ast.Import | ast.ImportFrom))
    return {(a.asname or a.name).split(".")[0] for s in imports for a in s.names}


def _unbound(execution: Execution) -> dict[tuple[str, int], tuple[str, ast.Name]]:
    """The names that are read unbound, or may be, on whatever way, with their lines; for each the kind of event and its place."""
    return {
        (e.node.id, e.node.lineno): (e.kind, e.node)
        for e in execution.trace.of("unbound", "maybe unbound")
        if isinstance(e.node, ast.Name)
    }
