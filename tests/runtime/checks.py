"""Behaviours that hold for any number of processes. Each check runs on every rank of a job, in one process and in two."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import enum
import io
import logging
import os
import pickle
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dpmigrate_runtime as ddp
import numpy as np
import torch
import torch.distributed as dist
from torch import nn

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


# the first check by name: what others draw is their own
@check
def a_common_stream_until_seed_ranks() -> None:
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
def wrapped_again() -> None:
    """One wrapper for a model, whatever is wrapped between; another one for what was frozen then; none in copies and files of the model."""
    models = [nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)) for _ in range(2)]
    models[0][0].requires_grad_(False)
    first = [ddp.wrap(m, again=True) for m in models]
    several = ddp.world_size() > 1
    assert all((ddp.wrap(m, again=True) is w) is several for m, w in zip(models, first, strict=True))
    assert all(ddp.wrap(m) is not w for m, w in zip(models, first, strict=True))
    models[0][0].requires_grad_(True)
    thawed = ddp.wrap(models[0], again=True)
    assert thawed is not first[0] and thawed.module is models[0]
    x = torch.ones(2, 3) * (ddp.rank() + 1)
    for model in models:
        for _ in range(2):
            model.zero_grad()
            ddp.wrap(model, again=True)(x).mean().backward()
            assert len(set(everyone(next(p.grad.sum().item() for p in model.parameters() if p.grad is not None)))) == 1
    assert [len(list(m.children())) for m in models] == [2, 2]
    buffer = io.BytesIO()
    torch.save(models[0], buffer)
    buffer.seek(0)
    for other in (copy.deepcopy(models[0]), torch.load(buffer, weights_only=False)):
        assert isinstance(other, nn.Sequential)
        assert not any(isinstance(v, nn.Module) for v in vars(other).values())
        assert ddp.wrap(other, again=True).module is other


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
def wrap_odd_buffers() -> None:
    """DDP would not write to the first two, and stops at one that is sparse, or of 16-bit integers."""
    for odd in (torch.arange(12.0).view(1, 3, 4).transpose(0, 1), torch.arange(3.0).expand(4, 3), torch.eye(3).to_sparse(), torch.arange(6).view(2, 3).T, torch.arange(6, dtype=torch.int16)):
        model = nn.Linear(2, 1)
        model.register_buffer("table", odd.clone() if odd.is_sparse else odd)
        model.register_buffer("count", torch.tensor(ddp.rank()))
        wrapped: Any = ddp.wrap(model)
        for _ in range(2):
            wrapped(torch.ones(3, 2)).sum().backward()
        model.count.fill_(ddp.rank())  # type: ignore[operator]
        ddp.sync_buffers(wrapped)
        assert model.count == 0
        assert torch.equal(model.table.to_dense(), odd.to_dense())  # type: ignore[operator]


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


def _copied_as_before(self: Any) -> None:
    """How DDP copies buffers in a torch without the fix of pytorch/pytorch#175024."""
    with torch.no_grad():
        self._assign_modules_buffers()
        self._sync_module_buffers(0)


@check
def several_forwards_before_a_backward() -> None:
    """Running statistics that DDP copies before a forward are no change of what an earlier forward has kept."""
    wrapper = nn.parallel.DistributedDataParallel
    fixed = wrapper._sync_buffers
    for copied in (fixed, _copied_as_before):
        wrapper._sync_buffers = copied  # type: ignore[method-assign]
        model = ddp.wrap(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))
        sum(model(torch.randn(5, 3)).square().mean() for _ in range(3)).backward()
        assert wrapper._sync_buffers is copied or ddp.world_size() > 1
    wrapper._sync_buffers = fixed  # type: ignore[method-assign]


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
def summed_term() -> None:
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    term = ddp.sum_term((weight**2).sum())
    assert term.item() == 13.0 * ddp.world_size()
    (term + weight.mean()).backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [4.0 * ddp.world_size() + 0.5, 6.0 * ddp.world_size() + 0.5]
    with torch.no_grad():
        assert ddp.sum_term((weight**2).sum()).item() == 13.0


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
    # to the last bit: tests by it have to fall out alike
    for i in range(50):
        mine_alone = torch.tensor(0.1 * (i + 1) / (mine + 1.7), requires_grad=True)
        assert len(set(everyone(ddp.weighted_mean(mine_alone, 3 + mine).item()))) == 1
    if world > 1:
        raises(ValueError, "one loss and one weight", lambda: ddp.weighted_mean(torch.ones(2), 1))
        raises(ValueError, "one loss and one weight", lambda: ddp.weighted_mean(torch.ones(()), torch.ones(2)))
        raises(ValueError, "one number", lambda: ddp.mean_count(torch.ones(2)))
    counted = ddp.mean_count(torch.tensor([mine]))
    assert counted.tolist() == [(world - 1) / 2]


