"""Samplers that give each rank its share of one draw."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import torch
import torch.utils.data
from torch.utils.data import Dataset, Sampler

from ._seeds import OwnStreams, SeedOfPasses
from ._state import rank as own_rank
from ._state import world_size

#: items that are drawn at a time
PIECE: Final = 2**16
#: how far the orders of one epoch lie apart, where it has several passes: no program has so many
#: epochs
_FURTHER: Final = 2**20
T_co = TypeVar("T_co", covariant=True)


class Passes:
    """Which order each pass over a sampler has, so that none is the order of a pass before.

    An order is a number that is added to the seed, as torch adds the epoch. While nobody tells the
    epoch, pass k has the order of epoch k. After ``set_epoch(e)`` the next pass has that of epoch e,
    exactly as in torch, unless a pass has had it before: where ``set_epoch`` comes after its pass, or
    an epoch has several. Those passes have further orders of epoch e, by which later epochs are not
    moved: a training that is resumed at epoch e has the orders of one that was not interrupted.
    """

    def __init__(self) -> None:
        self.epoch = 0  # of the pass that is under way, or is told for the next one
        self.order: int | None = None  # of the pass that began last
        self.told = False
        self.had: Counter[int] = Counter()  # how many passes each epoch has had

    def tell(self, epoch: int) -> None:
        """``set_epoch``: the epoch of the passes from now on. Raises TypeError for what is no number."""
        self.epoch, self.told = int(epoch), True

    def begin(self) -> int:
        """The order of the pass that begins."""
        if not self.told and self.order is not None:
            self.epoch += 1
        self.order = self.epoch + self.had[self.epoch] * _FURTHER
        self.had[self.epoch] += 1
        return self.order


class DistributedSampler(torch.utils.data.DistributedSampler[T_co]):
    """torch's DistributedSampler, which goes on to the next order by itself.

    A missing or late ``set_epoch`` repeats no order. ``set_epoch(e)`` gives exactly torch's order of
    epoch e, for the next pass; without it pass k has that of epoch k. Further passes of one epoch
    have orders of their own (``Passes``). ``num_replicas`` and ``rank`` are those of the job, also
    without a process group. A pass begins when the first of its indices is asked for: with workers
    in ``iter(loader)``, without them at the first batch. Without a ``seed`` the orders follow the
    program's own, the one that torch has when the first pass begins (``SeedOfPasses``).
    Errors are those of torch. (torch.utils.data.distributed.DistributedSampler) An empty data set
    in random order is one too, as for the ``RandomSampler`` that it stands for.

    Raises:
        ValueError: there is nothing to draw from.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int | None = None,
        drop_last: bool = False,
    ) -> None:
        if shuffle and len(dataset) == 0:  # type: ignore[arg-type]
            raise ValueError("num_samples should be a positive integer value, but got num_samples=0")
        self._passes = Passes()
        world = world_size() if num_replicas is None else num_replicas
        mine = own_rank() if rank is None else rank
        super().__init__(dataset, world, mine, shuffle, 0, drop_last)
        self._seed = SeedOfPasses(seed if shuffle else seed or 0)

    @property
    def seed(self) -> int:
        """The seed of the orders."""
        return self._seed()

    @seed.setter
    def seed(self, seed: int) -> None:
        # torch's constructor, and programs that set the attribute by hand
        self._seed = SeedOfPasses(seed)

    @property
    def epoch(self) -> int:
        """The epoch of the pass that is under way, or is told for the next one; 0 at first."""
        return self._passes.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        # torch's constructor, and programs that set the attribute by hand
        if epoch != self._passes.epoch:
            self._passes.tell(epoch)

    def set_epoch(self, epoch: int) -> None:
        """The next pass has torch's order of this epoch."""
        self._passes.tell(epoch)

    def __iter__(self) -> Iterator[T_co]:
        order = self._passes.begin()
        if not self.shuffle:
            # torch's list of all indices has no room where a data set only says that it is very long
            whole = len(self.dataset)  # type: ignore[arg-type]
            return (i % whole for i in range(self.rank, self.total_size, self.num_replicas))  # type: ignore[misc]
        drawing = copy.copy(self)
        # torch's own code draws by seed + epoch
        drawing._passes = Passes()
        drawing._passes.tell(order)
        return torch.utils.data.DistributedSampler.__iter__(drawing)


