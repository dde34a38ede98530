"""Samplers that give each rank its share of one draw."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch.utils.data import Sampler

from ._seeds import OwnStreams, common_seed
from ._state import rank, world_size

#: items that are drawn at a time
PIECE: Final = 2**16


class SharedDraw:
    """One pass over a sampler (or batch sampler) that comes out the same on every rank, whatever their random streams hold."""

    def __init__(self, inner: Any, seed: int) -> None:
        self.inner = inner
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        for part in self._chain():
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.pieces())

    def __len__(self) -> int:
        return len(self.inner)

    def draw(self) -> list[Any]:
        """All items of the pass, drawn under the seed and the epoch."""
        return list(self)

    def pieces(self) -> Iterator[list[Any]]:
        """The same in pieces, of which the last is shorter (or empty): a sampler may go on for ever."""
        found = [getattr(part, "generator", None) for part in self._chain()]
        streams = OwnStreams(self.seed + self.epoch, [one for one in found if isinstance(one, torch.Generator)])
        with streams.inside():
            items = iter(self.inner)
        while True:
            with streams.inside():
                piece = list(itertools.islice(items, PIECE))
            yield piece
            if len(piece) < PIECE:
                return

    def _chain(self) -> Iterator[Any]:
        # a batch sampler holds the sampler that draws as .sampler
        part, seen = self.inner, set[int]()
        while part is not None and id(part) not in seen:
            seen.add(id(part))
            yield part
            part = getattr(part, "sampler", None)


class ShardSampler(Sampler[Any]):
    """This rank's equal share of a shared draw, as torch's DistributedSampler does it for a permutation: padded or cut, strided."""

    def __init__(self, draw: SharedDraw, drop_last: bool = False) -> None:
        self.shared = draw
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[Any]:
        """Of every row of ``world_size()`` items this rank's; the last row is filled up from the start of the pass."""
        pieces = self.shared.pieces()
        head = rest = next(pieces)
        for piece in pieces:
            whole = len(rest) // world_size() * world_size()
            yield from rest[:whole][rank() :: world_size()]
            rest = rest[whole:] + piece
        if rest is head:
            yield from self._part(list(head))
            return
        if len(rest) % world_size() and not self.drop_last:
            rest = rest + head[: -len(rest) % world_size()]
        yield from rest[: len(rest) // world_size() * world_size()][rank() :: world_size()]

    def __len__(self) -> int:
        return self._share(len(self.shared.inner))

    def _part(self, items: list[Any]) -> list[Any]:
        world = world_size()
        count = self._share(len(items)) * world
        while items and len(items) < count:
            items += items[: count - len(items)]
        return items[:count][rank() :: world]

    def _share(self, length: int) -> int:
        world = world_size()
        return length // world if self.drop_last else -(-length // world)

    def __getattr__(self, name: str) -> Any:
        """What else is asked of it is the whole sampler's: ``loader.sampler.indices``, ``.num_samples``, ``.weights``."""
        if name.startswith("__") or name == "shared":
            raise AttributeError(name)
        return getattr(self.shared.inner, name)

    @property
    def whole(self) -> Any:
        """The sampler of which this is a share."""
        return self.shared.inner

    @property
    def epoch(self) -> int:
        """The epoch that ``set_epoch`` chose last; 0 at first."""
        return self.shared.epoch

    def set_epoch(self, epoch: int) -> None:
        """Choose the draw of this epoch; without it every epoch repeats the first one (as with DistributedSampler)."""
        self.shared.set_epoch(epoch)


class SplitSampler(ShardSampler):
    """This rank's part of every batch of a shared draw, as nn.DataParallel scatters a batch: as many batches as there were, padded to equal parts."""

    def __iter__(self) -> Iterator[Any]:
        return (self._part(list(batch)) for batch in self.shared)

    def __len__(self) -> int:
        return len(self.shared.inner)


class ExactSampler(Sampler[Any]):
    """This rank's items of a shared draw, nothing padded: every world_size-th one, or a block of neighbours."""

    def __init__(self, draw: SharedDraw, blocks: bool) -> None:
        self.shared = draw
        self.blocks = blocks

    def __iter__(self) -> Iterator[Any]:
        items = self.shared.draw()
        return iter(items[exact_share(len(items), self.blocks)])

    def __len__(self) -> int:
        length = len(self.shared.inner)
        return len(range(length)[exact_share(length, self.blocks)])


def exact_share(length: int, blocks: bool) -> slice:
    """Which of ``length`` items are this rank's: r, r+W, r+2W, ... or, in blocks, those from r*length/W to (r+1)*length/W."""
    if blocks:
        return slice(rank() * length // world_size(), (rank() + 1) * length // world_size())
    return slice(rank(), None, world_size())


def shard_sampler(sampler: Any) -> ShardSampler:
    """A sampler for this rank made from any other one (weighted, subset, own): one draw for all ranks, strided over them.

    The draw depends on the seed of torch's generator (the same on all ranks after ``setup``) and on ``set_epoch``; torch, random and
    numpy streams and the sampler's own generator are seeded for it and then put back. It is padded to equal length by repeating
    from its start. A sampler with random state elsewhere must keep that equal on all ranks itself.
    """
    return sampler if isinstance(sampler, ShardSampler) else ShardSampler(SharedDraw(sampler, common_seed()))
