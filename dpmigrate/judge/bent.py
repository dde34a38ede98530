"""Sums and means over a rank's part of a batch that a loss is a function of, as the quotient of
two sums or the root of a mean is: with those of the global batch in their places it is right.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from dpmigrate.execution import placements
from dpmigrate.execution.machine import Frame, Library
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import Value, const, data, placement_of
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.trial import Trial
from dpmigrate.judge.watching import Watching
from dpmigrate.library.sites import GRAD
from dpmigrate.program import Program


@dataclass(frozen=True, eq=False)
class Bent:
    """An expression of the result, and the function of the runtime that makes of it the number
    of the global batch.
    """

    node: ast.expr
    function: str


_Span = tuple[int, ...]
#: by the placement of an operand
_FUNCTIONS = {placements.SUM: "batch_sum", placements.MEAN: "batch_mean"}


def operands(trial: Trial, *, by_default: bool) -> tuple[Bent, ...]:
    """The parts of sums and means of which losses are made by more than sums; and the backward
    passes of losses that are sums.
    """
    bent = (loss.bent for _, loss in trial.losses() if loss.placement != placements.MEAN)
    operations = sorted({n for each in bent for n in each}, key=_span)
    losses = list(trial.losses())
    others = {n for n, loss in losses if loss.placement != placements.SUM}
    summed = tuple(Bent(n, "sum_loss") for n in dict.fromkeys(n for n, _ in losses) if isinstance(n, ast.Call) and n not in others)
    if not operations:
        return summed
    seen = _Seen(trial.result.program, Watching(), {_span(e) for o in operations for e in _sides(o)})
    seen.by_default = by_default
    seen.run()
    return (*summed, *(b for o in operations for b in _mended(o, seen.lying)))


def _span(node: ast.AST) -> _Span:
    return tuple(getattr(node, name, 0) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))


def _sides(operation: ast.AST) -> Iterator[ast.expr]:
    """The expressions that an operation takes, with what an augmented assignment changes."""
    for child in ast.iter_child_nodes(operation):
        method = isinstance(operation, ast.Call) and child is operation.func
        if isinstance(child, ast.keyword) or (isinstance(child, ast.Attribute) and method):
            yield child.value
        elif isinstance(child, ast.expr):
            yield child


def _mended(operation: ast.AST, lying: Mapping[_Span, set[tuple[Placement, bool]]]) -> Iterator[Bent]:
    """What to put round the operands of an operation."""
    parts = {e: known[0] for e in _sides(operation) if len(known := _known(lying.get(_span(e), set()))) == 1}
    if isinstance(operation, ast.BinOp | ast.AugAssign):
        left = operation.left if isinstance(operation, ast.BinOp) else operation.target
        right = operation.right if isinstance(operation, ast.BinOp) else operation.value
        by, _ = parts.get(left, (None, False))
        of, learns = parts.get(right, (None, True))
        if isinstance(operation.op, ast.Div) and of == placements.SUM and not learns:
            # the number of the global batch in the divisor is enough
            if by == placements.MEAN:
                parts = {right: parts[right]}
            elif by == placements.SUM and isinstance(operation, ast.AugAssign):
                yield Bent(right, "mean_count")
                return
        elif isinstance(operation.op, ast.Add | ast.Sub) and len({p for p, _ in parts.values()}) > 1:
            # of a sum beside a mean the sum alone: times the number of ranks it is a mean over them
            yield from (Bent(e, "sum_term") for e, (p, _) in parts.items() if p == placements.SUM)
            return
    yield from (Bent(e, _FUNCTIONS[p]) for e, (p, _) in parts.items() if isinstance(getattr(e, "ctx", ast.Load()), ast.Load))


def _known(lies: set[tuple[Placement, bool]]) -> list[tuple[Placement, bool]]:
    """How an operand lies where it is a part of a sum or mean, and whether it has a gradient. Elsewhere
    it may be anything: the result with the edit is judged again.
    """
    return [(p, any(learns for q, learns in lies if q == p)) for p in _FUNCTIONS if any(q == p for q, _ in lies)]


class _Seen(Judged):
    """An execution that notes how some expressions lie where gradients are recorded, and whether
    they have one.
    """

    def __init__(self, program: Program, library: Library, wanted: Collection[_Span]) -> None:
        super().__init__(program, library)
        self.wanted = wanted
        self.lying: dict[_Span, set[tuple[Placement, bool]]] = {}

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        found = super().evaluate(node, frame)
        if _span(node) in self.wanted and data(found) and self.heap.read(GRAD) != const(False):
            p = placement_of(found)
            if p.kind not in placements.EQUAL:
                learns = any(d.gradient != "none" for d in data(found))
                lies = placements.SUM if p.kind is Kind.SIZE else p
                self.lying.setdefault(_span(node), set()).add((lies, learns))
        return found
