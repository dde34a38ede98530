"""DataLoaders: equal shares for training, exact shares for evaluation."""

from __future__ import annotations

import copy
import itertools
import operator
import warnings
import weakref
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data import DistributedSampler as OfTorch

from ._samplers import DistributedSampler, ExactSampler, ShardSampler, SharedDraw, SplitSampler, exact_share
from ._seeds import common_seed, main_seed, rank_generator
from ._state import rank, world_size

_KEPT = (
    "num_workers",
    "collate_fn",
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
    "prefetch_factor",
    "persistent_workers",
)
#: what a clone has of its own: DataLoader forbids setting most of it afterwards
_OWN = ("batch_size", "drop_last", "sampler", "batch_sampler", "generator")
_SHARDS: weakref.WeakKeyDictionary[DataLoader[Any], dict[bool, DataLoader[Any]]] = weakref.WeakKeyDictionary()


def local_batch(size: int) -> int:
    """This rank's part of a global batch of ``size`` samples, so that steps and learning rate keep their meaning.

    Raises ValueError when the parts would not be equal, TypeError when ``size`` is no whole number.
    """
    size, world = operator.index(size), world_size()
    if size >= 1 and size % world == 0:
        return size // world
    below = size // world * world
    usable = f"{below} or {below + world}" if below >= world else f"{world}"
    raise ValueError(f"a global batch of {size} cannot be divided over {world} process(es) equally; nearest usable: {usable}")


def local_rows(batch: Any, pad: bool = False) -> Any:
    """This rank's rows of a ``batch`` that every rank has alike: row i goes to rank i % world_size, as ``DistributedSampler`` deals samples.

    For programs that draw each batch by themselves, inside ``same_stream()``, or cut it of what all ranks have: what all ranks train on together is the
    batch that one process would have. A tensor, an array or a list has a row for each sample along its first axis, and so have those inside a tuple or a
    dict, and the tensors of a list; None stays None. The rows of tensors and arrays are copied, so that they lie in memory as a batch of their own
    would. With ``pad`` a batch that the ranks do not divide is filled up with rows from its beginning, as ``DistributedSampler`` fills up an epoch, with
    a warning. One process: the batch itself.

    Raises ValueError when the parts would not be equal, or where not all that is in the batch has as many rows; TypeError for what has no rows.
    """
    world = world_size()
    if world == 1:
        return batch
    counts: set[int] = set()
    mine = _own_rows(batch, counts, pad)
    if len(counts) > 1:
        raise ValueError(f"local_rows() takes a batch with as many rows in each part, not {sorted(counts)}")
    for count in counts:
        if not pad:
            local_batch(count)
        elif count % world and rank() == 0:
            words = f"a batch of {count} rows is filled up from its beginning, since {world} processes do not divide it: choose a batch size that they divide"
            warnings.warn(f"local_rows(): {words}, where this is not the last batch", stacklevel=2)
    return mine


