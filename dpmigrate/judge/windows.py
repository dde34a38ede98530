"""A window of ``ddp.accumulate(…, sync=…)`` ends before the optimizer steps: what ``sync`` says is asked
once, where the block begins, and holds for every backward in it.

With a loop over steps inside of the block, its steps would go by gradients that no rank has averaged,
or all backward passes would be averaged, as the first turn has it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dpmigrate.execution.values import const
from dpmigrate.judge.trial import Fault, Trial

NAME = "each window of accumulated gradients is asked whether it ends"


def faults(trial: Trial) -> Iterator[Fault]:
    """Loops that step, in a block that was asked before the first turn."""
    trace = trial.result.trace
    asked = {e.node for e in trace.of("judge runtime") if e.values["name"] == const("accumulate")}
    blocks = trial.result.program.every(ast.With)
    for block in blocks:
        calls = [i.context_expr for i in block.items if i.context_expr in asked]
        if not any(map(_depends, calls)):
            continue
        loops = (n for s in block.body for n in ast.walk(s) if isinstance(n, ast.For | ast.While))
        turns = {n for loop in loops for s in loop.body for n in ast.walk(s)}
        if any(turns & {e.node, *(c.node for c in trace.leading(e.context))} for e in trace.of("step")):
            words = "accumulate() is asked once here for all turns of a loop that steps: it belongs into the loop"
            yield trial.fault(block, NAME, words)


def _depends(call: ast.expr) -> bool:
    """Whether ``sync`` may be false."""
    given = [k.value for k in call.keywords if k.arg == "sync"] if isinstance(call, ast.Call) else []
    return not (given and isinstance(given[0], ast.Constant) and given[0].value is True)
