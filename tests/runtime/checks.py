"""Behaviours that hold for any number of processes. Each check runs on every rank of a job, in one process and in two."""

from __future__ import annotations

import copy
import logging
import os
import random
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dpmigrate_runtime as ddp
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader

CHECKS: dict[str, Callable[[], None]] = {}


def check(run: Callable[[], None]) -> Callable[[], None]:
    CHECKS[run.__name__] = run
    return run


def everyone(value: Any) -> list[Any]:
    """The value of each rank."""
    box = [None] * ddp.world_size()
    dist.all_gather_object(box, value)
    return box


def raises(kind: type[Exception], text: str, run: Callable[[], Any]) -> None:
    try:
        run()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


@check
def place() -> None:
    assert everyone(ddp.rank()) == list(range(ddp.world_size()))
    assert ddp.local_rank() == ddp.rank()
    assert ddp.is_main() == (ddp.rank() == 0)
    assert ddp.device() == torch.device("cpu")
    ddp.setup()
    ddp.barrier()


@check
def common_streams() -> None:
    drawn = everyone((torch.rand(1).item(), random.random(), float(np.random.rand()), torch.initial_seed()))
    assert len(set(drawn)) == 1


@check
def wrapped_model() -> None:
    torch.manual_seed(ddp.rank())
    bare = nn.Linear(3, 1)
    model = ddp.wrap(bare)
    assert ddp.wrap(model) is model
    assert model.module is bare
    assert ddp.unwrap(model) is bare
    assert list(model.state_dict()) == [f"module.{key}" for key in bare.state_dict()]
    assert len({tuple(weight) for weight in everyone(bare.weight.detach().reshape(-1).tolist())}) == 1
    with model.no_sync():  # type: ignore[operator]
        model(torch.ones(2, 3) * (ddp.rank() + 1)).mean().backward()
    assert bare.weight.grad is not None
    assert bare.weight.grad[0, 0].item() == ddp.rank() + 1
    model.zero_grad()
    model(torch.ones(2, 3) * (ddp.rank() + 1)).mean().backward()
    assert bare.weight.grad is not None
    assert bare.weight.grad[0, 0].item() == (ddp.world_size() + 1) / 2


@check
def accumulated_gradients() -> None:
    torch.manual_seed(3)
    bare = nn.Linear(3, 2)
    every: Any = ddp.wrap(copy.deepcopy(bare))
    window: Any = ddp.wrap(bare)
    own = torch.Generator().manual_seed(ddp.rank())  # the common stream is another check's
    for turn in range(3):
        x = torch.randn(4, 3, generator=own)
        every(x).sum().backward()
        with ddp.accumulate(window, nn.Linear(1, 1), sync=turn == 2):
            window(x).sum().backward()
        ours = ddp.unwrap(window).weight.grad.sum().item()
        assert (len(set(everyone(ours))) == 1) == (turn == 2 or ddp.world_size() == 1)
    torch.testing.assert_close(ddp.unwrap(window).weight.grad, ddp.unwrap(every).weight.grad)


