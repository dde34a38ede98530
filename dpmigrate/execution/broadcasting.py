"""How operands lie in what is made of them element by element, by their axes
(https://numpy.org/doc/stable/user/basics.broadcasting.html).
"""

from __future__ import annotations

from collections.abc import Iterable

from dpmigrate.execution import placements
from dpmigrate.execution.derivation import data_in
from dpmigrate.execution.placements import Kind, Placement
from dpmigrate.execution.values import (
    Atom,
    Const,
    Data,
    Value,
    placement_of,
)


def aligned(operands: Iterable[Value]) -> list[Placement]:
    """How operands lie in what is made of them element by element.

    Axes are aligned from the last one
    (https://numpy.org/doc/stable/user/basics.broadcasting.html). An operand whose number of
    axes is not known is taken to have as many as the others. Where the axes of the samples come
    to lie beside each other, every sample meets every other one: PER_RANK.
    """
    counts = [_axes(v) for v in operands]
    most = max((n for n in counts if n is not None), default=None)
    found: list[Placement] = []
    known_rows: set[int] = set()
    for v, n in zip(operands, counts, strict=True):
        p = placement_of(v)
        if p.kind is Kind.ROWS and n is not None and most is not None:
            p = p._replace(axis=p.axis + most - n)
            known_rows.add(p.axis)
        found.append(p)
    if len(known_rows) > 1:
        return [placements.PER_RANK if p.kind is Kind.ROWS else p for p in found]
    return found


def crossed(operands: Iterable[Value], lying: Iterable[Placement]) -> bool:
    """Whether the samples of operands meet each other in what is made of them element by element,
    where they lie as ``aligned`` says.
    """
    pairs = zip(operands, lying, strict=True)
    return any(p == placements.PER_RANK and placement_of(v).kind is Kind.ROWS for v, p in pairs)


def may_cross(operands: Iterable[Value]) -> bool:
    """Whether samples of a column ``(B, 1)`` meet each other where rows beside it are a vector ``(B,)``, of which it is not known whether they are."""
    rows = [d for v in operands for d in data_in([v]) if d.placement.kind is Kind.ROWS and d.placement.axis == 0]
    return any(d.axes == 2 and d.lengths[-1:] == (1,) for d in rows) and any(d.axes is None for d in rows)


def axes_of(operands: Iterable[Value]) -> int | None:
    """The number of axes of what is made of operands element by element.

    What is the same on all ranks, and of unknown form, is taken to have no more than rows with
    several axes, as in ``aligned``; rows have as many as rows with which they lie sample by sample.
    """
    operands = list(operands)
    counts = [_axes(v) for v in operands]
    most = max((n for n in counts if n is not None), default=0)
    unknown = [placement_of(v) for v, n in zip(operands, counts, strict=True) if n is None]
    beside = [placement_of(v) for v, n in zip(operands, counts, strict=True) if n == most]
    fitting = [placements.UNIFORM, *(p for p in beside if p.kind is Kind.ROWS and not p.axis)]
    if unknown and (most < 2 or any(p not in fitting for p in unknown)):
        return None
    return most


def lengths_of(operands: Iterable[Value]) -> tuple[int | None, ...]:
    """The lengths of the axes of what is made element by element of one tensor and of numbers."""
    found = [v for v in operands if not all(isinstance(a, Const) or _is_number(a) for a in v)]
    only = found[0][0] if len(found) == 1 and len(found[0]) == 1 else None
    return only.lengths if isinstance(only, Data) and len(only.lengths) == only.axes else ()


def _is_number(atom: Atom) -> bool:
    return isinstance(atom, Data) and atom.kind == "number" and atom.placement.kind is not Kind.ROWS


def bare(operands: Iterable[Value]) -> bool:
    """Whether what is made of operands element by element may have the axis of the samples alone:
    one of them may, and none is known to have more.
    """
    found = list(data_in(operands))
    return any(d.bare for d in found) and all(d.axes is None or d.axes < 2 for d in found)


def _axes(v: Value) -> int | None:
    """The number of axes of a value; a plain number has none."""
    counts = {0 if d.kind == "number" and d.placement.kind is not Kind.ROWS else d.axes
              for d in data_in([v])}  # fmt: skip
    if len(counts) > 1:
        return None
    return next(iter(counts), 0)
