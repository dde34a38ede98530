"""Behaviours of the nets under batches that are alike on all ranks, and passes that are not."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dpmigrate_runtime as ddp
import torch
from dpmigrate_runtime import _batches, _draws
from dpmigrate_runtime._state import STATE
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data import DistributedSampler as OfTorch

from tests.runtime.checks import check
from tests.runtime.checks_outside import several, stops

POINTS = torch.arange(96.0).reshape(32, 3)
DATA = TensorDataset(POINTS)


@contextmanager
def anew() -> Iterator[None]:
    """As before the ranks have compared anything; their random numbers are not the same."""
    STATE.inputs_compared = STATE.warned = False
    STATE.drawn.clear()
    STATE.before.clear()
    seed, state = torch.initial_seed(), torch.get_rng_state()
    torch.manual_seed(29)
    torch.rand(ddp.rank() + 1)
    yield
    torch.manual_seed(seed)
    torch.set_rng_state(state)
    _batches.leave_inputs()


def train(
    batches: Iterable[Any],
    model: nn.Module | None = None,
    steps: int = 4,
    between: Callable[[int], Any] = lambda step: None,
) -> None:
    """Train for some steps, with passes as many as it needs."""
    model = ddp.wrap(nn.Linear(3, 1)) if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    done = 0
    while done < steps:
        for batch in batches:
            x = batch[0] if isinstance(batch, list) else batch
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            between(done)
            done += 1
            if done == steps:
                break


def divided(data: Any = DATA, batch_size: int = 4) -> DataLoader[Any]:
    return ddp.distribute(DataLoader(data, batch_size=batch_size * ddp.world_size(), shuffle=True))


@check
def batches_of_divided_data() -> None:
    with anew():
        train(divided())
    with anew():
        train(DataLoader(DATA, batch_size=4, sampler=OfTorch(DATA, ddp.world_size(), ddp.rank())))


@check
def batches_of_all_data() -> None:
    """Whatever the seeds of the ranks are."""
    loaders: list[DataLoader[Any]] = [
        DataLoader(DATA, batch_size=4, shuffle=True),
        DataLoader(Subset(DATA, range(16)), batch_size=4),
        DataLoader(DATA, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(1)),
    ]
    for loader in loaders:
        with anew():
            stops("every rank trains on all of the data (", functools.partial(train, loader))


class Files(Dataset[torch.Tensor]):
    """A data set that shows what it holds in lists and mappings."""

    def __init__(self, names: list[str]) -> None:
        self.samples = [(Path(name), number) for number, name in enumerate(names)]
        self.classes = {"a": 0, "b": 1}
        self.transform = torch.relu

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> torch.Tensor:
        path, number = self.samples[index]
        return torch.full((3,), float(number + len(str(path))))


class Noise(Dataset[torch.Tensor]):
    """A data set that makes its samples when they are asked for."""

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.rand(3)


class Stream(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        yield from torch.rand(32, 3)


@check
def batches_of_files() -> None:
    names = [f"{number}.png" for number in range(16)]
    with anew():
        stops(
            "every rank trains on all of the data (Files of 16)",
            lambda: train(DataLoader(Files(names), batch_size=4)),
        )
    with anew():
        train(
            DataLoader(Files(["of this rank/" * ddp.rank() + name for name in names]), batch_size=4)
        )


@check
def batches_that_the_program_divides() -> None:
    share = range(ddp.rank(), 32, ddp.world_size())
    mine: list[Iterable[Any]] = [
        DataLoader(Subset(DATA, list(share)), batch_size=4, shuffle=True),
        DataLoader(TensorDataset(POINTS[share.start :: share.step].clone()), batch_size=4),
        DataLoader(DATA, batch_size=4, sampler=list(share)),
        DataLoader(DATA, batch_sampler=[list(share[k : k + 4]) for k in range(0, 16, 4)]),
        DataLoader(DATA, batch_size=4, sampler=RandomSampler(DATA, num_samples=16)),
        DataLoader(Stream(), batch_size=4),
        list(torch.rand(8, 4, 3) + ddp.rank()),
    ]
    for batches in mine:
        with anew():
            train(batches)


@check
def batches_of_which_nothing_is_seen() -> None:
    """They may be others on each rank: a warning."""
    with anew(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        train(DataLoader(Noise(), batch_size=4, shuffle=True), steps=9)
    text = "every rank seems to train on all of the data (Noise of 32)"
    assert [str(one.message).partition(",")[0] for one in said] == [text] * several()
    weighted = WeightedRandomSampler([1.0] * 32, 32)
    with anew(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        train(DataLoader(DATA, batch_size=4, sampler=weighted))
    assert len(said) == several()


@check
def batches_of_no_loader() -> None:
    same = list(torch.arange(96.0).reshape(8, 4, 3))
    text = "train on the same samples: what the model was given in its first passes is identical"
    with anew():
        stops(text, lambda: train(same))
    with anew():
        STATE.unwatched = frozenset({"batches"})
        train(same)
        STATE.unwatched = frozenset()
    with anew():
        train([batch + ddp.rank() for batch in same])


class Reads(nn.Module):
    """Takes its batch in any form."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, given: Any = None) -> torch.Tensor:
        while isinstance(given, dict | list):
            given = next(iter(given.values())) if isinstance(given, dict) else given[0]
        number = given is None or given.dim() < 2
        x: torch.Tensor = (
            torch.ones(1, 3) * (0 if given is None else given) if number else given.real.float()
        )
        out: torch.Tensor = self.layer(x)
        return out