def _own_rows(part: Any, counts: set[int], pad: bool) -> Any:
    if isinstance(part, dict):
        return {key: _own_rows(one, counts, pad) for key, one in part.items()}
    parts = isinstance(part, tuple) or (isinstance(part, list) and bool(part) and all(getattr(one, "shape", ()) for one in part))
    if parts:
        each = [_own_rows(one, counts, pad) for one in part]
        return tuple(each) if isinstance(part, tuple) else each
    if part is None:
        return None
    shape = getattr(part, "shape", None)
    if shape is None and not isinstance(part, list):
        raise TypeError(f"local_rows() takes tensors, arrays and lists, not {type(part).__name__}")
    if shape is not None and not len(shape):
        raise TypeError("local_rows() takes tensors with a row for each sample, not a single number")
    count, world = len(part), world_size()
    counts.add(count)
    if pad and count % world:
        mine = [at % count for at in range(rank(), -(-count // world) * world, world)]
        return [part[at] for at in mine] if shape is None else part[mine]
    share = part[rank() :: world]
    if isinstance(share, torch.Tensor):
        return share.clone(memory_format=torch.contiguous_format)
    return share.copy() if shape is not None else share


def _rebuild(loader: DataLoader[Any], **changed: Any) -> DataLoader[Any]:
    kept = {name: getattr(loader, name) for name in _KEPT} | changed
    if loader.pin_memory_device:
        # passed only when it was given: newer versions of torch deprecate it
        kept["pin_memory_device"] = loader.pin_memory_device
    if not getattr(loader, "in_order", True):
        kept["in_order"] = False
    plain: DataLoader[Any] = DataLoader(loader.dataset, **kept)
    if type(loader) is DataLoader:
        return plain
    # a class of the script's own may have any constructor: its object is copied, and gets what has changed
    clone = copy.copy(loader)
    clone.__dict__ |= {name: getattr(plain, name) for name in _OWN} | {"_iterator": None}
    return clone


def _parts(loader: DataLoader[Any]) -> tuple[Any, int | None, bool]:
    """What draws the indices, the batch size and drop_last; batch size None when the items drawn are used as they come."""
    batches = loader.batch_sampler
    if type(batches) is BatchSampler:
        return batches.sampler, batches.batch_size, batches.drop_last
    return (loader.sampler if batches is None else batches), None, False


def _is_permutation(sampler: Any, dataset: Any) -> bool:
    return type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == len(dataset)


def _is_sequence(sampler: Any, dataset: Any) -> bool:
    return type(sampler) is SequentialSampler and len(sampler) == len(dataset)


def distribute(loader: DataLoader[Any], keep_batch_size: bool = False) -> DataLoader[Any]:
    """A clone of a training DataLoader for this rank, whose ``.sampler.set_epoch(epoch)`` can be called.

    Random and sequential order become ``DistributedSampler``; any other sampler is sharded from one shared draw. The batch size
    becomes ``local_batch(batch_size)``; of each batch of a batch sampler of the script's own a rank takes its part, padded where they
    are not equal. With ``keep_batch_size`` a rank's batches are as large as the loader's. The rest is kept. In one process samples,
    batches and drop_last are those of the original.

    An object of a class of the script's own stays one. Raises TypeError for an IterableDataset (only its author can split it), ValueError when
    the batch cannot be divided: its size, or because the data set makes it (``batch_size=None``).
    """
    if not isinstance(loader, DataLoader):
        raise TypeError(f"distribute() takes a torch DataLoader, not {type(loader).__name__}")
    if isinstance(loader.dataset, IterableDataset):
        raise TypeError("an IterableDataset has no indices to divide between ranks; let the dataset yield every world_size()-th item itself")
    sampler, batch_size, drop_last = _parts(loader)
    if isinstance(sampler, OfTorch | ShardSampler):
        return loader
    generator = getattr(sampler, "generator", None)
    seed = common_seed(generator) if isinstance(generator, torch.Generator) else None
    shuffled = _is_permutation(sampler, loader.dataset)
    mine: Any
    if shuffled or _is_sequence(sampler, loader.dataset):
        mine = DistributedSampler(loader.dataset, shuffle=shuffled, seed=seed, drop_last=drop_last)
    elif (loader.batch_sampler is sampler or isinstance(sampler, BatchSampler)) and not keep_batch_size:
        mine = SplitSampler(SharedDraw(sampler, seed))
    else:
        mine = ShardSampler(SharedDraw(sampler, seed), drop_last)
    if batch_size is None and not isinstance(mine, SplitSampler) and not keep_batch_size and world_size() > 1:
        raise ValueError(
            "with batch_size=None the data set makes the batches, which cannot be divided; let it make those of one rank and pass keep_batch_size=True"
        )
    workers = rank_generator(loader.generator)
    if batch_size is not None:
        size = batch_size if keep_batch_size else local_batch(batch_size)
        return _rebuild(loader, batch_size=size, sampler=mine, drop_last=drop_last, generator=workers)
    if loader.batch_sampler is None:
        return _rebuild(loader, batch_size=None, sampler=mine, generator=workers)
    clone = _rebuild(loader, batch_sampler=mine, generator=workers)
    # DataLoader forbids setting it afterwards and ignores it beside a batch sampler; set_epoch must be found at the usual place
    clone.__dict__["sampler"] = mine
    return clone


#: how many passes over a data set have begun, by its id: two that are equal are not one, and tensors cannot even be asked
_PASSES: dict[int, tuple[weakref.ref[Any], int]] = {}
#: data sets, numbered as they are met: one that is made anew for each pass gets another order each time
_MET = itertools.count(1)


def next_epoch(loader: Any) -> Any:
    """The loader, with an order of its own for the pass that begins, where no counter says which epoch it is.

    For loops that begin another pass whenever ``next()`` has come to the end, and for loaders that are built anew for each pass: passes are counted by the
    data set, and a data set that is made anew counts on. A loader without a distributed sampler (or whatever else is iterated) draws its order itself and
    is left alone. The same on every rank, as long as all begin their passes together.
    """
    for part in (getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)):
        if part is not None and hasattr(part, "set_epoch"):
            epoch = getattr(part, "epoch", 0) + 1
            part.set_epoch(_pass_of(loader.dataset, epoch))
    return loader


def _pass_of(data: Any, epoch: int) -> int:
    """The number of the pass that begins over the data set, at least ``epoch``."""
    key = id(data)
    try:
        kept = weakref.ref(data, lambda _: _PASSES.pop(key, None))
    except TypeError:  # a list cannot be known again in another loader
        return max(epoch, next(_MET))
    before = _PASSES.get(key)
    epoch = max(epoch, next(_MET) if before is None else before[1] + 1)
    _PASSES[key] = kept, epoch
    return epoch


class _Every:
    """This rank's batches of an iterable that cannot be divided before it is read."""

    def __init__(self, batches: Any, blocks: bool) -> None:
        self.batches = batches
        self.blocks = blocks

    def __iter__(self) -> Iterator[Any]:
        if not self.blocks:
            return islice(iter(self.batches), rank(), None, world_size())
        try:
            share = exact_share(len(self.batches), True)
        except TypeError:
            # where blocks would end is not known: rank 0 has every batch
            return islice(iter(self.batches), None if rank() == 0 else 0)
        # a length may be a guess: what comes after it is the last rank's
        return islice(iter(self.batches), share.start, None if rank() == world_size() - 1 else share.stop)

    def __len__(self) -> int:
        length = len(self.batches)
        return len(range(length)[exact_share(length, self.blocks)])

    def __getattr__(self, name: str) -> Any:
        # .dataset, .batch_size
        return getattr(self.__dict__["batches"], name)


def is_divided(loader: Any) -> bool:
    """Whether the ranks go through different parts of ``loader``: it came from ``shard``, ``distribute`` or has their samplers."""
    # a progress bar holds what it shows as .iterable
    loader = getattr(loader, "iterable", loader)
    batches = getattr(loader, "batch_sampler", None)
    samplers = (getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None))
    return isinstance(loader, _Every) or any(isinstance(one, OfTorch | ShardSampler | ExactSampler) for one in samplers)


def shard(loader: Any, blocks: bool = False) -> Any:
    """This rank's batches of an evaluation DataLoader, for exact evaluation: batch k goes to rank k % world_size.

    With ``blocks`` a rank gets neighbouring batches, rank 0 the first ones, so that what the ranks collect is in order when
    ``gather_all`` puts it end to end. Batches are composed as the loader would compose them, none is padded or loaded in vain; a
    shuffled order becomes sequential. A training loader of rewritten code is put back to the whole dataset and the global batch.
    Ranks can have unequal numbers of batches (also none): no collective may stand in the loop. An IterableDataset, or any other
    iterable, is read in full by every rank; in blocks, where its length is not known, rank 0 takes every batch. In one process the
    loader itself is returned.
    """
    if world_size() == 1:
        return loader
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return _Every(loader, blocks)
    # one clone per loader, so that persistent workers persist
    clones = _SHARDS.setdefault(loader, {})
    if blocks not in clones:
        clones[blocks] = _shard(loader, blocks)
    return clones[blocks]


def whole(loader: Any) -> Any:
    """Every batch of a training DataLoader on every rank, for loops that cannot be split: the whole data set in the global batch size.

    A shuffled order stays one, the same on every rank, so that a part of the batches is drawn from all data. A loader that is not divided over the ranks, or
    in one process, is returned as it is.
    """
    if world_size() == 1 or not isinstance(loader, DataLoader) or not is_divided(loader):
        return loader
    sampler, batch_size, drop_last = _parts(loader)
    shuffled = sampler if isinstance(sampler, OfTorch) and sampler.shuffle else None
    draw, sampler, batch_size = _undivided(loader, sampler, batch_size)
    if shuffled is not None:
        draw = SharedDraw(RandomSampler(loader.dataset), shuffled.seed)  # type: ignore[arg-type]
        draw.set_epoch(shuffled.epoch)
    if batch_size is not None:
        return _rebuild(loader, batch_size=batch_size, sampler=draw or sampler, drop_last=drop_last)
    if loader.batch_sampler is None:
        return _rebuild(loader, batch_size=None, sampler=draw or sampler)
    return _rebuild(loader, batch_sampler=draw or sampler)


def _undivided(loader: DataLoader[Any], sampler: Any, batch_size: int | None) -> tuple[SharedDraw | None, Any, int | None]:
    """The draw that all ranks share, if there is one, the sampler of the whole data set, and the global batch size."""
    if isinstance(sampler, OfTorch | ShardSampler) and batch_size is not None:
        batch_size *= world_size()
    if isinstance(sampler, ShardSampler):
        return sampler.shared, sampler.shared.inner, batch_size
    if isinstance(sampler, OfTorch) or _is_permutation(sampler, loader.dataset):
        return None, SequentialSampler(loader.dataset), batch_size  # type: ignore[arg-type]
    return None, sampler, batch_size


def _shard(loader: DataLoader[Any], blocks: bool) -> DataLoader[Any]:
    sampler, batch_size, drop_last = _parts(loader)
    draw, sampler, batch_size = _undivided(loader, sampler, batch_size)
    if batch_size is not None:
        sampler = BatchSampler(sampler, batch_size, drop_last)
        draw = None if draw is None else SharedDraw(sampler, draw.seed)
    mine = ExactSampler(draw or SharedDraw(sampler, main_seed()), blocks)
    if batch_size is None and loader.batch_sampler is None:
        return _rebuild(loader, batch_size=None, sampler=mine)
    return _rebuild(loader, batch_sampler=mine)