@check
def criteria_over_weights() -> None:
    """A criterion that puts its own losses together: with each kind of weights, targets by their place and by their name, copied and kept in a file."""
    world, mine = ddp.world_size(), ddp.rank()
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(4 * world, 3, generator=generator, dtype=torch.float64)
    targets = torch.randint(0, 3, (4 * world,), generator=generator)
    if world > 1:
        targets[-4:] = 0  # the last rank has nothing that counts where 0 is left out
    shares = torch.rand(4 * world, 3, generator=generator, dtype=torch.float64).softmax(1)
    classes = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)
    own = slice(4 * mine, 4 * mine + 4)
    cases: list[tuple[torch.nn.Module, torch.Tensor]] = [
        (torch.nn.CrossEntropyLoss(weight=classes), targets), (torch.nn.CrossEntropyLoss(ignore_index=0), targets),
        (torch.nn.CrossEntropyLoss(classes, label_smoothing=0.1), targets), (torch.nn.NLLLoss(classes, ignore_index=1), targets),
        (torch.nn.CrossEntropyLoss(weight=classes), shares), (torch.nn.BCEWithLogitsLoss(weight=classes), shares), (torch.nn.CrossEntropyLoss(), targets),
    ]  # fmt: skip
    for criterion, target in cases:
        whole = torch.ones(3, dtype=torch.float64, requires_grad=True)
        expected = criterion(scores * whole, target)
        expected.backward()
        kept = ddp.weighted_loss(criterion)
        assert kept is criterion
        for called in (kept, copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
            part = torch.ones(3, dtype=torch.float64, requires_grad=True)
            found = called(target=target[own], input=scores[own] * part)
            found.backward()
            assert whole.grad is not None and part.grad is not None
            assert torch.allclose(ddp.mean_all(part.grad), whole.grad, rtol=1e-12), criterion
            assert isinstance(criterion, torch.nn.BCEWithLogitsLoss) or torch.allclose(found, expected, rtol=1e-12)
    for criterion in (torch.nn.CrossEntropyLoss(weight=classes, reduction="none"), torch.nn.CrossEntropyLoss(weight=classes, reduction="sum")):
        alone = criterion(scores[own], targets[own])
        assert torch.equal(ddp.weighted_loss(criterion)(scores[own], targets[own]), alone)
    weighted = ddp.weighted_loss(torch.nn.CrossEntropyLoss(weight=classes))
    with torch.no_grad():
        for _ in range(mine):  # nothing is exchanged
            assert weighted(scores[own], targets[own]) == torch.nn.functional.cross_entropy(scores[own], targets[own], classes)
    raises(TypeError, "a loss of torch", lambda: ddp.weighted_loss(torch.nn.Linear(1, 1)))


@check
def means_in_a_compiled_forward() -> None:
    """As torch.compile traces them where a model gives its own loss."""
    world, mine = ddp.world_size(), ddp.rank()
    weight = torch.tensor([2.0], requires_grad=True)

    def forward(x: torch.Tensor) -> torch.Tensor:
        zero: torch.Tensor = 0 * ddp.mean_count(x.sum())
        return ddp.weighted_mean((weight * x).mean(), len(x)) + zero

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the compiler leaves to Python
        loss: torch.Tensor = torch.compile(forward, backend="eager")(torch.full((mine + 1,), float(mine + 1)))
    counts = [r + 1 for r in range(world)]
    assert abs(loss.item() - sum(2.0 * c * c for c in counts) / sum(counts)) < 1e-6
    loss.backward()
    assert ddp.mean_count(float(mine)) == (world - 1) / 2
    assert ddp.mean_count(torch.tensor(1.0, dtype=torch.float64)).dtype == torch.float64
    with torch.no_grad():
        # an evaluation, which ranks may enter with other numbers of batches: nothing is exchanged
        for _ in range(mine):
            assert ddp.weighted_mean(torch.tensor(mine), 3).item() == mine
            assert ddp.mean_count(mine) == mine


@check
def functions_of_sums() -> None:
    """With parts of unlike length on each rank: value and gradient are those of one process, for numbers and for tensors."""
    world, mine = ddp.world_size(), ddp.rank()
    start = torch.linspace(0.5, 1.5, 4, dtype=torch.float64)
    parts = [torch.linspace(-1.0, 1.0, 4 * (r + 2), dtype=torch.float64).reshape(-1, 4) + r for r in range(world)]

    def loss(weight: torch.Tensor, x: torch.Tensor, summed: Any = lambda v: v) -> torch.Tensor:
        p = torch.sigmoid(x * weight)
        both, either = summed((p * (x > 0)).sum(0)), summed(p.sum(0) + (x > 0).sum(0))
        made: torch.Tensor = (1 - (2 * both + 1) / (either + 1)).mean() + torch.sqrt(summed(p.pow(2).sum()) / summed(len(x)))
        return made

    whole = start.clone().requires_grad_()
    expected = loss(whole, torch.cat(parts))
    expected.backward()
    weight = start.clone().requires_grad_()
    found = loss(weight, parts[mine], ddp.batch_sum)
    found.backward()
    assert whole.grad is not None and weight.grad is not None
    assert torch.allclose(found, expected, rtol=1e-12)
    assert torch.allclose(ddp.mean_all(weight.grad), whole.grad, rtol=1e-12)

    # of equally many samples means are put together as well
    same = [part[:2] for part in parts]
    whole, weight = start.clone().requires_grad_(), start.clone().requires_grad_()
    expected = (torch.cat(same) * whole).pow(2).mean().log()
    expected.backward()
    found = ddp.batch_mean((same[mine] * weight).pow(2).mean()).log()
    found.backward()
    assert whole.grad is not None and weight.grad is not None
    assert torch.allclose(ddp.mean_all(weight.grad), whole.grad, rtol=1e-12)
    assert ddp.batch_sum(torch.tensor([True, mine == 0, False])).tolist() == [world, 1, 0]
    counted = ddp.batch_sum(mine + 2)
    assert type(counted) is int and counted == sum(r + 2 for r in range(world))
    if world > 1:
        raises(RuntimeError, "as many numbers on every rank", lambda: ddp.batch_sum(torch.ones(3 + mine)))
        raises(RuntimeError, "as many numbers on every rank", lambda: ddp.batch_sum(torch.ones(1 + mine)))
    with torch.no_grad():
        for _ in range(mine):  # nothing is exchanged
            assert ddp.batch_sum(mine) == ddp.batch_mean(mine) == mine


@check
def losses_of_pairs() -> None:
    """Losses that compare samples, with parts of unlike length: those of all ranks, in the order of one process, give its value and gradient."""
    world, mine = ddp.world_size(), ddp.rank()
    start = torch.linspace(0.5, 1.5, 4, dtype=torch.float64)
    samples = torch.linspace(-1.0, 9.0, 4 * (3 * world + 1), dtype=torch.float64).reshape(-1, 4).sin()

    def loss(weight: torch.Tensor, x: torch.Tensor, gathered: Any = lambda v, **_: v) -> torch.Tensor:
        z = torch.cat([torch.sin(x * weight), torch.cos(x * weight)])
        every, turned = gathered(z, segments=2), gathered(z.T, dim=1, segments=2)
        half = len(every) // 2
        pairs = torch.cat([torch.arange(half, 2 * half), torch.arange(half)])
        made: torch.Tensor = torch.nn.functional.cross_entropy(every @ turned, pairs) + gathered(x * weight)[:3].std(0).sum()
        return made

    whole, weight = start.clone().requires_grad_(), start.clone().requires_grad_()
    expected = loss(whole, samples)
    expected.backward()
    found = loss(weight, samples[mine::world], ddp.batch_rows)
    found.backward()
    assert whole.grad is not None and weight.grad is not None
    assert torch.allclose(found, expected, rtol=1e-12)
    assert torch.allclose(ddp.mean_all(weight.grad), whole.grad, rtol=1e-12)
    order = torch.arange(3 * world + 1)
    assert ddp.batch_rows(order[mine::world]).equal(order)
    twice = order.repeat_interleave(2)
    assert ddp.batch_rows(order[mine::world].repeat_interleave(2), each=2).equal(twice)
    both = torch.cat([order[mine::world].repeat_interleave(2)] * 2)
    assert ddp.batch_rows(both, segments=2, each=2).equal(torch.cat([twice, twice]))
    assert ddp.batch_rows(torch.tensor([mine > 0])).tolist() == [r > 0 for r in range(world)]
    for dtype in (torch.int16, torch.float16, torch.bfloat16, torch.complex64, torch.float64):  # whatever a backend sends
        found = ddp.batch_rows(torch.full((1, 2), mine + 1, dtype=dtype))
        assert found.equal(torch.arange(1, world + 1).to(dtype)[:, None].expand(world, 2)), dtype
    assert ddp.batch_rows(torch.ones(0, 2, dtype=torch.int16)).shape == (0, 2)
    if world > 1:
        raises(ValueError, "3 rows along dim 0 are no 2 segments", lambda: ddp.batch_rows(torch.ones(3), segments=2))
    with torch.no_grad():
        for _ in range(mine):  # nothing is exchanged
            assert len(ddp.batch_rows(torch.ones(3))) == 3


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
def settings_of_a_tracker() -> None:
    tracked = {"lr": 0.1, "layers": [ddp.rank(), 2]}
    got = ddp.main_settings(tracked if ddp.is_main() else None)
    assert got["lr"] == 0.1 and got["layers"] == [0, 2] and dict(got) == {"lr": 0.1, "layers": [0, 2]}
    assert (got is tracked) is ddp.is_main()
    if not ddp.is_main():
        assert got.lr == 0.1 and getattr(got, "deep", None) is None
        got.lr = 0.2
        got.update({"lr": 0.3}, allow_val_change=True)
        got.update(argparse.Namespace(deep=True), wide=False)
        got.setdefaults({"lr": 0.4, "seed": 3})
        assert got.as_dict() == {"lr": 0.3, "layers": [0, 2], "deep": True, "wide": False, "seed": 3}
        assert copy.deepcopy(got).deep is True


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
def one_temporary_folder() -> None:
    with ddp.main_folder(tempfile.TemporaryDirectory()) as folder:
        assert ddp.from_main(folder) == folder
        if ddp.is_main():
            Path(folder, "best.pt").write_text("3")
        ddp.barrier()
        assert Path(folder, "best.pt").read_text() == "3"
    ddp.barrier()
    assert not Path(folder).exists()
    with suppress(KeyError), ddp.main_folder(tempfile.TemporaryDirectory()):
        raise KeyError  # nobody waits


@check
def what_main_draws_first_is_drawn_for_all() -> None:
    """A split that follows must be the same on all ranks, though one alone made the file that needed random numbers."""
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    with ddp.main_first():
        if ddp.is_main():
            random.random(), torch.rand(3), np.random.rand()
    assert len({repr(one) for one in everyone((random.random(), torch.rand(2), np.random.rand()))}) == 1


@check
def main_has_the_writer() -> None:
    made = ddp.main_only(list, "ab")
    assert bool(made) == ddp.is_main()
    assert list(made) == (["a", "b"] if ddp.is_main() else [])


@check
def what_main_has_is_a_folder_elsewhere() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = ddp.main_only(Path, folder)
        inner = os.path.join(made, "logs")
        os.makedirs(inner, exist_ok=True)
        assert os.path.isdir(inner) and Path(made).exists()
        assert (os.fspath(made) == folder) == ddp.is_main()


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
        with tqdm(total=6, file=out) as bar:
            bar.update(4)
            bar.update()
            assert bar.n == 5
        bar.update({"loss": 0.5})  # it is closed: tqdm leaves whatever it is given
        bar.update(7)
        assert bar.n == 5
        bar = tqdm("abc", file=out)
        assert list(bar) == ["a", "b", "c"] and bar.n == 3
        bar.update()
        assert bar.n == 3
        bar = tqdm("abc", file=out, disable=True)  # on rank 0 it does not count either
        bar.update(2)
        assert list(bar) == ["a", "b", "c"] and bar.n == 0
        bar = tqdm("abc", file=out)
        for letter in bar:
            if letter == "b":
                break
        bar.close()
        bar.update(5)
        assert bar.n == 1
        bar = tqdm(total=3, file=out)
        bar.update(2)
        bar.reset()
        bar.update()
        assert bar.n == 1


@check
def y_own_streams_for_a_while() -> None:
    before = torch.get_rng_state()
    with ddp.own_streams():
        drawn = everyone((torch.rand(1).item(), random.random(), float(np.random.rand())))
    assert len(set(drawn)) == ddp.world_size()
    after = everyone((torch.rand(1).item(), random.random(), float(np.random.rand()), ddp.common_seed()))
    assert len(set(after)) == 1
    if ddp.is_main():  # whose streams were not disturbed
        torch.set_rng_state(before)
        torch.rand(1)
        assert torch.rand(1).item() == after[0][0]
    with ddp.own_streams():
        again = everyone(torch.rand(1).item())
    assert len({*again[1:], *(d[0] for d in drawn)}) == 2 * ddp.world_size() - 1  # the others draw new numbers
    kept: list[float] = []
    with suppress(KeyError), ddp.own_streams():
        kept += everyone(torch.rand(1).item())
        raise KeyError
    assert len(set(kept)) == ddp.world_size()
    assert len(set(everyone((torch.rand(1).item(), ddp.common_seed())))) == 1


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
def zy_streams_before_the_ranks_have_their_own() -> None:
    """A data set that seeds torch where it is built leaves that seed on all ranks: samplers and splits after it are the same everywhere."""
    with ddp.same_stream():
        torch.manual_seed(1)
        torch.rand(3)
    drawn = everyone((torch.rand(1).item(), random.random()))
    assert len(set(drawn)) == 1
    assert set(everyone(torch.initial_seed())) == {1}
    sampler = ddp.DistributedSampler(range(8))  # type: ignore[arg-type, var-annotated]
    ddp.seed_ranks()  # which compares what samplers were given
    assert len(set(everyone(sampler.seed))) == 1


@dataclasses.dataclass(frozen=True)
class _Scan:
    name: str
    number: int


class _Side(enum.Enum):
    LEFT = 1


@check
def hashes_in_common() -> None:
    text: list[Any] = ["a", "", "\ud800", b"a", Path("a/b"), None, ("a", 1, ("b",)), frozenset({"a", "b", "c"}), _Side.LEFT, _Scan("a", 3)]
    mine = [ddp.same_hash(value) for value in text]
    assert all(other == mine for other in everyone(mine))
    assert len(set(mine)) == len(mine) - 1 and mine[0] == mine[3]  # text and its bytes
    assert [ddp.same_hash(f"{k}") < 0 for k in range(64)].count(True) in range(16, 49)
    numbers: list[Any] = [0, -1, 2**70, True, 0.5, 1j, (1, 2.5), frozenset({3})]
    assert [ddp.same_hash(value) for value in numbers] == [hash(value) for value in numbers]
    assert ddp.same_hash(_Scan) == hash(_Scan)
    raises(TypeError, "unhashable", lambda: ddp.same_hash([1]))


@check
def zz_last_streams_apart() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    seeded: list[int] = []
    sys.modules["imgaug"] = SimpleNamespace(seed=seeded.append)  # type: ignore[assignment]
    ddp.seed_ranks()
    del sys.modules["imgaug"]
    assert len(set(everyone(tuple(seeded)))) == ddp.world_size() and bool(seeded) is not ddp.is_main()
    assert torch.equal(torch.get_rng_state(), before) == ddp.is_main()
    assert {seed % 1000 for seed in everyone(ddp.common_seed())} == {5}
    drawn = everyone((torch.rand(1).item(), random.random(), float(np.random.rand())))
    assert len(set(drawn)) == ddp.world_size()
    sampler = ddp.shard_sampler(torch.utils.data.SubsetRandomSampler(range(10)))
    assert len(sampler.whole) == 10
    assert sorted(item for share in everyone(list(sampler)) for item in share) == list(range(10))
