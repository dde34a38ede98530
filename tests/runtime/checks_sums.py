"""Checks of sums over the ranks and of what is gathered from them; see checks.py."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from types import SimpleNamespace
from typing import Any

import dpmigrate_runtime as ddp
import numpy as np
import torch
from torch.utils.data import DataLoader

from tests.runtime.checks import check, raises


class Window(list[float]):
    """A list with more than that of a list."""

    name = ""

    @property
    def last(self) -> float:
        return self[-1]


@check
def sums_of_numbers() -> None:
    world, big = ddp.world_size(), 2**60
    assert ddp.sum_all(big + ddp.rank()) == sum(big + rank for rank in range(world))
    assert ddp.sum_all(1, 0.5, True) == (world, world / 2, world)
    assert [type(one) for one in ddp.sum_all(1, 0.5)] == [int, float]
    assert ddp.sum_all() == ()
    assert ddp.mean_all(3) == 3
    assert type(ddp.mean_all(3)) is float
    assert ddp.mean_all(float(ddp.rank()), 2) == ((world - 1) / 2, 2.0)
    assert ddp.sum_all(0.1) == sum([0.1] * world)


@check
def sums_of_lists() -> None:
    world = ddp.world_size()
    assert ddp.sum_all([1, 2, True]) == [world, 2 * world, world]
    assert [type(x) for x in ddp.sum_all([1, 2])] == [int, int]
    assert ddp.sum_all([1, 0.5], 3) == ([world, world / 2], 3 * world)
    assert ddp.mean_all([float(ddp.rank()), 4.0]) == [(world - 1) / 2, 4.0]
    assert ddp.mean_all([3, 5], 2) == ([3.0, 5.0], 2.0)
    assert ddp.sum_all([]) == ddp.mean_all([]) == []
    assert ddp.mean_all([np.float32(1.5), np.array(0.5)]) == [1.5, 0.5]
    assert ddp.sum_all([np.int64(2), 1]) == [2 * world, world]
    assert all(isinstance(x, np.float64 | float) for x in ddp.mean_all([np.float64(1.0), 2]))
    mixed = ddp.sum_all([0, torch.tensor(0.5), np.float64(1.0)])
    assert mixed == ([0, 0.5, 1.0] if world == 1 else [0, 0.5 * world, world])
    first, second = ddp.mean_all([torch.tensor(1.5, requires_grad=True), torch.tensor(2.5)])
    assert (first.item(), second.item()) == (1.5, 2.5)
    window = ddp.mean_all(deque([float(ddp.rank()), 4.0], maxlen=2))
    assert window == deque([(world - 1) / 2, 4.0]) and window.maxlen == 2
    assert ddp.sum_all(deque([1])) == deque([world]) and ddp.sum_all(deque()).maxlen is None
    own = Window([float(ddp.rank()), 4.0])
    own.name = "loss"
    mean, rows = ddp.mean_all(own), ddp.gather_all(own)
    assert (mean, mean.last, mean.name) == ([(world - 1) / 2, 4.0], 4.0, "loss")
    assert (len(rows), rows.last, rows.name) == (2 * world, 4.0, "loss")


@check
def sums_of_tensors() -> None:
    world = ddp.world_size()
    for dtype in (torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        total = ddp.sum_all(torch.full((2, 3), 3, dtype=dtype))
        assert total.dtype == dtype
        assert torch.equal(total, torch.full((2, 3), 3 * world, dtype=dtype))
    point, empty = ddp.sum_all(torch.tensor(2.0, requires_grad=True), torch.zeros(0))
    assert point.shape == ()
    assert empty.shape == (0,)
    assert ddp.sum_all(torch.tensor([True, False])).tolist() == [world, 0]
    assert torch.equal(ddp.mean_all(torch.tensor([2, 4])), torch.tensor([2.0, 4.0]))


@check
def sums_of_arrays() -> None:
    world = ddp.world_size()
    array = ddp.sum_all(np.ones((2, 2), dtype=np.float32))
    assert isinstance(array, np.ndarray)
    assert array.dtype == np.float32
    assert array.tolist() == [[world] * 2] * 2
    scalar = ddp.sum_all(np.float64(0.5))
    assert isinstance(scalar, np.float64)
    assert scalar == world / 2
    assert isinstance(ddp.sum_all(np.array(1)), np.ndarray)


@check
def sums_over_an_empty_shard() -> None:
    if ddp.world_size() == 1:
        return
    full = ddp.is_main()
    assert ddp.sum_all(2.5 if full else 0) == 2.5
    for value in (torch.tensor(7), torch.tensor([1.5, 2.0]), torch.tensor([[3]])):
        total = ddp.sum_all(value if full else 0)
        assert torch.equal(total, value)
        assert total.dtype == value.dtype
    assert ddp.sum_all(np.array([1, 2]) if full else 0).tolist() == [1, 2]
    assert ddp.sum_all(np.float32(1.5) if full else 0) == np.float32(1.5)
    assert ddp.sum_all(torch.tensor(2) if full else 0.5).item() == 2.5


@check
def sums_that_cannot_be() -> None:
    if ddp.world_size() == 1:
        return
    full = ddp.is_main()
    raises(ValueError, "different numbers of values: [2, 1]", lambda: ddp.sum_all(*([1, 1] if full else [1])))
    raises(ValueError, "rank 1: tensor (int64) of shape (3,)", lambda: ddp.sum_all([1, 2] if full else [1, 2, 3]))
    raises(TypeError, "cannot be summed: list", lambda: ddp.sum_all(["a"]))
    raises(ValueError, "rank 1: tensor (float32) of shape (3,)", lambda: ddp.sum_all(torch.zeros(2 if full else 3)))
    raises(ValueError, "value 1 differs", lambda: ddp.sum_all(1, torch.zeros(2) if full else 1))
    raises(TypeError, "value 0 on rank 1 cannot be summed: NoneType", lambda: ddp.sum_all(1 if full else None))
    raises(TypeError, "complex64", lambda: ddp.sum_all(torch.zeros(1, dtype=torch.complex64)))
    raises(TypeError, "sparse", lambda: ddp.sum_all(torch.eye(2).to_sparse()))
    raises(TypeError, "numpy <U1", lambda: ddp.sum_all(np.array("a")))
    raises(OverflowError, "uint8", lambda: ddp.sum_all(torch.tensor(250, dtype=torch.uint8)))
    assert ddp.sum_all(1) == ddp.world_size()


@check
def sums_over_a_loader() -> None:
    world = ddp.world_size()
    full: DataLoader[int] = DataLoader(range(4))  # type: ignore[arg-type]
    assert ddp.sum_all(2, 0.5, over=full) == (2, 0.5)
    assert ddp.mean_all(2, over=full) == 2.0
    part = ddp.distribute(DataLoader(range(4), batch_size=2))  # type: ignore[arg-type]
    bar = SimpleNamespace(iterable=part)
    for divided in (part, ddp.shard(full), ddp.shard([1, 2]), bar):
        assert ddp.sum_all(2, over=divided) == 2 * world
        assert ddp.mean_all(2, over=divided) == 2.0


@check
def sums_of_dicts() -> None:
    world, main = ddp.world_size(), ddp.is_main()
    total, number = ddp.sum_all({"a": 1, "b": 0.5}, 2)
    assert total == {"a": world, "b": 0.5 * world}
    assert number == 2 * world
    counted = ddp.sum_all(Counter("aa" if main else "ba"))
    assert isinstance(counted, Counter)
    assert dict(counted) == ({"a": 2} if world == 1 else {"a": 3, "b": 1})
    grown: defaultdict[str, int] = defaultdict(int, {"x" if main else "y": 1})
    kept = ddp.sum_all(grown)
    assert list(kept) == (["x"] if world == 1 else ["x", "y"])
    assert kept["z"] == 0
    if world > 1:
        raises(ValueError, "value 0 is a dict on some ranks only", lambda: ddp.sum_all({"a": 1} if main else 3))
        raises(TypeError, "value 0 on rank 0 cannot be summed: dict", lambda: ddp.sum_all({"a": "b"}))


@check
def gathered() -> None:
    world, me = ddp.world_size(), ddp.rank()
    ranks = range(world)
    assert ddp.gather_all([me, "x"]) == [one for r in ranks for one in (r, "x")]
    tensors, arrays = ddp.gather_all(torch.full((me + 1, 2), me), np.full(me + 2, me))
    assert torch.equal(tensors, torch.cat([torch.full((r + 1, 2), r) for r in ranks]))
    assert arrays.tolist() == [r for r in ranks for _ in range(r + 2)]
    by_key = ddp.gather_all({"a": [me], "b": [], me: torch.ones(1)})
    wanted: dict[Any, list[Any]] = {"a": list(ranks), "b": [], **{r: [1.0] for r in ranks}}
    assert {k: list(v) for k, v in by_key.items()} == wanted
    grown = ddp.gather_all(defaultdict(list, {"k": [me]}))
    assert grown["none"] == []
    by_name: defaultdict[str, list[int]] = defaultdict(lambda: [])  # its function cannot be sent
    by_name[str(me)].append(me)
    joined = ddp.gather_all(by_name)
    assert joined == {str(r): [r] for r in ranks}
    assert joined["new"] == []
    nested = ddp.gather_all([torch.tensor([me])])
    assert [int(one) for one in nested] == list(ranks)


@check
def gathered_in_the_order_of_a_loader() -> None:
    """Rank r has the samples r, r + W, ..., in batches of two; what is gathered is what one process has."""
    world, me = ddp.world_size(), ddp.rank()
    mine = [*range(me, 6 * world, world)]
    whole = [*range(6 * world)]
    assert ddp.gather_all(mine, order="samples") == whole
    tensor, array, by_key = ddp.gather_all(torch.tensor(mine), np.array(mine), {"a": mine}, order="samples")
    assert tensor.tolist() == array.tolist() == by_key["a"] == whole
    batches = [torch.tensor(mine[at : at + 2]) for at in (0, 2, 4)]
    joined = ddp.gather_all(batches, order="batches")
    assert [one.tolist() for one in joined] == [whole[at : at + 2 * world] for at in range(0, 6 * world, 2 * world)]
    pairs = ddp.gather_all([(i, i + 0.5) for i in mine], order="samples")
    assert pairs == [(i, i + 0.5) for i in whole]
    # one element more on the first rank comes last
    longer = [me] * (2 if ddp.is_main() else 1)
    assert ddp.gather_all(longer, order="samples") == ([*range(world), 0] if world > 1 else [0, 0])
    assert ddp.gather_all([], order="batches") == []
    raises(ValueError, "order is 'rows', neither", lambda: ddp.gather_all(mine, order="rows"))  # type: ignore[arg-type]


@check
def gathered_from_ranks_without_anything() -> None:
    if ddp.world_size() == 1:
        return
    for full in (ddp.is_main(), not ddp.is_main()):
        assert ddp.gather_all([1] if full else None) == [1]
        assert ddp.gather_all(torch.ones(2, 3) if full else torch.tensor([])).shape == (2, 3)
        assert ddp.gather_all(np.ones((2, 3)) if full else []).shape == (2, 3)
    assert ddp.gather_all(None) is None
    assert ddp.gather_all([]) == []
    assert ddp.gather_all(1, over=DataLoader(range(4))) == 1  # type: ignore[arg-type]


@check
def gathered_what_cannot_be() -> None:
    if ddp.world_size() == 1:
        return
    main = ddp.is_main()
    raises(ValueError, "different numbers of values: [2, 1]", lambda: ddp.gather_all(*([[1], [1]] if main else [[1]])))
    raises(TypeError, "different kinds: ['list', 'tensor']", lambda: ddp.gather_all([1] if main else torch.ones(1)))
    raises(TypeError, "a str cannot be put end to end", lambda: ddp.gather_all("a"))
    raises(TypeError, "a Tensor cannot be put end to end", lambda: ddp.gather_all(torch.tensor(1)))
    raises(TypeError, "a ndarray cannot be put end to end", lambda: ddp.gather_all(np.array(1)))
