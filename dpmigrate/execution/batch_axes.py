"""Tests of how many axes a batch has: ``if x.dim() == 2: x = x.unsqueeze(0)``.

Code that works for one sample as well as for a batch gives what has too few axes one more in front.
Where it is not known how many a batch from a loader has, it is taken to have all of them: in the other
branch its samples would lie along another axis, as if all of them were one. The user is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dpmigrate.execution.objects import Location
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.values import Data, data

if TYPE_CHECKING:
    from dpmigrate.execution.branches import BranchParts
    from dpmigrate.execution.machine import Frame

#: the event of a branch that is left out
TAKEN = "axes of a batch"
_METHODS = ("dim", "ndimension")


def asked(m: BranchParts, test: ast.expr, frame: Frame) -> list[Location]:
    """Where batches are stored of which a test asks how many axes they have, as is not known."""
    places = (m.location(x, frame) for x in _counted(test))
    return [at for at in dict.fromkeys(places) if at is not None and _is_batch(m, at)]


def moved(m: BranchParts, places: Sequence[Location]) -> bool:
    """Whether samples that lay along the first axis lie along another one now."""
    return any(d.placement.kind is Kind.ROWS and d.placement.axis for at in places for d in data(m.heap.read(at) or ()))


def _is_batch(m: BranchParts, at: Location) -> bool:
    held = m.heap.read(at) or ()
    return bool(held) and all(
        isinstance(a, Data) and a.placement.kind is Kind.ROWS and not a.placement.axis and a.axes is None and bool(a.sources)
        for a in held
    )


def _counted(test: ast.expr) -> Iterator[ast.expr]:
    """``x`` of ``x.dim()``, ``x.ndim``, ``len(x.shape)`` and ``len(x.size())``."""
    for n in ast.walk(test):
        match n:
            case ast.Call(func=ast.Attribute(value=x, attr=name), args=[]) if name in _METHODS:
                yield x
            case ast.Attribute(value=x, attr="ndim"):
                yield x
            case ast.Call(func=ast.Name("len"), args=[ast.Attribute(value=x, attr="shape")]):
                yield x
            case ast.Call(func=ast.Name("len"), args=[ast.Call(func=ast.Attribute(value=x, attr="size"), args=[])]):
                yield x
