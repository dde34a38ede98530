"""Which edits may be missing or stand elsewhere without harm in a program, and why.

It is asked only of what the proof finds equal: an edit that is listed here is still a fault where the numbers differ. What is proved
equal and not listed counts as unnoticed. A reason says why the program is right all the same, never that the proof is blind.
"""

from __future__ import annotations

from tests.mutation.mutants import Described

_MOVED = "what runs between the two places does not need it"
#: (label, way) -> why a program may be right with this fault; ``*`` stands for every way
REASONS: dict[tuple[str, str], str] = {
    ("ddp.cleanup", "*"): "the program ends there, and the system takes down the process group",
    ("ddp.seed_ranks", "*"): "nothing random is drawn while the program trains",
    (".set_epoch()", "*"): "the sampler does not shuffle, or counts its passes by itself",
    ("ddp.next_epoch", "*"): "the sampler does not shuffle, or counts its passes by itself",
    ("ddp.accumulate", "*"): "gradients are averaged more often than needed, to the same sum",
    ("DPM601", "finding missing"): "every rank evaluates the full set, which is exact",
    ("without shuffle=", "missing"): "the loader is told not to shuffle",
    (".module", "missing"): "the model has no buffers: the wrapper's forward exchanges nothing",
    **{
        (name, way): _MOVED
        for name in ("ddp.setup", "ddp.wrap", "ddp.barrier", ".GradScaler()")
        for way in ("other side", "too early", "too late", "one level out", "one level in")
    },
}


def reason(said: Described) -> str:
    """Why the program may be right with this fault; '' where it cannot be."""
    every_way = REASONS.get((said.label, "*"), "")
    return REASONS.get((said.label, said.way), every_way)
