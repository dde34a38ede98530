"""What the parts of the probe share: what they are told (``Config`` in ``runs.py``), what they record, and what they keep in mind."""

from __future__ import annotations

import json
import os
from typing import Any

with open(os.environ["DPMIGRATE_PROBE"], encoding="utf-8") as _file:
    CONFIG: dict[str, Any] = json.load(_file)
RANK = int(os.environ.get("RANK", "0"))
PID = os.getpid()

RECORD: dict[str, Any] = {
    "rank": RANK,
    "steps": [],  # one for each optimizer step: optimizer, lr, gradient norm
    "losses": [],  # one for each backward: value, samples in the batch, step
    "passes": [],  # one for each iteration over a DataLoader
    "lines": [],  # (printed in the middle of a training pass, text, stdout | stderr | bar)
    "writes": {},  # file -> how often it was opened for writing or put in place
    "saves": {},  # checkpoint -> its whole path
    "wrapped": 0,
    "autocast": False,
    "batch_norm": False,
    "noise": False,  # noise was drawn by the sample
    "cut": False,
    "draws": False,  # random numbers of one generator for the whole process are drawn between a batch and its step
    "group_left": None,
}
STATE: dict[str, Any] = {
    "optimizers": [],
    "parameters": {},  # step -> the parameters of all optimizers after it
    "current": None,  # the pass over a DataLoader that the program is in
    "iterator": None,  # and its iterator, weakly
    "training": set(),  # the data that optimizer steps were made on
    "size": 0,
    "random": None,
    "scaled": {},
    "drawn": 0,  # noise since the last batch
    "fetching": False,  # inside the data set, whose randomness is seeded by the sample already
    "leaving": False,
}


def taken() -> list[int]:
    """The samples of the batch that was delivered last; none outside a pass."""
    now = STATE["current"]
    found: list[int] = now["batches"][now["delivered"] - 1] if now and now["delivered"] else []
    return found


def limit_reached() -> bool:
    """Whether the optimizer steps that were asked for are done."""
    return bool(CONFIG["steps"]) and len(RECORD["steps"]) >= CONFIG["steps"]
