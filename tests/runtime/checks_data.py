"""Checks of samplers and loaders; see checks.py."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import dpmigrate_runtime as ddp
import torch
from dpmigrate_runtime._samplers import PIECE, ShardSampler, SharedDraw
from dpmigrate_runtime._state import STATE
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from tests.runtime.checks import check, everyone, raises


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))

    def __len__(self) -> int:
        return 10


class Unsized(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(5))


class Epochs(SubsetRandomSampler):
    """A sampler with an epoch of its own."""

    epoch = -1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Named(DataLoader[Any]):
    """A loader whose constructor nobody can guess."""

    def __init__(self, name: str) -> None:
        super().__init__(range(4), batch_size=2)  # type: ignore[arg-type]
        self.name = name


def batches(loader: Any) -> list[Any]:
    return [batch.tolist() if isinstance(batch, torch.Tensor) else batch for batch in loader]


def flat(parts: Any) -> list[int]:
    return [item for part in parts for item in (flat(part) if isinstance(part, list) else [part])]


def together(loader: Any) -> list[Any]:
    """The batches of all ranks in the order of one process: batch k from rank k % world_size."""
    shares = everyone(batches(loader))
    world = len(shares)
    return [shares[k % world][k // world] for k in range(sum(map(len, shares)))]


@check
def local_batches() -> None:
    world = ddp.world_size()
    assert ddp.local_batch(6 * world) == 6
    raises(ValueError, f"nearest usable: {world}", lambda: ddp.local_batch(0))
    raises(TypeError, "", lambda: ddp.local_batch("8"))  # type: ignore[arg-type]
    if world == 2:
        raises(ValueError, "batch of 7 cannot be divided over 2 process(es) equally; nearest usable: 6 or 8", lambda: ddp.local_batch(7))


@check
def local_rows() -> None:
    rank, world = ddp.rank(), ddp.world_size()
    size = 3 * world
    x = torch.arange(size * 4).view(size, 4)
    batch = {"x": x, "of": (x[:, 0].numpy(), None), "views": [x, -x], "names": [f"sample {i}" for i in range(size)]}
    mine = ddp.local_rows(batch)
    wanted = torch.arange(size)[rank::world]
    assert torch.equal(mine["x"], x[wanted])
    assert mine["x"].is_contiguous()  # as a batch of its own: x.view(-1) is what the program does next
    assert mine["of"][0].tolist() == (wanted * 4).tolist()
    assert mine["of"][1] is None
    assert torch.equal(mine["views"][1], -x[wanted])
    assert mine["names"] == [f"sample {i}" for i in wanted]
    if world == 1:
        return
    raises(TypeError, "not a single number", lambda: ddp.local_rows(torch.tensor(3)))
    raises(TypeError, "not int", lambda: ddp.local_rows(3))
    raises(ValueError, "as many rows in each part", lambda: ddp.local_rows((x, x[:world])))
    raises(ValueError, f"batch of {size + 1} cannot be divided", lambda: ddp.local_rows(torch.zeros(size + 1)))


@check
def local_rows_filled_up() -> None:
    """A batch that the ranks do not divide begins again where it ends, and rank 0 says so; the others are as they are without it."""
    rank, world = ddp.rank(), ddp.world_size()
    for count in (1, world, world + 1, 2 * world - 1):
        x = torch.arange(count)
        wanted = [(rank + k * world) % count for k in range(-(-count // world))]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            mine = ddp.local_rows({"x": x, "of": (x.numpy(), [str(i) for i in range(count)])}, pad=True)
        assert mine["x"].tolist() == (wanted if world > 1 else list(range(count)))
        assert mine["of"][0].tolist() == mine["x"].tolist()
        assert mine["of"][1] == [str(i) for i in mine["x"].tolist()]
        assert any("is filled up from its beginning" in str(w.message) for w in seen) is (count % world > 0 and rank == 0)
    assert ddp.local_rows(torch.zeros(0, 3), pad=True).shape == (0, 3)
    if world > 1:
        raises(ValueError, "as many rows in each part", lambda: ddp.local_rows((torch.zeros(2 * world), torch.zeros(world)), pad=True))


@check
def rows_of_one_batch() -> None:
    """What the ranks train on together is the batch that one process draws, whatever each of them has drawn for itself."""
    world = ddp.world_size()
    torch.manual_seed(5)
    alone = torch.randint(100, (2 * world,))
    torch.manual_seed(5 + ddp.rank())
    with ddp.same_stream():
        mine = ddp.local_rows(torch.randint(100, (2 * world,)))
    assert sorted(flat(everyone(mine.tolist()))) == sorted(alone.tolist())


@check
def distribute_shuffled() -> None:
    for size, drop in ((23, False), (23, True), (19, True), (24, False)):
        source: DataLoader[int] = DataLoader(range(size), batch_size=4, shuffle=True, drop_last=drop, collate_fn=list)  # type: ignore[arg-type]
        loader = ddp.distribute(source)
        assert ddp.distribute(loader) is loader
        assert isinstance(loader.sampler, DistributedSampler)
        assert len(loader) == len(source)
        assert loader.collate_fn is list
        orders = []
        for epoch in (0, 1):
            loader.sampler.set_epoch(epoch)
            seen = flat(everyone(batches(loader)))
            assert len(batches(loader)) == len(source)
            assert set(seen) == set(range(size)) if not drop else len(set(seen)) == len(seen)
            orders.append(seen)
        assert orders[0] != orders[1]


class Dice(Dataset[int]):
    """Samples that are drawn by the worker."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        return int(torch.randint(10**9, ()))


