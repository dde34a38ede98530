"""What a loss takes of a rank's part of the batch that no average of the ranks' gradients mends: sums
and means of which it is a function, as of the quotient of two sums or the root of a mean, and samples
that meet each other. With those of the global batch in their places it is right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dpmigrate.execution import placements
from dpmigrate.execution.machine import Frame, Library
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import Data, Value, const, data, placement_of
from dpmigrate.judge.judged import Judged
from dpmigrate.judge.notes import is_loader
from dpmigrate.judge.totals import by_a_draw
from dpmigrate.judge.trial import Trial
from dpmigrate.judge.watching import Watching
from dpmigrate.library.sites import GRAD
from dpmigrate.program import Program


@dataclass(frozen=True, eq=False)
class Bent:
    """An expression of the result, and the call of the runtime that makes of it what the global
    batch gives: ``batch_sum({})``.
    """

    node: ast.expr
    call: str


class _Lies(NamedTuple):
    """How an expression lies, whether it has a gradient, and the call that has made it where it
    numbers the samples of the batch.
    """

    placement: Placement
    learns: bool
    numbers: ast.AST | None = None


_Span = tuple[int, ...]
#: by the placement of an operand
_FUNCTIONS = {placements.SUM: "batch_sum({})", placements.MEAN: "batch_mean({})"}


def operands(trial: Trial, *, by_default: bool) -> tuple[Bent, ...]:
    """What to put round operands of operations in losses; and round backward passes of losses that
    are sums.
    """
    bent = (loss.bent for _, loss in trial.losses() if loss.placement != placements.MEAN and not by_a_draw(loss))
    operations = sorted({n for each in bent for n in each}, key=_span)
    losses = list(trial.losses())
    others = {n for n, loss in losses if loss.placement != placements.SUM}
    summed = tuple(Bent(n, "sum_loss({})") for n in dict.fromkeys(n for n, _ in losses) if isinstance(n, ast.Call) and n not in others)
    if not operations:
        return summed
    seen = _Seen(trial.result.program, Watching())
    seen.by_default = by_default
    seen.run()
    found = {b.node: b for o in operations for b in _mended(o, seen.lying)}
    return (*summed, *found.values())


def _span(node: ast.AST) -> _Span:
    return tuple(getattr(node, name, 0) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))


def _sides(operation: ast.AST) -> Iterator[ast.expr]:
    """The expressions that an operation takes, with what an augmented assignment changes; not what a
    call may change in place (``x.add_(y)``, ``torch.relu_(x)``), for which another tensor would be changed.
    """
    method = operation.func if isinstance(operation, ast.Call) else None
    name = str(getattr(method, "attr", ""))
    changed = operation.args[:1] if isinstance(operation, ast.Call) and name.endswith("_") and not name.endswith("__") else None
    for child in ast.iter_child_nodes(operation):
        if isinstance(child, ast.keyword):
            yield child.value
        elif child is method:
            if isinstance(child, ast.Attribute) and changed is None:
                yield child.value
        elif isinstance(child, ast.expr) and child not in (changed or ()):
            yield child


def _mended(operation: ast.AST, lying: Mapping[_Span, set[_Lies]]) -> Iterator[Bent]:
    """What to put round the operands of an operation."""
    known = {e: found for e in _sides(operation) if (found := _part(lying.get(_span(e), set()))) is not None}
    parts = {e: lies for e, lies in known.items() if lies.placement in _FUNCTIONS}
    rows = {e: lies for e, lies in known.items() if e not in parts}
    bent = any(lies.placement.kind in (Kind.PER_RANK, Kind.RATIO) for e in _sides(operation) for lies in lying.get(_span(e), ()))
    if rows and (bent or (parts and not any(lies.learns for lies in parts.values()))):
        # it may be that all ranks have the same then, which may meet the samples where it has no gradient
        rows = {e: lies for e, lies in rows.items() if lies.numbers is not None}
    for e, lies in rows.items():
        if isinstance(getattr(e, "ctx", ast.Load()), ast.Load):
            yield from _of_rows(e, lies, lying)
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


def _of_rows(side: ast.expr, lies: _Lies, lying: Mapping[_Span, set[_Lies]]) -> Iterator[Bent]:
    """The samples of all ranks; of their numbers, as labels are of a loss that compares samples, as
    many as there are then.
    """
    if lies.numbers is None:
        p = lies.placement
        told = {"dim": p.axis, "segments": p.segments - 1 and p.segments, "each": p.times - 1 and p.times}
        yield Bent(side, f"batch_rows({', '.join(['{}', *(f'{name}={n}' for name, n in told.items() if n)])})")
        return
    for given in _sides(lies.numbers):
        counted = _part(lying.get(_span(given), set()))
        if counted is not None and counted.placement == placements.SUM:
            yield Bent(given, _FUNCTIONS[placements.SUM])


def _part(lies: set[_Lies]) -> _Lies | None:
    """How an operand lies where it is a part of a sum or mean, or samples. Elsewhere it may be
    anything: the result with the edit is judged again.
    """
    found = [one for one in lies if one.placement in _FUNCTIONS or _gathered(one.placement)]
    if len({one.placement for one in found}) != 1:
        return None
    numbers = next((one.numbers for one in found if one.numbers is not None), None)
    return _Lies(found[0].placement, any(one.learns for one in found), numbers)


def _gathered(p: Placement) -> bool:
    """Whether rows of all ranks can be put together: of one form, in an order that is known."""
    return p.kind is Kind.ROWS and not p.padded and not p.ragged and p.segments > 0 and p.times > 0


class _Seen(Judged):
    """An execution that notes how expressions lie where gradients are recorded."""

    def __init__(self, program: Program, library: Library) -> None:
        super().__init__(program, library)
        self.lying: dict[_Span, set[_Lies]] = {}

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        found = super().evaluate(node, frame)
        held = data(found)
        if held and not any(d.kind in ("array", "text") for d in held) and self.heap.read(GRAD) != const(False):
            p = placement_of(found)
            if p.kind not in placements.EQUAL and not all(d.whole for d in held):
                learns = any(d.gradient != "none" for d in held)
                if p.segments > 1 and len(self._loaders(held)) > 1:
                    p = p._replace(segments=0)  # which may be of unlike length
                numbers = next((d.origin.node for d in held if d.kind in _NUMBERS and d.origin is not None), None)
                self.lying.setdefault(_span(node), set()).add(_Lies(placements.SUM if p.kind is Kind.SIZE else p, learns, numbers))
        return found

    def _loaders(self, held: list[Data]) -> set[int]:
        return {n for d in held for n in d.sources if is_loader(self, self.heap.objects[n])}


#: kinds of data that number the samples of a batch
_NUMBERS = ("order", "places")