@check
def batches_in_any_form() -> None:
    kinds: list[Callable[[int], Any]] = [
        lambda k: {"image": [torch.full((2, 3), float(k))]},
        lambda k: torch.full((2, 3), k),
        lambda k: torch.full((2, 3), k, dtype=torch.complex64),
    ]
    for kind in kinds:
        given = [{"x": kind(k + 1)} for k in range(4)]
        with anew():
            stops("train on the same samples", functools.partial(train, given, ddp.wrap(Reads())))


@check
def batches_that_prove_nothing() -> None:
    """The whole of few data in each step, constant noise, a number, no input at all."""
    one = torch.ones(4, 3)
    for batches in (
        [one] * 4,
        [torch.tensor(float(k)) for k in range(4)],
        [torch.tensor(k) for k in range(4)],
        [None] * 4,
    ):
        with anew():
            train(batches, ddp.wrap(Reads()))
    # as many samples as ranks, and all alike
    with anew():
        train(
            divided(TensorDataset(torch.ones(8, 3) * torch.arange(8.0)[:, None].div(4).floor()), 1)
        )


@check
def batches_of_two_models() -> None:
    """The constant noise of one, and the divided samples of the other."""
    with anew():
        generator, critic = ddp.wrap(nn.Linear(3, 3)), ddp.wrap(nn.Linear(3, 1))
        optimizers = [torch.optim.SGD(model.parameters(), lr=1e-6) for model in (generator, critic)]
        noise = torch.Generator().manual_seed(1)
        for _ in range(2):
            for (x,) in divided():
                (critic(x) - critic(generator(torch.rand(4, 3, generator=noise)))).mean().backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()


@check
def batches_of_an_evaluation() -> None:
    """Gone through by every rank, without gradients or with them, between the steps."""
    whole: DataLoader[Any] = DataLoader(DATA, batch_size=4)

    def evaluate(step: int) -> None:
        with torch.set_grad_enabled(step > 2):
            for _ in whole:
                pass

    with anew():
        train(divided(), between=evaluate)
    with anew():
        # one evaluation, and batches of no loader in the other steps
        train(
            [batch + ddp.rank() for batch in torch.rand(8, 4, 3)],
            between=lambda step: evaluate(step) if step == 2 else None,
        )


