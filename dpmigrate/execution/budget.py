"""What executions may cost: one program, and all that is executed while a program is planned.

The unit is a step, a statement or an expression. What takes as long without being one, as the join
of two large states or the comparison of what a call had read, is counted as so many. Nothing is
measured in seconds: the same program ends in the same place on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: steps of one execution; a program that takes more ends as "not understood"
STEPS = 250_000
#: steps of all executions for one planning: of the original, of each result, and with the defaults
PLANNED = 1_000_000
#: places of the store that are gone through in the time of a step
PLACES = 32


@dataclass(slots=True)
class Planning:
    """A program that is planned: the steps that are left, and why its original was not executed to the end."""

    left: int
    too_large: str | None = None


_UNDER_WAY: list[Planning] = []


@contextmanager
def planning() -> Iterator[None]:
    """All that is executed here is for one program."""
    _UNDER_WAY.append(Planning(PLANNED))
    try:
        yield
    finally:
        _UNDER_WAY.pop()


def under_way() -> Planning | None:
    """The planning under way, if there is one."""
    return _UNDER_WAY[-1] if _UNDER_WAY else None


def allowed() -> int:
    """The steps that an execution may take now."""
    return min([STEPS, *(p.left for p in _UNDER_WAY[-1:])])


def spend(steps: int) -> None:
    """An execution has taken so many steps."""
    for p in _UNDER_WAY[-1:]:
        p.left = max(0, p.left - steps)
