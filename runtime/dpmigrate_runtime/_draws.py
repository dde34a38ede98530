"""What the DataLoaders of this process give: which pass over which data feeds the step.

Each batch moves the present moment on. What feeds a step is what has been drawn since the last step
of a wrapped model. A pass is told from a look at the data (``next(iter(loader))``) by its second
batch: until then nothing is said about it to the other ranks.
"""

from __future__ import annotations

import functools
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from ._samplers import ExactSampler, ShardSampler
from ._state import STATE


@dataclass(slots=True)
class Draw:
    """A pass over a DataLoader, and what the ranks should have in common of it."""

    iterator: weakref.ref[Any]
    divided: bool  # the ranks draw different parts
    whole: bool  # this rank draws from all of the data, by a sampler of torch's
    repeats: bool  # and may draw a sample twice
    order: int | None  # the number of the order that all ranks share; None where there is none
    said: str  # for people: which order
    counts: bool = False  # a pass and no look
    trains: bool = False  # drawn from where gradients are taken


def given(original: Any) -> Any:
    """``__next__`` of a DataLoader's iterator, noting what it gives."""

    main = threading.main_thread().ident

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        batch = original(self)
        if threading.get_ident() != main:
            # a thread that loads ahead draws at any time, and on each rank at another
            return batch
        STATE.loads = True
        STATE.moment += 1
        number = getattr(self, "_num_yielded", 1)
        draw = getattr(self, "_dpmigrate", None)
        if draw is None or number == 1:
            draw = self._dpmigrate = _begun(self)
        draw.counts = draw.counts or number > 1
        draw.trains = torch.is_grad_enabled()
        STATE.drawn[id(self._index_sampler)] = draw
        return batch

    return __next__


def _begun(iterator: Any) -> Draw:
    batches = iterator._index_sampler
    sampler = batches.sampler if isinstance(batches, BatchSampler) else batches
    divided = isinstance(sampler, DistributedSampler | ShardSampler | ExactSampler)
    plain = not isinstance(iterator._dataset, IterableDataset) and (
        batches is sampler or type(batches) is BatchSampler
    )
    order, said = _order(sampler, iterator._dataset)
    whole = plain and _draws_all(sampler, iterator._dataset)
    repeats = bool(getattr(sampler, "replacement", False))
    draw = Draw(weakref.ref(iterator), divided, whole, repeats, order, said)
    # where a pass is one batch, it looks like a look
    draw.counts = _length(batches) == 1
    return draw


def _length(sampler: Any) -> int:
    try:
        return len(sampler)
    except (TypeError, NotImplementedError):
        return 0


def _draws_all(sampler: Any, data: Any) -> bool:
    """Whether a pass draws as many samples as there are, by a sampler of torch's own."""
    if type(sampler) in (RandomSampler, WeightedRandomSampler):
        return len(sampler) >= len(data)
    return type(sampler) in (SequentialSampler, SubsetRandomSampler)


def _order(sampler: Any, data: Any) -> tuple[int | None, str]:
    """The number of the pass's order, the same on all ranks that draw from one; and in words."""
    if isinstance(sampler, ShardSampler) or (
        isinstance(sampler, DistributedSampler) and sampler.shuffle
    ):
        passes = getattr(sampler, "_passes", None)
        order = int(sampler.epoch if passes is None else passes.order)
        seed = sampler.shared.seed if isinstance(sampler, ShardSampler) else sampler.seed
        which = (
            ""
            if passes is None or passes.had[sampler.epoch] < 2
            else f", in pass {passes.had[sampler.epoch]} of it"
        )
        # hashes of numbers are the same in all processes
        number = hash((seed, order, _length(sampler))) % 2**52
        return number, f"epoch {sampler.epoch}{which} (seed {seed}, {type(data).__name__})"
    return None, ""


def next_step() -> None:
    """A step of a wrapped model is over."""
    STATE.before, STATE.drawn = STATE.drawn, {}


def order() -> int | None:
    """One number for the orders that feed this step; None where nothing can be said.

    It is the same on all ranks that go through their data together.
    """
    shared = [draw for draw in STATE.drawn.values() if draw.order is not None]
    if not shared or not all(draw.counts for draw in shared):
        return None
    return sum(draw.order or 0 for draw in shared) % 2**52


def told() -> str:
    """The orders that feed this step, in words."""
    return (
        " and ".join(sorted(draw.said for draw in STATE.drawn.values() if draw.order is not None))
        or "no order that the ranks share"
    )


def divides() -> bool:
    """Whether the ranks draw different parts of some data for this step or the one before."""
    return any(draw.divided for draws in (STATE.drawn, STATE.before) for draw in draws.values())


def undivided() -> list[tuple[Any, bool]]:
    """The DataLoader iterators that alone fed the last two steps, each from all of its data.

    And whether samples may be drawn twice.
    """
    both = [draw for key, draw in STATE.drawn.items() if draw.trains and key in STATE.before]
    if not both or any(draw.trains and not draw.whole for draw in STATE.drawn.values()):
        return []
    return [(one, draw.repeats) for draw in both if (one := draw.iterator()) is not None]
