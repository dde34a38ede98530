"""Records of runs as the probe leaves them, made by hand, and one line of what the judge says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpmigrate.verify.judge import Distance, Evidence, Verdict, judge


def a_pass(
    batches: Sequence[Sequence[int | None]], *, data: str = "D of 8", nth: int = 0, trains: bool = True, ended: bool = True, cut: bool = False, **more: Any
) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "data": data,
        "number": 0,
        "view": data,
        "nth": nth,
        "natural": None,
        "batches": batches,
        "delivered": len(batches),
        "ended": ended,
        "cut": cut,
    }
    kept["backwards"] = len(batches) if trains else 0
    return {**kept, "replacement": False, "length": 8, "batch": 4, "first_step": 0, **more}


def record(rank: int = 0, **more: Any) -> dict[str, Any]:
    steps = [{"optimizer": 0, "lr": [0.1], "gradient": 2.0}]
    base: dict[str, Any] = {"rank": rank, "steps": steps, "losses": [[1.0, 4, 0]], "passes": [], "lines": [], "writes": {}, "saves": {}}
    return {**base, "wrapped": 1, "cut": False, "draws": None, "next": None, "group_left": False, **more}


def judged(name: str, original: dict[str, Any], ranks: list[dict[str, Any]], distances: list[Distance] | None = None, **more: Any) -> tuple[Verdict, str]:
    near = [Distance(1, 1e-16, "w", 0.0)] if distances is None else distances
    found = {line.name: line for line in judge(Evidence(original, ranks, near, **more))}
    return found[name].verdict, found[name].text
