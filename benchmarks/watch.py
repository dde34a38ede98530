"""What the nets of the runtime add to a training step: microseconds, and exchanges between ranks.

    python benchmarks/watch.py [ROUNDS]

Each part is timed by itself, without the step round it, in one process that takes itself for one of
several ranks; the exchanges are counted, and timed without the all_reduce that each of them is. The
parameters are as many as those of a ResNet-50 (161; their sizes do not matter, since 64 numbers of
each are read). A number is that of the quickest round, since the machine may be busy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import dpmigrate_runtime as ddp
import torch
import torch.distributed as dist
from dpmigrate_runtime import _batches, _draws, _drift, _nets, _outside
from dpmigrate_runtime._state import STATE
from torch import nn
from torch.optim.optimizer import Optimizer
from torch.utils.data import DataLoader, TensorDataset, dataloader

#: short rounds, of which some are not interrupted on a busy machine
ROUNDS = 301
CALLS = 100
PARAMETERS = 161
#: a step at which nothing is compared
QUIET = 3


def each(run: Callable[[], object], rounds: int, calls: int = CALLS) -> float:
    """Microseconds of one call, in the quickest round."""
    run()
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        took.append((time.perf_counter() - start) / calls * 1e6)
    return min(took)


def model(frozen: bool = False) -> nn.ParameterList:
    """As many parameters as a ResNet-50 has; one can be trained, or all."""
    made = nn.ParameterList(torch.zeros(256) for _ in range(PARAMETERS))
    if frozen:
        made[1:].requires_grad_(False)
    return made


def quiet_step(optimizer: Optimizer) -> Callable[[], None]:
    """What the hook does after a step at which nothing is compared."""
    _drift.after_step(optimizer, (), {})
    counter = STATE.looked[optimizer].counter
    assert counter is not None

    def run() -> None:
        counter.steps = QUIET - 1
        _drift.after_step(optimizer, (), {})

    return run


def meeting(optimizer: Optimizer, steps: int) -> Callable[[], None]:
    """What the hook does after a step at which something is compared."""

    def run() -> None:
        original, dist.all_reduce = dist.all_reduce, lambda *args, **kwargs: None
        _drift._meet(optimizer, steps)
        dist.all_reduce = original

    return run


class Batches:
    """An iterator of a DataLoader that costs nothing itself."""

    def __init__(self) -> None:
        loader = ddp.distribute(DataLoader(TensorDataset(torch.zeros(64, 1)), batch_size=8))
        self._index_sampler, self._dataset = loader.batch_sampler, loader.dataset
        self._num_yielded = 0

    def plain(self) -> int:
        self._num_yielded += 1
        return self._num_yielded

    noted = _draws.given(plain)


def exchanges(optimizer: Optimizer, steps: int) -> tuple[int, int]:
    """The collectives of so many steps: with all nets, and with that of the weights alone."""
    counted: list[int] = []
    original = dist.all_reduce

    def count(*args: Any, **kwargs: Any) -> Any:
        counted[-1] += 1
        return original(*args, **kwargs)

    dist.all_reduce = count
    for off in (frozenset[str](), frozenset({"parameters", "batches", "passes"})):
        STATE.unwatched, counter = off, STATE.looked[optimizer].counter
        assert counter is not None
        counter.steps = 0
        counted.append(0)
        for _ in range(steps):
            _drift.after_step(optimizer, (), {})
    dist.all_reduce = original
    STATE.unwatched = frozenset()
    return counted[0], counted[1]


def hooked() -> bool:
    """Whether anything of torch has been changed."""
    methods = (dataloader._BaseDataLoaderIter.__next__, Optimizer.add_param_group)
    own = any(
        method.__code__.co_filename.endswith(("_draws.py", "_outside.py")) for method in methods
    )
    return own or bool(STATE.hooks)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    torch.set_num_threads(1)
    ddp.setup()
    ddp.wrap(nn.Linear(1, 1))
    print(f"one process: {'something is hooked' if hooked() else 'nothing is hooked into torch'}\n")
    setattr(_nets, "world_size", lambda: 2)  # noqa: B010 - mypy: it is imported there
    _nets.cast_nets()
    trained, frozen = model(), model(frozen=True)
    for one in (trained, frozen):
        _drift.watch_model(one, compare=True)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (trained, frozen)]
    batches, image = Batches(), torch.zeros(32, 3, 224, 224)
    data = TensorDataset(torch.zeros(50_000, 3, 32, 32))
    held = {"samples": [(f"{number}.png", 0) for number in range(100_000)]}
    lines: list[tuple[str, str, float]] = [
        ("a step, nothing is compared", "each step", each(quiet_step(optimizers[0]), rounds)),
        (
            "the same, all but one parameter frozen",
            "each step",
            each(quiet_step(optimizers[1]), rounds),
        ),
        ("a batch", "each batch", each(batches.noted, rounds) - each(batches.plain, rounds)),
        ("a pass begins", "each pass", each(lambda: _draws._begun(batches), rounds)),
        ("the passes, one number", "every 64 steps", each(meeting(optimizers[0], 192), rounds, 10)),
        (
            "weights, batches and passes",
            "steps 2, 4, 8, ...",
            each(meeting(optimizers[0], 512), rounds, 2),
        ),
        ("the input of a model", "until step 2", each(lambda: _batches._mark([image]), rounds, 10)),
        ("data in memory", "until divided", each(lambda: _batches.likeness(data), rounds, 2)),
        (
            "data in 100,000 files",
            "until divided",
            each(lambda: _batches.likeness([held]), rounds, 2),
        ),
        ("a parameter is made", "once", each(lambda: _outside.first_seen(trained[0]), rounds)),
    ]
    print(f"{'microseconds, several ranks':42}{'when':22}{'one':>8}")
    for name, when, took in lines:
        print(f"{name:42}{when:22}{took:8.1f}")
    steps = 1024
    every, weights = exchanges(optimizers[0], steps)
    print(f"\nexchanges in {steps} steps: {every}, of which {weights} are those of the weights")
    ddp.cleanup()


if __name__ == "__main__":
    main()