def roll(worker_id: int) -> None:
    torch.manual_seed(ddp.worker_number(worker_id))


@check
def workers_of_ranks_draw_for_themselves() -> None:
    world = ddp.world_size()
    generator = torch.Generator().manual_seed(3)
    plain = [flat(batches(DataLoader(Dice(), batch_size=4, num_workers=2, generator=torch.Generator().manual_seed(3))))]
    by_generator = everyone(flat(batches(ddp.distribute(DataLoader(Dice(), batch_size=4, num_workers=2, generator=generator)))))
    by_number = everyone(flat(batches(DataLoader(Dice(), batch_size=4, num_workers=2, worker_init_fn=roll))))
    assert len({number for rolled in by_number for number in rolled}) == 8 * world
    assert len({number for rolled in by_generator for number in rolled}) == 8
    assert (by_generator == plain) == (world == 1)
    assert everyone(ddp.worker_number(0)) == list(range(world))
    assert ddp.rank_generator(None) is None
    own = ddp.rank_generator(generator)
    assert (own is generator, own.initial_seed()) == (ddp.is_main(), 3 + ddp.rank())


@check
def distribute_follows_the_seed() -> None:
    def order(seed: int, generator: torch.Generator | None = None) -> list[int]:
        torch.manual_seed(seed)
        return flat(batches(ddp.distribute(DataLoader(range(40), batch_size=8, shuffle=True, generator=generator))))  # type: ignore[arg-type]

    first, second = order(1), order(2)
    assert first != second
    assert set(map(str, everyone(STATE.seeds_given))) == {str(STATE.seeds_given)}
    own = [torch.Generator().manual_seed(3) for _ in range(2)]
    drawn = order(1, own[0])
    assert order(2, own[1]) == drawn
    assert order(1, own[0]) != drawn


@check
def loaders_of_one_seed_have_orders_of_their_own() -> None:
    torch.manual_seed(11)
    pair = [ddp.distribute(DataLoader(range(64), batch_size=8, shuffle=True)) for _ in range(2)]  # type: ignore[arg-type]
    by_hand: Any = DistributedSampler(range(64), seed=ddp.common_seed())  # type: ignore[arg-type]
    samplers: list[Any] = [*(loader.sampler for loader in pair), by_hand, *(ddp.shard_sampler(WeightedRandomSampler([1.0] * 64, 64)) for _ in range(2))]
    orders: list[list[int]] = []
    for epoch in range(3):
        for sampler in samplers:
            sampler.set_epoch(epoch)
            orders.append(flat(everyone(list(sampler))))
    assert len(set(map(str, orders))) == len(orders)
    first, *others = (sampler.seed for sampler in samplers[:3])
    assert [seed - first for seed in others] == [1000, 2000] and (first - 11) % 1000 == 0


SEQUENCE: Any = range(64)


