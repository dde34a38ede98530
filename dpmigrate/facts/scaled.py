"""What a training loop adds up times the size of a batch: a mean over the batch, times its size, is a sum over the samples, of which each rank adds its share.

A rank's part of a sum over the batch, as of a loss that the ranks' parts add up to, is so small already: times the size of the rank's batch it is as many
times too small as there are ranks. Times their number it is one whose mean over the ranks is the whole.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpmigrate.execution.placements import SUM
from dpmigrate.facts.additions import Holds, holds
from dpmigrate.facts.batch import size
from dpmigrate.facts.counters import Counter
from dpmigrate.facts.loops import BatchLoop

if TYPE_CHECKING:
    from dpmigrate.facts.script import Script


def parts_added(script: Script, loop: BatchLoop, node: ast.AST | None, losses: Mapping[str, bool]) -> tuple[ast.expr, ...]:
    """Those that a statement adds, or that a call is given beside the size of the batch: ``losses.update(loss.item(), x.size(0))``."""
    if isinstance(node, ast.AugAssign):
        part = share(script, loop, node.value, losses)
        return (part,) if part is not None else ()
    given = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    if not any(size(script.roles, e) for e in given):
        return ()
    return tuple(e for e in given if not size(script.roles, e) and _is_part(script, loop, e, losses))


def share(script: Script, loop: BatchLoop, added: ast.expr, losses: Mapping[str, bool]) -> ast.expr | None:
    """The rank's part of a sum over the batch, where it is added times the size of the rank's batch: ``float(loss)`` of ``float(loss) * x.size(0)``; also by
    a variable that nothing else reads.
    """
    if isinstance(added, ast.Name) and added in script.names.parent:
        scope = script.names.scope_of[added]
        bound = list(script.names.bindings(scope, added.id))
        read = [n for n in script.names.uses(scope, added.id) if isinstance(n.ctx, ast.Load)]
        value = bound[0].value if len(bound) == 1 and bound[0].how == "assign" and len(read) == 1 else None
        return share(script, loop, value, losses) if isinstance(value, ast.BinOp) else None
    if not isinstance(added, ast.BinOp) or not isinstance(added.op, ast.Mult):
        return None
    for one, other in ((added.left, added.right), (added.right, added.left)):
        if one in script.names.parent and size(script.roles, other) and not size(script.roles, one) and _is_part(script, loop, one, losses):
            return one
    return None


def _is_part(script: Script, loop: BatchLoop, node: ast.expr, losses: Mapping[str, bool]) -> bool:
    """Whether an execution says that it is the rank's part of a sum over the batch, or its form where that is not known."""
    lies = script.executed.lying(script.made_whole)(node)
    placed = {lie.placement if lie.single else None for lie in lies}
    return placed == {SUM} if placed else holds(script.roles, loop, Counter("", (node,), False, True), losses) is Holds.SUM
