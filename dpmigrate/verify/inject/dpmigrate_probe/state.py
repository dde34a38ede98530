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
    "names": [],  # of the optimizers' parameters
    "passes": [],  # one for each iteration over a DataLoader, see data.py
    "next": None,  # of the training pass that the cut did not let begin: its view, and the first indices of its sampler
    "lines": [],  # (printed in the middle of a training pass, text, stdout | stderr | bar); the first is ``where`` until the end
    "writes": {},  # file -> each ``when`` it was opened for writing or put in place; ``where`` until the end
    "saves": {},  # checkpoint -> its whole path
    "wrapped": 0,
    "autocast": False,
    "retyped": False,  # the program has changed the type of a model by itself
    "batch_norm": False,
    "noise": False,  # noise was drawn by the sample
    "cut": False,
    "draws": None,  # the first step (from 0) before which random numbers of one generator for the whole process were drawn after its batch
    "places": [],  # (kind of event, file, line) of what is recorded here, by the program's lines; each once
    "group_left": None,
    "ended": False,  # the script has come to its end, without an exception or a status of its own
}
STATE: dict[str, Any] = {
    "optimizers": [],
    "named": 0,  # so many optimizers' parameters have names
    "parameters": {},  # step -> the parameters of all optimizers after it
    "current": None,  # the pass over a DataLoader that the program is in
    "iterator": None,  # and its iterator, weakly
    "fresh": [],  # (pass, its iterator, weakly) of each batch delivered, with gradients, since the last backward
    "fed": set(),  # the views that backwards since the last step rested on
    "training": set(),  # the views of data that optimizer steps were made on
    "data": {},  # type and length -> the data sets seen, so that two of a kind are told apart
    "queues": {},  # view -> the other run's passes over these samples, in order
    "size": 0,
    "random": None,
    "scaled": {},
    "drawn": 0,  # noise since the last batch
    "fetching": False,  # inside the data set, whose randomness is seeded by the sample already
    "owning": False,  # the guard itself is writing
    "recording": False,  # this is the script's own process
    "allowed": [],
    "leaving": False,
    "places": set(),  # what becomes the record's
    "status": None,  # what sys.exit was given last
}


def where() -> int:
    """The pass that the program is in, by its number; -1 outside passes before the first step, -2 between passes."""
    now = STATE["current"]
    if now is not None:
        return next(i for i, p in enumerate(RECORD["passes"]) if p is now)
    return -2 if RECORD["steps"] else -1


def when(place: int) -> str:
    """before | training | between, for what ``where`` told: whether a pass trains is known when it is over."""
    if place < 0:
        return "before" if place == -1 else "between"
    p = RECORD["passes"][place]
    return "training" if p["backwards"] else "between" if p["first_step"] else "before"


def taken() -> list[int | None]:
    """The samples of the batch that was delivered last; none outside a pass."""
    now = STATE["current"]
    found: list[int | None] = now["batches"][now["delivered"] - 1] if now and now["delivered"] else []
    return found


def limit_reached() -> bool:
    """Whether the optimizer steps that were asked for are done."""
    return bool(CONFIG["steps"]) and len(RECORD["steps"]) >= CONFIG["steps"]