@check
def samplers_without_a_seed_take_the_one_of_their_first_pass() -> None:
    torch.manual_seed(12)
    early: list[Any] = [ddp.DistributedSampler(SEQUENCE), ddp.shard_sampler(WeightedRandomSampler([1.0] * 64, 64))]
    torch.manual_seed(13)
    if ddp.is_main():
        next(iter(early[1]))  # one rank alone looks at a sample first
    late: Any = ddp.DistributedSampler(SEQUENCE)
    with ddp.own_streams():
        seeds = [early[0].seed, early[1].shared.seed, late.seed]
        orders = [flat(everyone(list(sampler))) for sampler in (*early, late)]
    assert len({seed - 13 for seed in seeds}) == 3 and all((seed - 13) % 1000 == 0 for seed in seeds)
    assert set(map(str, everyone(seeds))) == {str(seeds)} and sorted(orders[0]) == list(SEQUENCE) != orders[0]
    torch.manual_seed(14)  # what has begun goes on
    assert [early[0].seed, early[1].shared.seed, late.seed] == seeds
    early[0].seed = 5
    assert early[0].seed == 5 and ddp.DistributedSampler(SEQUENCE, seed=0).seed == 0


@check
def distribute_in_order() -> None:
    source: DataLoader[int] = DataLoader(range(8), batch_size=4)  # type: ignore[arg-type]
    loader = ddp.distribute(source, keep_batch_size=True)
    assert loader.batch_size == 4
    loader.sampler.set_epoch(3)  # type: ignore[attr-defined]
    assert sorted(flat(everyone(batches(loader)))) == list(range(8))


@check
def distribute_drawn() -> None:
    weighted = WeightedRandomSampler([0.0, 1.0, 1.0, 2.0], 20)
    loader = ddp.distribute(DataLoader(range(4), batch_size=4, sampler=weighted))  # type: ignore[arg-type]
    assert len(loader) == 5
    seen = flat(everyone(batches(loader)))
    assert len(seen) == 20
    assert 0 not in seen
    loader.sampler.set_epoch(1)  # type: ignore[attr-defined]
    assert flat(everyone(batches(loader))) != seen  # twenty draws: equal by chance once in a million
    few = ddp.distribute(DataLoader(range(40), batch_size=4, sampler=RandomSampler(range(40), num_samples=11), drop_last=True))  # type: ignore[arg-type]
    assert len(few) == len(batches(few)) == 2


