"""Behaviours of the samplers from pass to pass: no order comes twice, and torch's are kept."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import dpmigrate_runtime as ddp
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SubsetRandomSampler
from torch.utils.data import DistributedSampler as OfTorch

from tests.runtime.checks import check, raises
from tests.runtime.checks_data import Epochs, batches, flat

DATA: Any = range(64)


class Buckets(BatchSampler):
    """A batch sampler of the program's own."""


def of_torch(epoch: int, **options: Any) -> list[int]:
    """torch's order of the epoch, on this rank."""
    sampler: Any = OfTorch(DATA, ddp.world_size(), ddp.rank(), **options)
    sampler.set_epoch(epoch)
    return list(sampler)


def samplers() -> list[Any]:
    """One of each kind, over the same data."""
    ordered: DataLoader[Any] = DataLoader(DATA, batch_size=4, shuffle=True)
    split = ddp.distribute(DataLoader(DATA, batch_sampler=Buckets(RandomSampler(DATA), 4, False)))
    return [
        ddp.DistributedSampler(DATA, seed=3),
        ddp.distribute(ordered).sampler,
        ddp.shard_sampler(SubsetRandomSampler(DATA)),
        split.batch_sampler,
    ]


def distinct(orders: list[Any]) -> bool:
    return len(set(map(str, orders))) == len(orders)


@check
def orders_without_set_epoch() -> None:
    for sampler in samplers():
        assert sampler.epoch == 0
        assert distinct([list(sampler) for _ in range(5)])
        assert sampler.epoch == 4
    sampler = ddp.DistributedSampler(DATA, seed=0)
    assert [list(sampler) for _ in range(4)] == [of_torch(epoch) for epoch in range(4)]
    loader = ddp.distribute(DataLoader(DATA, batch_size=4, shuffle=True))
    assert distinct([batches(loader) for _ in range(3)])


@check
def an_empty_data_set_is_an_error_where_it_is_shuffled() -> None:
    """As it is for the RandomSampler before: no model is saved that has seen nothing."""
    raises(ValueError, "num_samples should be a positive integer value", lambda: RandomSampler([]))
    raises(ValueError, "num_samples should be a positive integer value", lambda: ddp.DistributedSampler([]))  # type: ignore[arg-type]
    assert list(ddp.DistributedSampler([], shuffle=False)) == []  # type: ignore[arg-type]


@check
def orders_with_a_late_set_epoch() -> None:
    for sampler in samplers():
        orders = []
        for epoch in range(5):
            orders.append(list(sampler))
            sampler.set_epoch(epoch)
        assert distinct(orders)


@check
def orders_with_set_epoch_are_those_of_torch() -> None:
    for shuffle in (True, False):
        for drop in (True, False):
            options: dict[str, Any] = {"seed": 5, "shuffle": shuffle, "drop_last": drop}
            sampler: Any = ddp.DistributedSampler(DATA, **options)
            for epoch in (0, 1, 7, 3):
                sampler.set_epoch(epoch)
                assert list(sampler) == of_torch(epoch, **options)
            assert isinstance(sampler, OfTorch) and len(sampler) == len(of_torch(0, **options))


@check
def orders_of_a_training_that_is_resumed() -> None:
    """Its orders are those of the run without an interruption, also of two passes an epoch."""
    for fresh, resumed in zip(samplers(), samplers(), strict=True):
        if hasattr(fresh, "shared"):
            resumed.shared.seed = fresh.shared.seed
        else:
            resumed.seed = fresh.seed
        orders = []
        for epoch in range(7):
            fresh.set_epoch(epoch)
            orders.append([list(fresh), list(fresh)])
        assert distinct([one for pair in orders for one in pair])
        resumed.set_epoch(5)
        assert [list(resumed), list(resumed)] == orders[5]


