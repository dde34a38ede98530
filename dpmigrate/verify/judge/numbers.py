"""Parameters, losses, gradients, steps and learning rates."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import replace

from dpmigrate.verify.judge.evidence import Evidence, Line, Record, Verdict, apart


def parameters(e: Evidence) -> Iterator[Line]:
    """After the first and the last step that both runs took."""
    if not e.distances:
        yield Line("parameters", Verdict.NONE, "no optimizer step that both runs took was seen", needed=True)
        return
    upto, _ = e.comparable
    first = next((d for d in e.distances if e.near(d.relative) is Verdict.DIFFERS), None)
    for d in dict.fromkeys((e.distances[0], e.distances[-1])):
        where = f"; they part at step {first.step}, {first.parameter} first" if first is not None else ""
        text = f"{d.relative:.1e} of the distance moved{where}" if d.moved else f"the original does not move them{', the ranks do' if d.relative else ''}"
        line = Line(f"parameters after step {d.step}", e.near(d.relative), text, needed=True)
        yield line if first is not None and first.step <= upto else e.excused(line)


def ranks_alike(e: Evidence) -> Line:
    """Whether all ranks hold the same parameters after every step."""
    name = "ranks alike"
    if len(e.ranks) < 2 or not e.distances:
        return Line(name, Verdict.NONE, "one rank only" if len(e.ranks) < 2 else "no steps")
    parted = next((d for d in e.distances if d.spread > 0), None)
    if parted is None:
        return Line(name, Verdict.EQUAL, f"the parameters of all {len(e.ranks)} ranks are the same after every step")
    why = " (no DistributedDataParallel was built)" if not e.ranks[0]["wrapped"] else ""
    return Line(name, Verdict.DIFFERS, f"the ranks' parameters part at step {parted.step}, by {parted.spread:.1e}{why}")


#: value and samples of each backward
_Passes = list[tuple[float, int]]


def _by_step(record: Record) -> dict[int, _Passes]:
    """What was differentiated in each step."""
    out: dict[int, _Passes] = {}
    for value, samples, step in record["losses"]:
        out.setdefault(step, []).append((value, max(samples, 1)))
    return out


def loss_curves(e: Evidence) -> list[tuple[int, float, float]]:
    """For each step that both runs took: the original's loss and that of all ranks together, their mean or, for a loss that sums over the batch, their sum.

    Of the backwards of a step, means weighted by their samples; one may be a sum and another a mean.
    """
    mine, theirs = _by_step(e.original), [_by_step(r) for r in e.ranks]
    found = []
    for s in sorted(set(mine).intersection(*theirs)):
        own, ranks = mine[s], [t[s] for t in theirs]
        if any(len(r) != len(own) for r in ranks):
            own, ranks = [_mean(own)], [[_mean(r)] for r in ranks]
        together = [_together(value, [r[i] for r in ranks]) for i, (value, _) in enumerate(own)]
        found.append((s + 1, _mean(own)[0], _mean(list(zip(together, (n for _, n in own), strict=True)))[0]))
    return found


def _mean(passes: _Passes) -> tuple[float, int]:
    count = sum(n for _, n in passes)
    return sum(v * n for v, n in passes) / count, count


def _together(own: float, ranks: _Passes) -> float:
    """The ranks' mean or sum, whichever is nearer to the original's."""
    return min((_mean(ranks)[0], sum(v for v, _ in ranks)), key=lambda v: apart(own, v))


def losses(e: Evidence) -> Line:
    """The loss of each step."""
    curve = loss_curves(e)
    line = _compared(e, "loss per step", curve, "no scalar loss was differentiated in both runs")
    worst = max((apart(a, b) for _, a, b in curve), default=0.0)
    if line.verdict is Verdict.DIFFERS and worst <= _SINGLE and all(_is_single(value) for value, _, _ in e.original["losses"]):
        return replace(line, verdict=Verdict.BOUND, text=f"{len(curve)} steps, at most {worst:.1e} apart; the program computes its loss in single precision")
    return line


_SINGLE = 1e-6  # rounding of means in single precision


def _is_single(value: float) -> bool:
    """Whether the number is one of single precision."""
    return math.isfinite(value) and abs(value) < 1e38 and struct.unpack("f", struct.pack("f", value))[0] == value


def gradients(e: Evidence) -> Line:
    """The norm of all gradients at each step."""
    pairs = [(a["gradient"], b["gradient"]) for a, b in zip(e.original["steps"], e.ranks[0]["steps"], strict=False)]
    known = [(i, a, b) for i, (a, b) in enumerate(pairs, 1) if a is not None and b is not None]
    return _compared(e, "gradient norm", known, "no gradients were seen at a step")


def _compared(e: Evidence, name: str, steps: list[tuple[int, float, float]], none: str) -> Line:
    if not steps:
        return Line(name, Verdict.NONE, none)
    far = [(step, apart(a, b)) for step, a, b in steps]
    at, worst = max(far, key=lambda s: s[1])
    text = f"{len(steps)} steps, at most {worst:.1e} apart" + (f" (step {at})" if worst else "")
    line = Line(name, e.near(worst), text)
    if line.verdict is not Verdict.DIFFERS:
        return line
    first, a, b = next(s for s, (_, d) in zip(steps, far, strict=True) if e.near(d) is Verdict.DIFFERS)
    line = Line(name, Verdict.DIFFERS, f"step {first}: {a:.6g} and {b:.6g}, a ratio of {b / a if a else float('inf'):.3g}")
    return line if first <= e.comparable[0] else e.excused(line)


def steps(e: Evidence) -> Line:
    """How many optimizer steps were made."""
    counts, own = [len(r["steps"]) for r in e.ranks], len(e.original["steps"])
    same = set(counts) == {own}
    text = f"{own}{' (cut)' if e.cut else ''}" if same else f"original {own}, ranks {counts}"
    return Line("optimizer steps", Verdict.EQUAL if same else Verdict.DIFFERS, text)


def rates(e: Evidence) -> Line:
    """The learning rates at each step."""
    own = e.original["steps"]
    for i, a in enumerate(own):
        for r in e.ranks:
            if i < len(r["steps"]) and any(apart(x, y) > 1e-9 for x, y in zip(a["lr"], r["steps"][i]["lr"], strict=False)):
                return Line("learning rate", Verdict.DIFFERS, f"step {i + 1}: original {a['lr']}, rank {r['rank']} {r['steps'][i]['lr']}")
    last = own[-1]["lr"] if own else []
    return Line("learning rate", Verdict.EQUAL if last else Verdict.NONE, f"the same at every step, {last} at the last" if last else "no steps")
