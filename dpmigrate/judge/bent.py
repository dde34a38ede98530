"""What a loss takes of a rank's part of the batch that no average of the ranks' gradients mends: sums
and means of which it is a function, as of the quotient of two sums or the root of a mean, and samples
that meet each other. With those of the global batch in their places it is right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dpmigrate.contract import BARE
from dpmigrate.execution import placements
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.judge.lying import Lies, Lying, span
from dpmigrate.judge.totals import by_a_draw
from dpmigrate.judge.trial import Trial
from dpmigrate.library.runtime_reductions import WHOLE


@dataclass(frozen=True, eq=False)
class Bent:
    """An expression of the result, and the call of the runtime that makes of it what the global
    batch gives: ``batch_sum({})``.
    """

    node: ast.expr
    call: str


#: by the placement of an operand
_FUNCTIONS = {placements.SUM: "batch_sum({})", placements.MEAN: "batch_mean({})"}


def operands(trial: Trial) -> tuple[Bent, ...]:
    """What to put round operands of operations in losses; and round backward passes of losses that
    are sums, where they are not those of all samples already.
    """
    # what each rank draws for itself, as which columns of its samples, cannot be put together
    bent = (loss.bent for _, loss in trial.losses() if loss.placement != placements.MEAN and not by_a_draw(loss))
    operations = sorted({n for each in bent for n in each}, key=span)
    losses = list(trial.losses())
    others = {n for n, loss in losses if loss.placement != placements.SUM}
    summed = tuple(Bent(n, "sum_loss({})") for n in dict.fromkeys(n for n, _ in losses) if isinstance(n, ast.Call) and n not in others)
    summed += tuple(Bent(n.args[0], BARE) for e in trial.result.trace.of(WHOLE) if isinstance(n := e.node, ast.Call) and n.args)
    if not operations:
        return summed
    assert isinstance(trial.result, Lying)
    found = {b.node: b for o in operations for b in _mended(o, trial.result)}
    return (*summed, *found.values())


def _sides(operation: ast.AST, result: Lying) -> Iterator[ast.expr]:
    """The expressions that an operation takes, with what an augmented assignment changes; not what a
    call may change in place (``x.add_(y)``, ``torch.relu_(x)``), or a part of which is stored
    (``x[mask] = y``): another tensor would be changed in its place.
    """
    if isinstance(operation, ast.Subscript) and not isinstance(operation.ctx, ast.Load):
        return
    method = operation.func if isinstance(operation, ast.Call) else None
    name = str(getattr(method, "attr", ""))
    changed: list[ast.expr] | None = None
    if isinstance(operation, ast.Call) and name.endswith("_") and not name.endswith("__"):
        owner = getattr(method, "value", None)
        function = owner is not None and span(owner) in result.foreign
        changed = operation.args[:1] if function else []
    for child in ast.iter_child_nodes(operation):
        if isinstance(child, ast.keyword):
            yield child.value
        elif isinstance(child, ast.List | ast.Tuple):  # torch.einsum(rule, [a, b])
            yield from child.elts
        elif child is method:
            if isinstance(child, ast.Attribute) and changed is None:
                yield child.value
        elif isinstance(child, ast.expr) and child not in (changed or ()):
            yield child


def _mended(operation: ast.AST, result: Lying) -> Iterator[Bent]:
    """What to put round the operands of an operation."""
    lying, sides = result.lying, list(_sides(operation, result))
    known = {e: found for e in sides if (found := _part(lying.get(span(e), ()))) is not None}
    parts = {e: lies for e, lies in known.items() if lies.placement in _FUNCTIONS}
    rows = {e: lies for e, lies in known.items() if e not in parts}
    bent = any(lies.placement.kind in (Kind.PER_RANK, Kind.RATIO) for e in sides for lies in lying.get(span(e), ()))
    if rows and (bent or (parts and not any(lies.learns for lies in parts.values()))):
        # it may be that all ranks have the same then, which may meet the samples where it has no gradient
        rows = {e: lies for e, lies in rows.items() if lies.numbers is not None}
    for e, lies in rows.items():
        if isinstance(getattr(e, "ctx", ast.Load()), ast.Load):
            yield from _of_rows(e, lies, result)
    if isinstance(operation, ast.BinOp | ast.AugAssign):
        left = operation.left if isinstance(operation, ast.BinOp) else operation.target
        right = operation.right if isinstance(operation, ast.BinOp) else operation.value
        by, of = parts.get(left), parts.get(right)
        if isinstance(operation.op, ast.Div) and of is not None and of.placement == placements.SUM and not of.learns and by is not None:
            # the number of the global batch in the divisor is enough
            if by.placement == placements.MEAN:
                parts = {right: of}
            elif isinstance(operation, ast.AugAssign):
                yield Bent(right, "mean_count({})")
                return
        elif isinstance(operation.op, ast.Add | ast.Sub) and len({lies.placement for lies in parts.values()}) > 1:
            # of a sum beside a mean the sum alone: times the number of ranks it is a mean over them
            yield from (Bent(e, "sum_term({})") for e, lies in parts.items() if lies.placement == placements.SUM)
            return
    yield from (Bent(e, _FUNCTIONS[lies.placement]) for e, lies in parts.items() if isinstance(getattr(e, "ctx", ast.Load()), ast.Load))


def _of_rows(side: ast.expr, lies: Lies, result: Lying) -> Iterator[Bent]:
    """The samples of all ranks; of their numbers, as labels are of a loss that compares samples, as
    many as there are then.
    """
    if lies.numbers is None:
        p = lies.placement
        told = {"dim": p.axis, "segments": p.segments - 1 and p.segments, "each": p.times - 1 and p.times}
        yield Bent(side, f"batch_rows({', '.join(['{}', *(f'{name}={n}' for name, n in told.items() if n)])})")
        return
    for given in _sides(lies.numbers, result):
        counted = _part(result.lying.get(span(given), ()))
        if counted is not None and counted.placement == placements.SUM:
            yield Bent(given, _FUNCTIONS[placements.SUM])


def _part(lies: Iterable[Lies]) -> Lies | None:
    """How an operand lies where it is a part of a sum or mean, or samples. Elsewhere it may be
    anything: the result with the edit is judged again.
    """
    found = [one for one in lies if one.placement in _FUNCTIONS or _gathered(one.placement)]
    if len({one.placement for one in found}) != 1:
        return None
    numbers = next((one.numbers for one in found if one.numbers is not None), None)
    return Lies(found[0].placement, any(one.learns for one in found), numbers)


def _gathered(p: Placement) -> bool:
    """Whether rows of all ranks can be put together: of one form, in an order that is known."""
    return p.kind is Kind.ROWS and not p.padded and not p.ragged and p.segments > 0 and p.times > 0
