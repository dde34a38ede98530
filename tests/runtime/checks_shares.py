"""Checks of evaluations that ranks share: ``ddp.shard``, and the whole loader again; see checks.py."""

from __future__ import annotations

import dpmigrate_runtime as ddp
from torch.utils.data import (
    DataLoader,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from tests.runtime.checks import check, everyone
from tests.runtime.checks_data import Stream, Unsized, batches, flat, together


@check
def shard_is_exact() -> None:
    for size, drop in ((11, False), (11, True), (1, False), (12, False)):
        source: DataLoader[int] = DataLoader(range(size), batch_size=2, drop_last=drop)  # type: ignore[arg-type]
        part = ddp.shard(source)
        assert len(part) == len(batches(part))
        assert together(part) == batches(source)
    shuffled = ddp.shard(DataLoader(range(9), batch_size=2, shuffle=True))  # type: ignore[arg-type]
    assert sorted(flat(together(shuffled))) == list(range(9))
    subset = ddp.shard(DataLoader(range(9), batch_size=2, sampler=SubsetRandomSampler([1, 3, 5])))  # type: ignore[arg-type]
    assert sorted(flat(together(subset))) == [1, 3, 5]
    grouped = ddp.shard(DataLoader(range(6), batch_sampler=[[5, 0], [1]]))  # type: ignore[arg-type]
    assert together(grouped) == [[5, 0], [1]]
    ordered = ddp.shard(DataLoader(range(9), batch_size=4, sampler=SequentialSampler(range(5))))  # type: ignore[arg-type]
    assert together(ordered) == [[0, 1, 2, 3], [4]]


@check
def shard_in_blocks() -> None:
    for size in (11, 1, 12, 0):
        source: DataLoader[int] = DataLoader(range(size), batch_size=2)  # type: ignore[arg-type]
        part = ddp.shard(source, blocks=True)
        assert part is ddp.shard(source, blocks=True)
        assert ddp.world_size() == 1 or part is not ddp.shard(source)
        assert len(part) == len(batches(part))
        assert ddp.gather_all(batches(part)) == batches(source)
    stream = ddp.shard([1, 2, 3], blocks=True)
    assert ddp.gather_all(list(stream)) == [1, 2, 3]
    assert len(stream) == len(list(stream))


@check
def shard_of_streams_in_blocks() -> None:
    class Guessed(list[int]):
        def __len__(self) -> int:
            return 2

    assert ddp.gather_all(list(ddp.shard(Guessed([1, 2, 3, 4, 5]), blocks=True))) == [1, 2, 3, 4, 5]
    unsized = ddp.shard(map(abs, [1, 2, 3]), blocks=True)
    assert list(unsized) == ([1, 2, 3] if ddp.is_main() else [])
    assert ddp.gather_all(batches(ddp.shard(DataLoader(Unsized(), batch_size=4), blocks=True))) == [[0, 1, 2, 3], [4]]


@check
def shard_undoes_distribute() -> None:
    loader = ddp.distribute(DataLoader(range(10), batch_size=4))  # type: ignore[arg-type]
    assert together(ddp.shard(loader)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    weighted = WeightedRandomSampler([1.0, 1.0], 10)
    drawn = ddp.distribute(DataLoader(range(2), batch_size=4, sampler=weighted))  # type: ignore[arg-type]
    assert [len(batch) for batch in together(ddp.shard(drawn))] == [4, 4, 2]
    many = ddp.shard(DataLoader(range(64), batch_size=8, sampler=WeightedRandomSampler([1.0] * 64, 64)))  # type: ignore[arg-type]
    assert together(many) != together(many)  # drawn anew for each pass, as on one process


@check
def shard_of_streams() -> None:
    part = ddp.shard(DataLoader(Stream(), batch_size=4))
    assert together(part) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(part) == len(batches(part))
    assert part.batch_size == 4
    assert together(ddp.shard([1, 2, 3])) == [1, 2, 3]


@check
def whole_undoes_distribute() -> None:
    source: DataLoader[int] = DataLoader(range(10), batch_size=4)  # type: ignore[arg-type]
    assert ddp.whole(source) is source
    assert ddp.whole([1]) == [1]
    assert batches(ddp.whole(ddp.distribute(source))) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    mixed = ddp.distribute(DataLoader(range(40), batch_size=4, shuffle=True))  # type: ignore[arg-type]
    first = everyone(batches(ddp.whole(mixed)))
    assert sorted(flat(first[0])) == list(range(40))
    assert all(one == first[0] for one in first)
    if ddp.world_size() > 1:
        mixed.sampler.set_epoch(1)  # type: ignore[attr-defined]
        assert flat(first[0]) not in (list(range(40)), flat(batches(ddp.whole(mixed))))
    grouped = ddp.distribute(DataLoader(range(6), batch_sampler=[[5, 0], [1], [2]]))  # type: ignore[arg-type]
    assert batches(ddp.whole(grouped)) == [[5, 0], [1], [2]]
    assert flat(batches(ddp.whole(ddp.distribute(DataLoader(range(5), batch_size=None), keep_batch_size=True)))) == list(range(5))  # type: ignore[arg-type]
    weighted = WeightedRandomSampler([1.0, 1.0], 10)
    drawn = everyone(batches(ddp.whole(ddp.distribute(DataLoader(range(2), batch_size=4, sampler=weighted)))))  # type: ignore[arg-type]
    assert [len(batch) for batch in drawn[0]] == [4, 4, 2]
    assert all(one == drawn[0] for one in drawn)