@check
def orders_after_a_look() -> None:
    sampler: Any = ddp.DistributedSampler(DATA, seed=0)
    loader: DataLoader[Any] = DataLoader(DATA, batch_size=4, sampler=sampler)
    looked = next(iter(loader)).tolist()
    sampler.set_epoch(0)
    first = flat(batches(loader))
    assert first[:4] != looked
    sampler.set_epoch(1)
    assert flat(batches(loader)) == of_torch(1)
    assert sampler.epoch == 1


@check
def orders_with_workers() -> None:
    sampler: Any = ddp.DistributedSampler(DATA, seed=0)
    options: dict[str, Any] = {"num_workers": 1, "persistent_workers": True}
    loader: DataLoader[Any] = DataLoader(DATA, batch_size=8, sampler=sampler, **options)
    assert [flat(batches(loader)) for _ in range(3)] == [of_torch(epoch) for epoch in range(3)]
    sampler.set_epoch(9)
    assert flat(batches(loader)) == of_torch(9)


@check
def orders_of_next_epoch() -> None:
    loader = ddp.distribute(DataLoader(DATA, batch_size=4, shuffle=True))
    orders = [batches(loader)]
    for _ in range(3):
        orders.append(batches(ddp.next_epoch(loader)))
        orders.append(batches(loader))
    assert distinct(orders)


@check
def orders_are_kept_in_copies() -> None:
    for sampler in samplers():
        list(sampler)
        for other in (copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
            assert list(other) != list(copy.deepcopy(other))
        again = pickle.loads(pickle.dumps(sampler))
        assert list(again) == list(sampler)
        assert again.epoch == sampler.epoch == 1


@check
def orders_of_what_the_program_does_by_hand() -> None:
    sampler: Any = ddp.DistributedSampler(DATA, seed=0)
    sampler.epoch = 4
    assert list(sampler) == of_torch(4)
    sampler.set_epoch(torch.tensor(6))
    assert (sampler.epoch, list(sampler)) == (6, of_torch(6))
    raises(TypeError, "", lambda: sampler.set_epoch(None))
    by_hand: Any = ddp.DistributedSampler(DATA, num_replicas=4, rank=3, seed=0)
    assert list(by_hand) == list(OfTorch(DATA, 4, 3))
    raises(ValueError, "Invalid rank", lambda: ddp.DistributedSampler(DATA, num_replicas=1, rank=1))
    for length in range(10):
        for world in (1, 2, 3, 7):
            for drop in (False, True):
                given: Any = (range(length), world, world - 1, False, 0, drop)
                assert list(ddp.DistributedSampler(*given)) == (list(OfTorch(*given)) if length else [])
    endless: Any = ddp.DistributedSampler(range(10**12), 2, 1, shuffle=False)  # type: ignore[arg-type]
    orders = iter(endless)
    assert [next(orders), next(orders)] == [1, 3]


@check
def orders_of_samplers_with_epochs_of_their_own() -> None:
    """They are told what the program tells, and another epoch in each further pass."""
    inner = Epochs(DATA)
    sampler = ddp.shard_sampler(inner)
    told = []
    for _ in range(2):
        list(sampler)
        told.append(inner.epoch)
    sampler.set_epoch(3)
    assert inner.epoch == 3
    for _ in range(2):
        list(sampler)
        told.append(inner.epoch)
    assert told == [-1, -1, 3, 3 + 2**20]


@check
def orders_of_whole_and_of_shares() -> None:
    """An evaluation of the training data takes none of the orders."""
    loader = ddp.distribute(DataLoader(DATA, batch_size=4, shuffle=True, sampler=None))
    drawn = ddp.distribute(DataLoader(DATA, batch_size=4, sampler=SubsetRandomSampler(DATA)))
    for one in (loader, drawn):
        sampler: Any = one.sampler
        sampler.set_epoch(2)
        for _ in range(2):
            if ddp.world_size() > 1:
                flat(batches(ddp.whole(one)))
                flat(batches(ddp.shard(one)))
        first = list(sampler)
        sampler.set_epoch(2)
        assert list(sampler) != first and sampler.epoch == 2
