"""Operators on data: what becomes of the placement."""

from __future__ import annotations

import ast

from dpmigrate.execution import placements
from dpmigrate.execution.broadcasting import aligned, axes_of, bare, crossed, lengths_of
from dpmigrate.execution.derivation import SIGNS, data_in, derived, since
from dpmigrate.execution.folding import SHARE_OF_NUMBER, TIMES_WORLD, WORLD
from dpmigrate.execution.joins import join
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import Const, Data, Setting, Value, const, placement_of


def _mean_beside_part(v: Value, other: Value) -> Value:
    """A mean of all ranks, without a gradient, beside a part of a sum: the same on each of them."""
    if placement_of(other) != placements.SUM and placement_of(other).kind is not Kind.SIZE:
        return v
    return tuple(
        a._replace(placement=placements.UNIFORM, whole=False)
        if isinstance(a, Data) and a.whole and a.gradient == "none" and a.placement == placements.MEAN
        else a
        for a in v
    )


def binary(
    word: str, left: Value, right: Value, node: ast.AST, *, carries: bool = False
) -> Value:
    """An operator on data; ``carries`` where an operand may be the 0 at which a sum over several
    turns begins.
    """
    if cases := _alternatives([left, right]):
        return join(*[binary(word, a, b, node, carries=carries) for a, b in cases])
    if word == "mul":  # ddp.weighted_mean(loss, n).item() * n
        left, right = _mean_beside_part(left, right), _mean_beside_part(right, left)
    a, b = aligned([left, right])
    said = SIGNS.get(word, word)
    match word:
        case "add":
            placement = placements.add(a, b)
            if placement.kind is Kind.PER_RANK and _whole_and_part(a, b, left, right):
                said = WHOLE_AND_PART
            if SHARE_OF_NUMBER in (left, right):  # mean_count(n) + 1e-8 / world_size()
                placement = next((d.placement for d in data_in([left, right]) if _of_all(d)), placement)
        case "sub":
            placement = placements.subtract(a, b)
        case "mul":
            placement = _product(a, b, left, right)
            if Kind.PARTIAL in (a.kind, b.kind) and any(map(_by_all_counts, (left, right))):
                said = WEIGHTED_AGAIN if placement.kind is Kind.PER_RANK else said
        case "truediv":
            placement = placements.divide(a, b)
            if placement == placements.TERM_OF_MEAN and any(d.turn for d in data_in([right])):
                placement = placements.TERM  # the batch is the turn's
            counted = b.kind is Kind.SIZE or b == placements.SUM
            if counted and any(d.sources and a.kind is Kind.UNIFORM for d in data_in([left])):
                said = WHOLE_BY_PART
            elif counted and a == placements.MEAN:
                said = MEAN_BY_PART
            elif any(map(_of_all, data_in([right]))):
                said = BY_COUNT_OF_ALL
        case "floordiv":
            placement = placements.floor_divide(a, b, _whole_number(right))
        case _:
            placement = placements.elementwise((a, b))
    said = CROSSED if crossed([left, right], (a, b)) else said
    made = derived(
        said, placement, [left, right], node, axes=axes_of([left, right]), keep_axes=False,
        alone=bare([left, right]), carries=carries and word in ("add", "sub"),
        lengths=lengths_of([left, right]), even=True,
    )  # fmt: skip
    if word == "truediv" and placement == placements.SUM and b.kind is Kind.UNIFORM:
        return since(made, PART_BY_WHOLE, node)
    if word == "mul" and _counts_filled(left, right):
        return tuple(a._replace(filled=True) if isinstance(a, Data) else a for a in made)
    return made


#: since when a number that is divided by the wrong one differs
MEAN_BY_PART = "a mean divided by one rank's part of a total"
WHOLE_BY_PART = "a number of all ranks divided by one rank's part of a total"
PART_BY_WHOLE = "one rank's part of a total divided by a number of all ranks"
#: since when a total holds samples of all ranks, and then the rank's own
WHOLE_AND_PART = "a total of all ranks and one rank's part of a total added up"
#: a count as all ranks have it on average; what is divided by that, and what is made of this
COUNT_OF_ALL = "mean_count"
BY_COUNT_OF_ALL = "divided by the count of all ranks"
WEIGHTED_AGAIN = "divided by the count of all ranks, and multiplied by a rank's own"
#: since when a value is made of pairs of samples
CROSSED = "every sample meets every other one, as a column (B, 1) and a vector (B,) do"
#: since when a value depends on how long the longest sample of a rank's part is
FILLED_UP = "a loss over what fills the samples up to the longest of a rank's part"
def _whole_and_part(a: Placement, b: Placement, left: Value, right: Value) -> bool:
    """Whether one operand is made of what the samples of all ranks give, and the other is a sum
    over the rank's own.
    """
    for p, v, q in ((a, left, b), (b, right, a)):
        part = q == placements.SUM or q.kind is Kind.SIZE
        if p.kind is Kind.UNIFORM and part and any(d.sources for d in data_in([v])):
            return True
    return False


