"""How a value lies across the ranks: the lattice, its joins and its arithmetic.

The names are those of sharding systems (DTensor: ``Shard``, ``Replicate``, ``Partial``;
GSPMD, https://arxiv.org/abs/2105.04663), with the placements added that eager programs need: a
number of samples, a quotient of partial sums, and values that no reduction puts together again.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """The forms of a placement."""

    ZERO = "zero"  # 0 on every rank: the neutral start of every sum
    UNIFORM = "uniform"  # the same on all ranks
    ROWS = "rows"  # one axis runs over the rank's own samples
    SIZE = "size"  # a multiple of the number of the rank's samples
    PARTIAL = "partial"  # the rank's part of a reduction over the global batch
    RATIO = "ratio"  # a quotient of partial sums
    TERM = "term"  # the value of one turn of a loop of which each rank takes turns of its own
    PER_RANK = "per rank"  # differs, and no reduction mends it
    UNKNOWN = "unknown"  # not established

    __hash__ = object.__hash__  # members are single objects


class Placement(NamedTuple):
    """A placement; which fields mean something depends on ``kind``.

    ``axis`` counts from the front for ROWS; ``ragged`` says that the number of rows depends on
    what is in them (a selection); ``times`` is how many rows a sample has, 0 for "not known",
    or the factor of a SIZE, 0 as well for "not known"; ``segments`` counts tensors of rows that
    were put end to end (two views of one batch), 0 for "not known". Rows of a sample lie
    together within each segment; ``how`` is the reduction of a PARTIAL: ``sum``, ``mean``,
    ``max`` or ``min``. ``padded`` rows have another axis that is as long as the longest sample of
    the rank's part, filled up in the others: a mean counts what it is filled up with. A UNIFORM
    number that is ``padded`` is made of that length, and the same on all ranks but for it.
    """

    kind: Kind
    axis: int = 0
    ragged: bool = False
    times: int = 1
    segments: int = 1
    how: str = ""
    padded: bool = False

    def __str__(self) -> str:
        match self.kind:
            case Kind.ROWS:
                more = ", ragged" if self.ragged else ""
                more += f", {self.segments} segments" if self.segments > 1 else ""
                more += ", padded" if self.padded else ""
                return f"rows(axis {self.axis}{more})"
            case Kind.SIZE:
                return f"size({self.times})"
            case Kind.PARTIAL:
                return f"partial({self.how})"
            case _:
                return str(self.kind.value)


ZERO = Placement(Kind.ZERO)
UNIFORM = Placement(Kind.UNIFORM)
#: how long a rank's batch is padded, and what is made of that
PADDED = Placement(Kind.UNIFORM, padded=True)
RATIO = Placement(Kind.RATIO)
TERM = Placement(Kind.TERM)
#: such a value divided by the number of the rank's samples
TERM_OF_MEAN = Placement(Kind.TERM, how="mean")
PER_RANK = Placement(Kind.PER_RANK)
#: a number divided by the number of the rank's samples: ``100 / x.size(0)``
INVERSE = Placement(Kind.PER_RANK, how="1 / size")
#: a whole number of times that of the rank's samples, not known how often, divided by a whole
#: number: ``windows.size(0) // n``
QUOTIENT = Placement(Kind.PER_RANK, how="size // n")
UNKNOWN = Placement(Kind.UNKNOWN)
SUM = Placement(Kind.PARTIAL, how="sum")
MEAN = Placement(Kind.PARTIAL, how="mean")
MAX = Placement(Kind.PARTIAL, how="max")
MIN = Placement(Kind.PARTIAL, how="min")

#: the same number on every rank
EQUAL = (Kind.ZERO, Kind.UNIFORM)


def rows(
    axis: int = 0, *, ragged: bool = False, times: int = 1, segments: int = 1, padded: bool = False
) -> Placement:
    """One axis runs over the rank's own samples."""
    return Placement(Kind.ROWS, axis, ragged, times, segments, padded=padded)