@check
def distribute_batch_samplers() -> None:
    plain = BatchSampler(RandomSampler(range(12)), 4, False)
    loader = ddp.distribute(DataLoader(range(12), batch_sampler=plain))  # type: ignore[arg-type]
    assert len(loader) == 3
    own = [[0, 1], [2], [3, 4, 5]]
    loader = ddp.distribute(DataLoader(range(6), batch_sampler=own))  # type: ignore[arg-type]
    assert ddp.distribute(loader) is loader
    loader.sampler.set_epoch(1)  # type: ignore[attr-defined]
    shares = everyone(batches(loader))
    assert [len(share) for share in shares] == [len(loader)] * len(shares) == [3] * len(shares)
    for k, batch in enumerate(own):
        parts = [share[k] for share in shares]
        assert set(flat(parts)) == set(batch)
        assert {len(part) for part in parts} == {-(-len(batch) // len(shares))}
    assert together(ddp.shard(loader)) == own
    loader = ddp.distribute(DataLoader(range(6), batch_sampler=own), keep_batch_size=True)  # type: ignore[arg-type]
    shares = everyone(batches(loader))
    assert {tuple(batch) for share in shares for batch in share} == {(0, 1), (2,), (3, 4, 5)}
    assert len({len(share) for share in shares}) == 1


@check
def distribute_keeps_the_length() -> None:
    # schedules are made from len(loader): as many batches as one process has, whatever does not divide
    for size in range(1, 30):
        for drop_last in (False, True):
            source: DataLoader[int] = DataLoader(range(size), batch_size=4, drop_last=drop_last)  # type: ignore[arg-type]
            assert len(ddp.distribute(source)) == len(source)
            drawn: DataLoader[int] = DataLoader(range(size), batch_size=4, sampler=Epochs(range(size)), drop_last=drop_last)  # type: ignore[arg-type]
            assert len(ddp.distribute(drawn)) == len(drawn) == len(batches(ddp.distribute(drawn)))


@check
def distribute_unbatched() -> None:
    loader = ddp.distribute(DataLoader(range(6), batch_size=None, shuffle=True), keep_batch_size=True)  # type: ignore[arg-type]
    loader.sampler.set_epoch(1)  # type: ignore[attr-defined]
    assert sorted(flat(everyone(batches(loader)))) == list(range(6))
    listed = BatchSampler(SequentialSampler(range(6)), 2, False)
    assert len(ddp.distribute(DataLoader(range(6), batch_size=None, sampler=listed))) == 3  # type: ignore[arg-type]
    if ddp.world_size() > 1:
        raises(ValueError, "cannot be divided", lambda: ddp.distribute(DataLoader(range(6), batch_size=None)))  # type: ignore[arg-type]
    assert together(ddp.shard(DataLoader(range(5), batch_size=None))) == list(range(5))  # type: ignore[arg-type]


@check
def distribute_what_cannot_be() -> None:
    raises(TypeError, "IterableDataset", lambda: ddp.distribute(DataLoader(Stream())))
    raises(TypeError, "not list", lambda: ddp.distribute([1]))  # type: ignore[arg-type]


@check
def distribute_a_class_of_the_scripts_own() -> None:
    """Its constructor may take anything: the object is copied, with the sampler and the batch size of this rank."""
    source = Named("x")
    loader = ddp.distribute(source)
    assert type(loader) is Named and loader.name == "x" and source.batch_size == loader.batch_size * ddp.world_size()  # type: ignore[operator]
    loader.sampler.set_epoch(1)  # type: ignore[attr-defined]
    for _ in range(2):
        assert sorted(flat(everyone(batches(loader)))) == list(range(len(source.dataset)))  # type: ignore[arg-type]
    assert sorted(flat(batches(source))) == list(range(len(source.dataset)))  # type: ignore[arg-type]


@check
def workers_are_kept() -> None:
    source: DataLoader[int] = DataLoader(range(8), batch_size=2, num_workers=1, prefetch_factor=3, persistent_workers=True, timeout=50)  # type: ignore[arg-type]
    loader = ddp.distribute(source)
    assert (loader.num_workers, loader.prefetch_factor, loader.persistent_workers, loader.timeout) == (1, 3, True, 50)
    part = ddp.shard(source)
    assert ddp.shard(source) is part
    assert together(part) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    source.__dict__["pin_memory_device"], source.__dict__["in_order"] = "cuda", False
    loader = ddp.distribute(source)
    assert (loader.pin_memory_device, loader.in_order) == ("cuda", False)


@check
def sharded_draws() -> None:
    before = torch.get_rng_state()
    generator = torch.Generator().manual_seed(9)
    inner = Epochs(range(7), generator=generator)
    sampler = ddp.shard_sampler(inner)
    assert ddp.shard_sampler(sampler) is sampler
    sampler.set_epoch(2)
    assert inner.epoch == 2
    shares = everyone(list(sampler))
    assert {len(share) for share in shares} == {len(sampler)}
    assert set(flat(shares)) == set(range(7))
    assert len(flat(shares)) == -(-7 // len(shares)) * len(shares)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(generator.get_state(), torch.Generator().manual_seed(9).get_state())
    # 7 samples in batches of 4: padded, a rank would have a second batch of 2, which makes the last batch complete
    cut = DataLoader(range(7), batch_size=4 // ddp.world_size(), sampler=ddp.shard_sampler(SubsetRandomSampler(range(7)), drop_last=True), drop_last=True)  # type: ignore[arg-type,var-annotated]
    assert len(list(cut)) == len(cut) == 1
    subset = ddp.shard_sampler(SubsetRandomSampler([4, 2]))
    assert subset.indices == [4, 2]
    raises(AttributeError, "nothing", lambda: subset.nothing)
    # what a program changes of the sampler of its loader, the draws go by
    weighted = ddp.shard_sampler(WeightedRandomSampler([1.0] * 8, 16))
    weighted.weights = torch.tensor([0.0] * 7 + [1.0])
    assert set(weighted) == {7} and weighted.whole.weights is weighted.weights
    split = ddp.distribute(DataLoader(range(8), batch_sampler=BatchSampler(range(8), 4, False)))  # type: ignore[arg-type]
    changed: Any = split.batch_sampler
    changed.batch_size = 8
    assert len(split) == 1 and len(flat(everyone([int(i) for b in split for i in b]))) == 8
    assert copy.copy(subset).indices == [4, 2] and pickle.loads(pickle.dumps(subset)).indices == [4, 2]
    assert list(ddp.shard_sampler([])) == []
    assert list(ddp.shard_sampler([7])) == [7]


class Endless:
    """Permutations without end, as some programs draw them."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[int]:
        while True:
            yield from torch.randperm(self.size).tolist()

    def __len__(self) -> int:
        return 2**31


@check
def a_sampler_without_end_is_drawn_in_pieces() -> None:
    before = torch.get_rng_state()
    endless = iter(ddp.shard_sampler(Endless(6)))
    drawn: list[int] = []
    for _ in range(PIECE // 2 + 100):  # into the second piece, by two ranks or more
        drawn.append(next(endless))
        torch.rand(1)  # what the program draws meanwhile is its own
    torch.set_rng_state(before)
    rows = list(zip(*everyone(drawn), strict=True))
    order = [index for row in rows for index in row]
    assert all(set(order[k : k + 6]) == set(range(6)) for k in range(0, len(order) // 6 * 6, 6))
    assert order[:6] != order[6:12] or order[6:12] != order[12:18]


@check
def a_long_pass_comes_out_as_a_short_one() -> None:
    size = PIECE + 3
    for drop in (False, True):
        sampler = ShardSampler(SharedDraw(range(size), 1), drop)
        shares = everyone(list(sampler))
        assert {len(share) for share in shares} == {len(sampler)}
        order = [index for row in zip(*shares, strict=True) for index in row]
        assert order == ([*range(size), *range(size)])[: len(sampler) * len(shares)]


@check
def next_epochs() -> None:
    ddp.next_epoch(DataLoader(range(4)))  # type: ignore[arg-type]
    assert ddp.next_epoch([1]) == [1]
    drawn = WeightedRandomSampler([1.0] * 64, 64)
    sources: list[DataLoader[Any]] = [DataLoader(range(64), batch_size=4, shuffle=True), DataLoader(range(64), batch_size=4, sampler=drawn)]  # type: ignore[arg-type]
    for source in sources:
        loader: Any = ddp.distribute(source)
        orders = []
        for _ in range(3):
            ddp.next_epoch(loader)
            orders.append(tuple(flat(together(loader))))
        assert len(set(orders)) == 3
    data = TensorDataset(torch.arange(64))
    fresh = [str(everyone(batches(ddp.next_epoch(ddp.distribute(DataLoader(data, batch_size=4, shuffle=True)))))) for _ in range(3)]
    assert len(set(fresh)) == 3
    anew = [flat(together(ddp.next_epoch(ddp.distribute(DataLoader(part, batch_size=4, shuffle=True))))) for part in ([*range(64)], [*range(64)])]  # type: ignore[arg-type]
    assert anew[0] != anew[1] and sorted(anew[0]) == sorted(anew[1])
    sets = [TensorDataset(torch.arange(64)) for _ in range(2)]
    orders_anew = [str(everyone(batches(ddp.next_epoch(ddp.distribute(DataLoader(one, batch_size=4, shuffle=True)))))) for one in sets]
    assert orders_anew[0] != orders_anew[1]
    rows: Any = torch.arange(64)  # a tensor is a data set of its rows
    of_rows = [str(everyone(batches(ddp.next_epoch(ddp.distribute(DataLoader(rows, batch_size=4, shuffle=True)))))) for _ in range(3)]
    assert len(set(of_rows)) == 3


class Prepared(Dataset[int]):
    """A data set that gives what its batch sampler has prepared last."""

    prepared = -1

    def __len__(self) -> int:
        return 12

    def __getitem__(self, i: int) -> int:
        return self.prepared


class Preparing:
    """A batch sampler that prepares the data set for each batch."""

    def __init__(self, dataset: Prepared) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[list[int]]:
        for n in range(5):
            self.dataset.prepared = n
            yield list(range(12))


@check
def a_batch_sampler_is_asked_for_one_batch_after_the_other() -> None:
    dataset = Prepared()
    loader = ddp.distribute(DataLoader(dataset, batch_sampler=Preparing(dataset)))
    assert [set(batch) for batch in batches(loader)] == [{n} for n in range(5)]