class SharedDraw:
    """One pass over a sampler (or batch sampler) that comes out the same on every rank, whatever their random streams hold."""

    def __init__(self, inner: Any, seed: int | None) -> None:
        self.inner = inner
        self._seed = SeedOfPasses(seed)
        self.epoch = 0

    @property
    def seed(self) -> int:
        """The seed of the draws, the same on all ranks."""
        return self._seed()

    @seed.setter
    def seed(self, seed: int) -> None:
        self._seed = SeedOfPasses(seed)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        for part in self._chain():
            if hasattr(part, "set_epoch"):
                # further passes of an epoch have large numbers: numpy takes seeds of 32 bits
                part.set_epoch(epoch % 2**32)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.pieces())

    def __len__(self) -> int:
        return len(self.inner)

    def draw(self) -> list[Any]:
        """All items of the pass, drawn under the seed and the epoch."""
        return list(self)

    def pieces(self, size: int = PIECE) -> Iterator[list[Any]]:
        """The same in pieces, of which the last is shorter (or empty): a sampler may go on for ever."""
        found = [getattr(part, "generator", None) for part in self._chain()]
        streams = OwnStreams(self.seed + self.epoch, [one for one in found if isinstance(one, torch.Generator)])
        with streams.inside():
            items = iter(self.inner)
        while True:
            with streams.inside():
                piece = list(itertools.islice(items, size))
            yield piece
            if len(piece) < size:
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
        self._passes = Passes()

    def __iter__(self) -> Iterator[Any]:
        """Of every row of ``world_size()`` items this rank's; the last row is filled up from the start of the pass."""
        self._begin()
        pieces = self.shared.pieces()
        head = rest = next(pieces)
        for piece in pieces:
            whole = len(rest) // world_size() * world_size()
            yield from rest[:whole][own_rank() :: world_size()]
            rest = rest[whole:] + piece
        if rest is head:
            yield from self._part(list(head))
            return
        if len(rest) % world_size() and not self.drop_last:
            rest = rest + head[: -len(rest) % world_size()]
        yield from rest[: len(rest) // world_size() * world_size()][own_rank() :: world_size()]

    def _begin(self) -> None:
        """Give the pass that begins its order."""
        order = self._passes.begin()
        if self._passes.told:
            self.shared.set_epoch(order)
        else:
            # samplers of the program's own that have epochs are told what the program tells
            self.shared.epoch = order

    def __len__(self) -> int:
        return self._share(len(self.shared.inner))

    def _part(self, items: list[Any]) -> list[Any]:
        world = world_size()
        count = self._share(len(items)) * world
        while items and len(items) < count:
            items += items[: count - len(items)]
        return items[:count][own_rank() :: world]

    def _share(self, length: int) -> int:
        world = world_size()
        return length // world if self.drop_last else -(-length // world)

    def __getattr__(self, name: str) -> Any:
        """What else is asked of it is the whole sampler's: ``loader.sampler.indices``, ``.num_samples``, ``.weights``."""
        if name.startswith("__") or name == "shared":
            raise AttributeError(name)
        return getattr(self.shared.inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """What else it is given is the whole sampler's, which draws by it: ``loader.sampler.weights = weights``."""
        if name in ("shared", "drop_last", "_passes") or name.startswith("__"):
            object.__setattr__(self, name, value)
        else:
            setattr(self.shared.inner, name, value)

    @property
    def whole(self) -> Any:
        """The sampler of which this is a share."""
        return self.shared.inner

    @property
    def epoch(self) -> int:
        """The epoch of the pass that is under way, or is told for the next one; 0 at first."""
        return self._passes.epoch

    def set_epoch(self, epoch: int) -> None:
        """Choose the draw of this epoch for the next pass, as in ``DistributedSampler``."""
        self._passes.tell(epoch)
        self.shared.set_epoch(self._passes.epoch)


class SplitSampler(ShardSampler):
    """This rank's part of every batch of a shared draw, as nn.DataParallel scatters a batch: as many batches as there were, padded to equal parts."""

    def __iter__(self) -> Iterator[Any]:
        self._begin()
        # one by one, as a DataLoader asks for them: a batch sampler may prepare the data set for the batch that it gives next
        for batch in itertools.chain.from_iterable(self.shared.pieces(1)):
            yield self._part(list(batch))

    def __len__(self) -> int:
        return len(self.shared.inner)


class ExactSampler(Sampler[Any]):
    """This rank's items of a shared draw, nothing padded: every world_size-th one, or a block of neighbours."""

    def __init__(self, draw: SharedDraw, blocks: bool) -> None:
        self.shared = draw
        self.blocks = blocks

    def __iter__(self) -> Iterator[Any]:
        items = self.shared.draw()
        # a sampler that draws does so anew for the next pass; what counts its epochs by itself is not told of them
        self.shared.epoch += 1
        return iter(items[exact_share(len(items), self.blocks)])

    def __len__(self) -> int:
        length = len(self.shared.inner)
        return len(range(length)[exact_share(length, self.blocks)])


def exact_share(length: int, blocks: bool) -> slice:
    """Which of ``length`` items are this rank's: r, r+W, r+2W, ... or, in blocks, those from r*length/W to (r+1)*length/W."""
    if blocks:
        return slice(own_rank() * length // world_size(), (own_rank() + 1) * length // world_size())
    return slice(own_rank(), None, world_size())


def shard_sampler(sampler: Any, drop_last: bool = False) -> ShardSampler:
    """A sampler for this rank made from any other one (weighted, subset, own): one draw for all ranks, strided over them.

    The draw depends on the seed that torch's generator has when the first pass begins (the same on all ranks) and on ``set_epoch``; torch, random and
    numpy streams and the sampler's own generator are seeded for it and then put back. It is padded to equal length by repeating
    from its start, or cut with ``drop_last``: a loader that drops its last batch needs that, since padding could fill this batch.
    A sampler with random state elsewhere must keep that equal on all ranks itself.
    """
    return sampler if isinstance(sampler, ShardSampler) else ShardSampler(SharedDraw(sampler, None), drop_last)