@check
def wrap_odd_models() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always" if ddp.is_main() else "ignore")
        ddp.wrap(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), sync_bn=True)
    assert len(seen) == (1 if ddp.world_size() > 1 and ddp.is_main() else 0)
    frozen = nn.Linear(2, 2).requires_grad_(False)
    assert torch.equal(ddp.wrap(frozen)(torch.ones(1, 2)), frozen(torch.ones(1, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inner = nn.Linear(2, 2)
        assert ddp.wrap(nn.DataParallel(inner)).module is inner


@check
def buffers() -> None:
    model, bare = nn.Module(), nn.BatchNorm1d(2)
    for name, dtype in {"flags": torch.bool, "small": torch.int16, "tiny": torch.float16, "pair": torch.complex64}.items():
        model.register_buffer(name, torch.full((3,), ddp.rank()).to(dtype))
    model.register_buffer("point", torch.tensor(ddp.rank()))
    bare(torch.randn(4, 2) + ddp.rank())
    ddp.sync_buffers(model, bare, nn.Linear(1, 1))
    ddp.sync_buffers(nn.Linear(1, 1))
    assert all(not buffer.any() for buffer in model.buffers())
    assert len(set(everyone(str(bare.running_mean)))) == 1
    assert bare.num_batches_tracked == 1


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
    first, second = ddp.mean_all([torch.tensor(1.5, requires_grad=True), torch.tensor(2.5)])
    assert (first.item(), second.item()) == (1.5, 2.5)


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
    nested = ddp.gather_all([torch.tensor([me])])
    assert [int(one) for one in nested] == list(ranks)


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


@check
def summed_loss() -> None:
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    loss = (weight**2).sum()
    kept = ddp.sum_loss(loss)
    assert kept.item() == 13.0
    kept.backward(retain_graph=True)
    assert weight.grad is not None
    assert weight.grad.tolist() == [4.0 * ddp.world_size(), 6.0 * ddp.world_size()]
    weight.grad.zero_()
    loss.backward()
    assert weight.grad.tolist() == [4.0, 6.0]
    assert ddp.sum_loss(loss.detach()).item() == 13.0


@check
def weights_of_targets() -> None:
    target = torch.tensor([[0, 2, -100], [2, 1, 1]])
    assert ddp.weight_of(target).item() == 5
    assert ddp.weight_of(target.clamp(min=0), ignore_index=2).item() == 4
    classes = torch.tensor([1.0, 2.0, 4.0])
    assert ddp.weight_of(target, weight=classes).item() == 1 + 4 + 4 + 2 + 2
    assert ddp.weight_of(torch.full((3,), -100), weight=classes).item() == 0
    assert ddp.weight_of(torch.rand(4, 3)).item() == 4
    assert ddp.weight_of(torch.rand(4, 3, 5, 5)).item() == 100
    assert ddp.weight_of(torch.rand(3)).item() == 1


@check
def weighted_means() -> None:
    world, mine = ddp.world_size(), ddp.rank()
    weight = torch.tensor([2.0], requires_grad=True, dtype=torch.float64)
    # rank r has r + 1 values, each 2 * (r + 1)
    counts = [r + 1 for r in range(world)]
    loss = ddp.weighted_mean((weight * (mine + 1)).mean(), mine + 1)
    assert abs(loss.item() - sum(2.0 * c * c for c in counts) / sum(counts)) < 1e-12
    loss.backward()
    assert weight.grad is not None
    assert abs(weight.grad.item() - (mine + 1) ** 2 * world / sum(counts)) < 1e-12
    # the last rank has nothing that counts
    weight.grad = None
    last = world > 1 and mine == world - 1
    count = torch.tensor(0 if last else 1)
    part = torch.nn.functional.cross_entropy(torch.stack([weight, weight * 3], 1).reshape(1, 2), torch.tensor([-100 if last else 0]), reduction="mean")
    loss = ddp.weighted_mean(part, count)
    assert not loss.isnan()
    loss.backward()
    found: Any = weight.grad
    assert (found.item() == 0) == last
    assert all(one == everyone(loss.item())[0] for one in everyone(loss.item()))
    if world > 1:
        raises(ValueError, "one loss and one weight", lambda: ddp.weighted_mean(torch.ones(2), 1))
        raises(ValueError, "one loss and one weight", lambda: ddp.weighted_mean(torch.ones(()), torch.ones(2)))
        raises(ValueError, "one number", lambda: ddp.mean_count(torch.ones(2)))
    counted = ddp.mean_count(torch.tensor([mine]))
    assert counted.tolist() == [(world - 1) / 2]
    assert ddp.mean_count(float(mine)) == (world - 1) / 2
    assert ddp.mean_count(torch.tensor(1.0, dtype=torch.float64)).dtype == torch.float64


@check
def exchanges() -> None:
    last = ddp.rank() == ddp.world_size() - 1
    assert ddp.any_rank(last)
    assert ddp.any_rank(torch.tensor(last)) is True
    assert ddp.any_rank(False) is False
    assert ddp.from_main(ddp.rank()) == 0
    got = ddp.from_main({"t": torch.full((2,), ddp.rank()), "n": [ddp.rank(), None]})
    assert got["n"] == [0, None]
    assert got["t"].tolist() == [0, 0]
    assert got["t"].device.type == "cpu"


@check
def one_checkpoint() -> None:
    folder = Path(ddp.from_main(tempfile.mkdtemp() if ddp.is_main() else ""))
    ddp.save({"rank": ddp.rank()}, folder / "state.pt")
    ddp.barrier()
    assert torch.load(folder / "state.pt") == {"rank": 0}
    assert os.listdir(folder) == ["state.pt"]
    ddp.barrier()  # the next file comes when every rank has looked
    with open(ddp.main_path(folder / "log.txt"), "w") as log:
        log.write(f"rank {ddp.rank()}")
    ddp.barrier()
    assert (folder / "log.txt").read_text() == "rank 0"


@check
def main_goes_first() -> None:
    folder = Path(ddp.from_main(tempfile.mkdtemp() if ddp.is_main() else ""))
    for name in ("one", "two"):
        with ddp.main_first():
            seen = (folder / name).exists()
            (folder / name).mkdir(exist_ok=True)
            with ddp.main_first():
                (folder / name / str(ddp.rank())).touch()
        assert seen != ddp.is_main()

    def fails() -> None:
        with ddp.main_first():
            raise OSError("disk full")

    raises(OSError if ddp.is_main() else RuntimeError, "disk full", fails)


@check
def main_has_the_writer() -> None:
    made = ddp.main_only(list, "ab")
    assert bool(made) == ddp.is_main()
    assert list(made) == (["a", "b"] if ddp.is_main() else [])


@check
def only_main_is_heard() -> None:
    silent = not ddp.is_main()
    assert (sys.stdout.name == os.devnull) == silent
    assert logging.getLogger("any").isEnabledFor(logging.WARNING) != silent
    assert logging.getLogger("any").isEnabledFor(logging.ERROR)
    from tqdm import tqdm, trange
    from tqdm.auto import tqdm as auto

    with open(os.devnull, "w") as out:
        bars = [tqdm([1], file=out), auto([1], file=out), trange(1, file=out), tqdm([1], file=out, disable=False)]
        assert all(bar.disable == silent for bar in bars)
        positional = tqdm([1], "d", None, False, out, None, 0.1, 10, None, None, False, "it")
        assert positional.disable == silent
        for bar in [*bars, positional]:
            bar.close()


@check
def zz_stream_in_common() -> None:
    ddp.seed_ranks()
    own = torch.get_rng_state()
    with ddp.same_stream():
        drawn = everyone((torch.rand(1).item(), random.random(), float(np.random.rand())))
    assert len(set(drawn)) == 1
    later = everyone(torch.rand(1).item())
    assert len(set(later)) == ddp.world_size()
    if not ddp.is_main():
        torch.set_rng_state(own)
        assert torch.rand(1).item() == later[ddp.rank()]  # theirs went on from where it was


@check
def zz_last_streams_apart() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    ddp.seed_ranks()
    assert torch.equal(torch.get_rng_state(), before) == ddp.is_main()
    assert set(everyone(ddp.common_seed())) == {5}
    drawn = everyone((torch.rand(1).item(), random.random(), float(np.random.rand())))
    assert len(set(drawn)) == ddp.world_size()
    sampler = ddp.shard_sampler(torch.utils.data.SubsetRandomSampler(range(10)))
    assert len(sampler.whole) == 10
    assert sorted(item for share in everyone(list(sampler)) for item in share) == list(range(10))