@check
def batches_are_looked_at_once() -> None:
    with anew():
        model = ddp.wrap(nn.Linear(3, 1))
        train(divided(), model, steps=1)
        assert bool(STATE.input_hooks) == bool(STATE.inputs) == several()
        train(divided(), model, steps=1)
        assert not STATE.input_hooks and not STATE.inputs
        ddp.wrap(nn.Linear(3, 1))
        assert not STATE.input_hooks
    assert _batches.likeness(torch.tensor(3.0).expand(2))[1]
    assert _batches.likeness([torch.tensor(1.0), None])[1]


@check
def passes_that_one_rank_begins() -> None:
    """A look on rank 0 alone: its orders are no longer those of the others."""
    loader = divided()

    def look() -> None:
        if ddp.is_main():
            next(iter(loader))

    with anew():
        look()
        stops(
            "the ranks go through their training data in different orders",
            lambda: train(loader, steps=4),
        )
    with anew():
        loader.sampler.set_epoch(7)  # type: ignore[attr-defined]
        look()
        stops("rank 0: epoch 7, in pass 2 of it (seed", lambda: train(loader, steps=4))
    with anew():
        # one that comes before the orders are told, and in the middle of a pass
        look()
        loader.sampler.set_epoch(8)  # type: ignore[attr-defined]
        train(loader, steps=4, between=lambda step: look())


@check
def passes_with_a_seed_of_each_rank() -> None:
    sampler: Any = ddp.DistributedSampler(DATA, seed=ddp.rank())
    with anew():
        stops("different orders", lambda: train(DataLoader(DATA, batch_size=4, sampler=sampler)))
    torchs: Any = OfTorch(DATA, ddp.world_size(), ddp.rank())
    torchs.set_epoch(ddp.rank())
    with anew():
        stops("different orders", lambda: train(DataLoader(DATA, batch_size=4, sampler=torchs)))
        STATE.unwatched = frozenset({"passes"})
        train(DataLoader(DATA, batch_size=4, sampler=torchs))
        STATE.unwatched = frozenset()


@check
def passes_are_compared_every_64_steps() -> None:
    loader = divided()

    def parts(step: int) -> None:
        if step == 150 and ddp.is_main():
            next(iter(loader))

    with anew():
        stops("different orders", lambda: train(loader, steps=193, between=parts))


@check
def passes_that_are_one_batch_each() -> None:
    data = TensorDataset(POINTS[: 4 * ddp.world_size()])
    with anew():
        train(divided(data), steps=4)
    with anew():
        loader = divided(data)
        if ddp.is_main():
            next(iter(loader))
        stops("different orders", lambda: train(loader, steps=4))


@check
def passes_that_a_thread_loads_ahead() -> None:
    """It may be in another pass on each rank."""
    loader = divided()

    def ahead(step: int) -> None:
        if step == 2 and ddp.is_main():
            thread = threading.Thread(target=list, args=[loader])
            thread.start()
            thread.join()

    with anew():
        train(loader, steps=4, between=ahead)


@check
def passes_of_other_samplers() -> None:
    with anew():
        train(
            ddp.distribute(
                DataLoader(DATA, batch_size=8, sampler=RandomSampler(DATA, num_samples=40)),
                keep_batch_size=True,
            ),
            steps=9,
        )
    with anew():
        train(ddp.distribute(DataLoader(DATA, batch_size=8)), steps=9)
    with anew():
        # where a step draws nothing, nothing is said
        model = ddp.wrap(nn.Linear(3, 1))
        model(POINTS).mean().backward()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        for _ in range(4):
            optimizer.step()
    assert _draws.told() == "no order that the ranks share"


@check
def nothing_but_the_weights_is_turned_off() -> None:
    STATE.unwatched = frozenset({"weights"})
    with anew():
        model = ddp.wrap(nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (ddp.rank() + 1))
        for batch in divided():
            model(batch[0]).mean().backward()
            optimizer.step()
    STATE.unwatched = frozenset({"weights", "batches", "passes"})
    with anew():
        train(DataLoader(DATA, batch_size=4), steps=70)
    STATE.unwatched = frozenset()