def size(times: int = 1) -> Placement:
    """A multiple of the number of the rank's samples."""
    return Placement(Kind.SIZE, times=times)


def mean_over(p: Placement) -> Placement:
    """A mean over rows: over as many on every rank, unless they are chosen or padded."""
    if p.padded:
        return PER_RANK
    return RATIO if p.ragged else MEAN


def join(a: Placement, b: Placement) -> Placement:
    """What holds where a value is one of two: the least placement above both, UNKNOWN where
    there is none.

    Only 0 and the same number on all ranks lie below others: a uniform number is its own mean,
    maximum and minimum over the ranks, and not its own sum.
    """
    if a == b:
        return a
    low, high = (b, a) if _rank(a) > _rank(b) else (a, b)
    if low.kind is Kind.ZERO:
        return size(0) if high.kind is Kind.SIZE else high
    if low.kind is high.kind is Kind.UNIFORM:
        return PADDED
    if high.kind is Kind.PER_RANK and low.kind is not Kind.UNKNOWN:
        return PER_RANK
    if high.kind is Kind.TERM:
        return PER_RANK if low.kind in EQUAL else UNKNOWN
    if low.kind is Kind.UNIFORM and high in (MEAN, MAX, MIN):
        return high
    if MEAN in (a, b) and Kind.RATIO in (a.kind, b.kind):
        return RATIO  # a mean is a sum divided by a number of samples
    if low.kind is high.kind is Kind.ROWS and low.axis == high.axis:
        return rows(
            low.axis,
            ragged=low.ragged or high.ragged,
            times=low.times if low.times == high.times else 0,
            segments=low.segments if low.segments == high.segments else 0,
            padded=low.padded or high.padded,
        )
    if low.kind is high.kind is Kind.SIZE:
        return size(0)
    if low.kind is Kind.SIZE and high == SUM:
        return SUM  # numbers of samples are added up over the ranks, whatever their factor
    return UNKNOWN


def joined(placements: Iterable[Placement]) -> Placement:
    """The join of any number; of none it is ZERO, which lies below all."""
    each = iter(placements)
    out = next(each, ZERO)
    for p in each:
        out = join(out, p)
    return out


_ORDER = {kind: n for n, kind in enumerate(Kind)}


def _rank(p: Placement) -> int:
    return _ORDER[p.kind]


# ---------------------------------------------------------------- arithmetic


def add(a: Placement, b: Placement) -> Placement:
    """``a + b``."""
    if a.kind is Kind.ZERO:
        return b
    if b.kind is Kind.ZERO:
        return a
    for p, q in ((a, b), (b, a)):
        if p == TERM_OF_MEAN and q in (MEAN, TERM_OF_MEAN):
            return q
        if p == TERM and (q == SUM or q.kind is Kind.SIZE):
            return SUM  # the rank adds up what its turns give
    if a.kind is b.kind is Kind.PARTIAL and a.how != b.how and "mean" in (a.how, b.how):
        return UNKNOWN
    if a.kind is b.kind is Kind.PARTIAL:
        # the greatest of sums is not the sum of the greatest
        return a if a == b and a.how in ("sum", "mean") else PER_RANK
    if a.kind is b.kind is Kind.SIZE:
        return size(a.times + b.times if a.times and b.times else 0)
    if Kind.SIZE in (a.kind, b.kind) and SUM in (a, b):
        return SUM
    for p, q in ((a, b), (b, a)):
        if p.kind is Kind.UNIFORM and q.kind is Kind.PARTIAL:
            return q if q.how != "sum" else PER_RANK  # neither a part nor the whole
        if p.kind is Kind.UNIFORM and q.kind is Kind.RATIO:
            return RATIO
    return elementwise((a, b))


def negate(a: Placement) -> Placement:
    """``-a``: the greatest becomes the least."""
    if a.kind is Kind.SIZE:
        return size(-a.times)
    return MIN if a == MAX else MAX if a == MIN else a


def subtract(a: Placement, b: Placement) -> Placement:
    """``a - b``."""
    return add(a, negate(b))


