"""What a judgement rests on, and how it is told.

Bounds are measured, not chosen to pass: in float64, DDP at the same global batch is within 1e-15 of one process after one step and within 1e-12 after 50
(Adam: 1e-9); in float32 within 1e-6 for SGD. Distances are relative to how far the parameters have moved.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Record = Mapping[str, Any]  # what the probe has written: see ``RECORD`` in its ``state``
#: relative distance of parameters, losses and gradients, by whether the runs were in float64
BOUND = {True: 1e-7, False: 2e-3}
EXACT = {True: 1e-12, False: 1e-6}


class Verdict(enum.Enum):
    """How a line came out."""

    EQUAL = "equal"
    BOUND = "within bound"
    DIFFERS = "DIFFERS"
    NONE = "not comparable"
    KNOWN = "known fault"  # of torch, not of the migration


@dataclass(frozen=True)
class Line:
    """One thing compared. ``needed``: there is no proof without it."""

    name: str
    verdict: Verdict
    text: str
    needed: bool = False


@dataclass(frozen=True)
class Distance:
    """How far the parameters of the two runs are apart after one step, relative to how far they have moved, and the first parameter that differs."""

    step: int
    relative: float
    parameter: str
    spread: float  # between the ranks, largest absolute difference
    moved: float = 1.0  # by the original, as a norm


@dataclass(frozen=True)
class Evidence:
    """Two runs: the original's record and those of the ranks, and what was compared while the runs were there.

    ``saved`` tells for each checkpoint a word of ``compare`` in the probe, and what is meant; ``texts`` holds the lines of both runs' small text files;
    ``left`` are processes that outlived the program, None where they cannot be looked for; ``aborted``
    are the ranks that were aborted after they had finished.
    """

    original: Record
    ranks: Sequence[Record]
    distances: Sequence[Distance] = ()
    float64: bool = True
    saved: Mapping[str, tuple[str, str]] | None = None
    texts: Mapping[str, tuple[Sequence[str], Sequence[str]]] = field(default_factory=dict)
    left: Sequence[str] | None = ()
    aborted: tuple[int, ...] = ()

    @property
    def cut(self) -> bool:
        """Whether the runs were ended before the program's end."""
        return bool(self.original["cut"])

    @property
    def comparable(self) -> tuple[int, str]:
        """So many steps can be compared number by number, and why no more."""
        runs = (self.original, *self.ranks)
        if any(i is None for r in runs for p in training(r) for batch in p["batches"] for i in batch):
            return 0, "the samples of a stream have no numbers, so the original could not be given the ranks' order"
        drawn = [r["draws"] for r in runs if r["draws"] is not None]
        lost = next((d.step for d in self.distances if not math.isfinite(d.moved)), None)
        if lost is not None and lost <= min(drawn, default=lost):
            return lost - 1, f"the original's own parameters are no numbers from step {lost} on (a smaller learning rate may help)"
        if drawn:  # mixing of samples, noise of another shape
            return min(drawn), f"random numbers are drawn between a batch and its step, by each rank its own, from step {min(drawn) + 1} on"
        return max((len(r["steps"]) for r in runs), default=0), ""

    def excused(self, line: Line) -> Line:
        """A difference that comes after what can be compared is none."""
        _, why = self.comparable
        return replace(line, verdict=Verdict.NONE, text=f"{why} ({line.text})") if why and line.verdict is Verdict.DIFFERS else line

    def near(self, value: float) -> Verdict:
        """The verdict on a relative distance."""
        return Verdict.EQUAL if value <= EXACT[self.float64] else Verdict.BOUND if value <= BOUND[self.float64] else Verdict.DIFFERS


def training(record: Record) -> list[Record]:
    """The passes over data in which gradients were computed."""
    return [p for p in record["passes"] if p["backwards"]]


def apart(a: float, b: float) -> float:
    """The relative distance of two numbers; infinite if only one of them is a number."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(abs(a), abs(b), 1e-12)