def _of_all(d: Data) -> bool:
    """Whether data are a count as all ranks have it on average."""
    return d.origin is not None and d.origin.word == COUNT_OF_ALL


def _by_all_counts(v: Value) -> bool:
    """Whether a value was divided by a count that all ranks have."""
    return any(d.origin is not None and d.origin.word == BY_COUNT_OF_ALL for d in data_in([v]))


def _product(a: Placement, b: Placement, left: Value, right: Value) -> Placement:
    """``a * b``; a number of samples times a whole number that is known is one as well."""
    if Kind.ZERO in (a.kind, b.kind) and all(d.axes == 0 for d in data_in([left, right])):
        return placements.ZERO  # of scalars it is known how many zeros that are
    placement = placements.multiply(a, b)
    for p, other in ((a, right), (b, left)):
        if p.kind is Kind.SIZE and len(other) == 1 and isinstance(other[0], Const):
            factor = other[0].value
            if not isinstance(factor, int):
                return placements.SUM
            return placements.size(p.times * factor)
        if p.kind is Kind.SIZE and other in (WORLD, TIMES_WORLD):
            return placements.UNIFORM  # that of all ranks: every rank has as many samples
        if p == placements.SUM and other in (WORLD, TIMES_WORLD):
            return placements.MEAN  # the mean of the ranks is what their parts come to
        if other == const(-1):
            return placements.negate(p)
    return placement


def _counts_filled(left: Value, right: Value) -> bool:
    """Whether a product is the number of samples times one that goes by how long the rank's are padded:
    as many elements as each sample of a batch has, times their number.
    """
    found = list(data_in([left, right]))
    counts = [d for d in found if d.filled or d.placement.kind is Kind.SIZE]
    others = [d.placement for d in found if d not in counts]
    padded = any(d.filled for d in counts) or placements.PADDED in others
    whole = all(_is_whole(a) for v in (left, right) for a in v if not isinstance(a, Data))
    numbers = all(d.kind == "number" and not d.fraction for d in found) and len(left) == len(right) == 1
    return numbers and whole and padded and len(counts) == 1 and all(p.kind in placements.EQUAL for p in others)


def _is_whole(a: object) -> bool:
    """Whether a factor is a whole number, by default where it is given from outside; one that is not known
    may be a size.
    """
    held = a.default or Const("int", 1) if isinstance(a, Setting) else a
    return isinstance(held, Const) and held.type == "int" and held.value > 0


def _whole_number(v: Value) -> int | None:
    """The whole number that a value is for certain."""
    number = v[0].value if len(v) == 1 and isinstance(v[0], Const) else None
    return number if type(number) is int else None


def elementwise(word: str, operands: list[Value], node: ast.AST, *, kind: str = "", even: bool = False) -> Value:
    """A function of each element; ``even`` where it is one of nothing else, not of its place either."""
    if cases := _alternatives(operands):
        return join(*[elementwise(word, case, node, kind=kind, even=even) for case in cases])
    lying = aligned(operands)
    placement = placements.elementwise(lying)
    word = CROSSED if crossed(operands, lying) else word
    return derived(
        word, placement, operands, node, kind=kind, axes=axes_of(operands), keep_axes=False,
        alone=bare(operands), lengths=lengths_of(operands), even=even,
    )  # fmt: skip


def _alternatives(operands: list[Value]) -> list[list[Value]]:
    """The operands with one that is the same on all ranks on some ways, and on others not, once as
    the one and once as the other; empty where there is none.
    """
    for i, v in enumerate(operands):
        equal = tuple(a for a in v if not isinstance(a, Data) or a.placement.kind in placements.EQUAL)
        rest = tuple(a for a in v if isinstance(a, Data) and a not in equal)
        if rest and any(isinstance(a, Data) for a in equal):
            return [[*operands[:i], side, *operands[i + 1 :]] for side in (equal, rest)]
    return []