def multiply(a: Placement, b: Placement) -> Placement:
    """``a * b``: a uniform factor goes through every reduction by sum or mean."""
    for p, q in ((a, b), (b, a)):
        if p.kind is Kind.ZERO:
            # as many zeros as the other has elements, which is not known of what differs
            return q if q.kind in (Kind.ROWS, Kind.PER_RANK, Kind.UNKNOWN) else ZERO
        if p.kind is Kind.UNIFORM:
            if q.kind is Kind.SIZE:
                return size(0)  # the factor is not known here
            return PER_RANK if q in (MAX, MIN) else q
        if p.kind is Kind.SIZE and q in (MEAN, INVERSE):
            # a mean over the rank's samples times their number is their sum
            return SUM if q == MEAN else UNIFORM
        if p == INVERSE and q in (SUM, TERM):
            return divide(q, size())
    return elementwise((a, b))


def divide(a: Placement, b: Placement) -> Placement:
    """``a / b``."""
    if a.kind is Kind.ZERO:
        return ZERO
    if b.kind in EQUAL:
        return SUM if a.kind is Kind.SIZE else multiply(a, UNIFORM)
    if b.kind is Kind.SIZE and a in (SUM, TERM):
        return MEAN if a == SUM else TERM_OF_MEAN  # every rank has as many samples
    if b.kind is Kind.SIZE and a.kind in (Kind.SIZE, Kind.UNIFORM):
        return UNIFORM if a.kind is Kind.SIZE else INVERSE
    parts = (Kind.PARTIAL, Kind.SIZE, Kind.RATIO)
    if a.kind in parts and b.kind in parts and not {MAX, MIN} & {a, b}:
        return RATIO
    return elementwise((a, b))


def floor_divide(a: Placement, b: Placement, number: int | None) -> Placement:
    """``a // b``; ``number`` is what ``b`` is, where that is known."""
    if a.kind is b.kind is Kind.SIZE:
        return UNIFORM  # every rank has as many samples
    if a.kind is Kind.SIZE and b.kind is Kind.UNIFORM:
        if not a.times:
            return QUOTIENT
        if number is not None and a.times % number == 0:
            return size(a.times // number)
    return elementwise((a, b))


def elementwise(placements: Iterable[Placement]) -> Placement:
    """An operation on each element by itself: rows stay rows.

    A function of a partial sum is not a part of the function of the sum: it is PER_RANK. So are
    rows that meet a statistic of the rank's rows alone.
    """
    ps = [p for p in placements if p.kind not in EQUAL]
    if not ps:
        return UNIFORM
    if any(p.kind is Kind.UNKNOWN for p in ps):
        return UNKNOWN
    lying = [p for p in ps if p.kind is Kind.ROWS]
    if not lying or any(p.kind not in (Kind.ROWS, Kind.TERM) for p in ps):
        return PER_RANK
    known = {p.times for p in lying if p.times}
    if len(known) == 1:  # rows meet as many rows
        times = known.pop()
        lying = [p._replace(times=times) for p in lying]
    return joined(lying)


def in_turn(result: Placement, operands: Iterable[Placement], *, turn: bool) -> Placement:
    """How the result of an operation lies, given whether all that it is made of belongs to one
    turn of a loop over the rank's own batches (``turn``).

    Such a turn is one that the program has on one process too. So whatever is made in it of
    the batch alone, a mean as well as a norm, is the number of that turn; only sums and numbers
    of samples are kept apart, since they may be put together with those of other turns.
    """
    if turn:
        kept = (Kind.ROWS, Kind.SIZE, Kind.UNKNOWN, *EQUAL)
        return result if result.kind in kept or result in (SUM, TERM_OF_MEAN) else TERM
    if result.kind is Kind.TERM:
        # 0 + the value of a turn: the first of those that are added up
        return MEAN if result == TERM_OF_MEAN else SUM
    if result.kind is Kind.ROWS and any(p.kind is Kind.TERM for p in operands):
        return PER_RANK
    return result
