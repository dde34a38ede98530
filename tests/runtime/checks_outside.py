"""Behaviours of the net under parameters that no wrapper averages."""

from __future__ import annotations

import copy
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dpmigrate_runtime as ddp
import torch
from dpmigrate_runtime._state import STATE
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from tests.runtime.checks import check, raises

SGD = torch.optim.SGD


def several() -> bool:
    return ddp.world_size() > 1


def stops(text: str, run: Callable[[], Any]) -> None:
    """In a job of several ranks each raises; one process goes on."""
    if several():
        raises(RuntimeError, text, run)
    else:
        run()


def draw() -> torch.Tensor:
    """A batch of a DataLoader, as a step begins with it."""
    batch: torch.Tensor = next(iter(DataLoader(torch.ones(4, 3), batch_size=2)))  # type: ignore[arg-type]
    return batch


def step(optimizer: torch.optim.Optimizer, *parameters: torch.Tensor) -> None:
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()


def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(draw()).square().mean().backward()
    optimizer.step()


@contextmanager
def without_loaders() -> Iterator[None]:
    """As at the start of a program that has no DataLoader."""
    kept = STATE.moment, STATE.loads
    STATE.moment, STATE.loads = 0, False
    yield
    STATE.moment, STATE.loads = kept


@contextmanager
def unwatched() -> Iterator[None]:
    STATE.unwatched = frozenset({"parameters"})
    yield
    STATE.unwatched = frozenset()


@check
def outside_a_model_of_its_own() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    optimizer = SGD(model.parameters(), lr=0.1)
    said = (
        "SGD has trained '0.weight' of Sequential (of shape [2, 3]), which is in no wrapped model"
    )
    stops(said, lambda: train(model, optimizer))
    stops("model = ddp.wrap(model)", lambda: train(model, optimizer))
    with unwatched():
        train(model, SGD(model.parameters(), lr=0.1))


@check
def outside_a_second_model() -> None:
    first, second = ddp.wrap(nn.Linear(3, 1)), nn.Linear(3, 1)
    optimizers = SGD(first.parameters(), lr=0.1), SGD(second.parameters(), lr=0.1)
    train(first, optimizers[0])
    stops("'weight' of Linear", lambda: train(second, optimizers[1]))


@check
def outside_an_optimizer_made_anew() -> None:
    model = nn.Linear(3, 1)

    def of_each_epoch() -> None:
        for _ in range(2):
            train(model, SGD(model.parameters(), lr=0.1))

    other = nn.Linear(3, 1)

    def of_each_step() -> None:
        draw()
        step(SGD(other.parameters(), lr=0.1), other.bias)

    stops("'weight' of Linear", of_each_epoch)
    stops("'bias' of Linear", of_each_step)


@check
def outside_a_tensor_that_is_no_module() -> None:
    weight = torch.zeros(3, requires_grad=True)
    optimizer = SGD(
        [{"params": [torch.zeros(1, requires_grad=True)]}, {"params": [weight]}], lr=0.1
    )
    draw()
    stops("parameter 0 of its group 1 (of shape [3])", lambda: step(optimizer, weight))


@check
def outside_before_any_batch() -> None:
    """The first thing that the program does, and nothing is wrapped."""
    weight = torch.zeros(3, requires_grad=True)
    kept = dict(STATE.watched.items())
    STATE.watched.clear()
    with without_loaders():
        stops("parameter 0 of its group 0", lambda: step(SGD([weight], lr=0.1), weight))
    for parameter, known in kept.items():
        STATE.watched[parameter] = known


@check
def outside_a_model_of_one_rank() -> None:
    probe, state = nn.Linear(3, 1), torch.get_rng_state()
    if ddp.is_main():
        stops(
            'ddp.setup(unwatched="parameters")',
            lambda: train(probe, SGD(probe.parameters(), lr=0.1)),
        )
    with unwatched():
        if ddp.is_main():
            train(probe, SGD(probe.parameters(), lr=0.1))
    torch.set_rng_state(state)


@check
def outside_from_before_setup() -> None:
    model = nn.Linear(3, 1)
    optimizer = SGD(model.parameters(), lr=0.1)
    for parameter in model.parameters():
        STATE.alive.pop(parameter, None)
    stops("'weight' of Linear", lambda: train(model, optimizer))


@check
def outside_with_a_closure() -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters())
    batch = draw()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = model(batch).square().mean()
        loss.backward()
        return loss

    draw()
    stops("LBFGS has trained 'weight' of Linear", lambda: optimizer.step(closure))


@check
def outside_and_untouched() -> None:
    """Without a gradient nothing is trained; a parameter that gets one later is seen then."""
    model, other = ddp.wrap(nn.Linear(3, 1)), nn.Linear(3, 1)
    optimizer = SGD([*model.parameters(), *other.parameters()], lr=0.1)
    train(model, optimizer)
    stops("'weight' of Linear", lambda: step(optimizer, other.weight))


@check
def outside_added_later() -> None:
    model = ddp.wrap(nn.Linear(3, 1))
    optimizer = SGD(model.parameters(), lr=0.1)
    train(model, optimizer)
    head = nn.Linear(2, 2)
    optimizer.add_param_group({"params": list(head.parameters())})
    draw()
    stops("'bias' of Linear (of shape [2])", lambda: step(optimizer, head.bias))


@check
def outside_put_into_a_group() -> None:
    model, other = ddp.wrap(nn.Linear(3, 1)), nn.Linear(3, 1)
    optimizer = SGD(model.parameters(), lr=0.1)
    train(model, optimizer)
    optimizer.param_groups[0]["params"] = list(other.parameters())
    stops("'weight' of Linear", lambda: train(other, optimizer))


@check
def outside_frozen_when_wrapped() -> None:
    bare = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    bare[0].requires_grad_(False)
    model = ddp.wrap(bare)
    optimizer = SGD(model.parameters(), lr=0.1)
    train(model, optimizer)
    bare[0].requires_grad_(True)
    stops(
        "'0.weight', which was frozen when its model was wrapped", lambda: train(model, optimizer)
    )
    again = ddp.wrap(ddp.unwrap(model))
    train(again, SGD(again.parameters(), lr=0.1))
    alone = nn.Linear(3, 1).requires_grad_(False)
    single = ddp.wrap(alone)
    alone.requires_grad_(True)
    stops("'weight', which was frozen", lambda: train(single, SGD(alone.parameters(), lr=0.1)))
    free = ddp.wrap(
        nn.Sequential(nn.Linear(3, 1), nn.Linear(1, 1).requires_grad_(False)), compare=False
    )
    optimizer = SGD(free.parameters(), lr=0.1)
    ddp.unwrap(free).requires_grad_(True)
    step(optimizer, *free.parameters())


@check
def inside_and_thawed_later() -> None:
    """DDP is shown what is frozen at the wrap, and what is frozen and thawed later."""
    bare = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    bare[0].requires_grad_(False)
    model = ddp.wrap(bare, thaws=True)
    assert [p.requires_grad for p in bare.parameters()] == [False, False, True, True]
    optimizer = SGD(model.parameters(), lr=0.1)
    for frozen, kept in ((bare[0], bare[1]), (bare[1], bare[0]), (bare[0], bare[1])):
        frozen.requires_grad_(False)
        kept.requires_grad_(True)
        for _ in range(2):
            optimizer.zero_grad()
            model(draw() * (ddp.rank() + 1)).square().mean().backward()
            optimizer.step()
            assert frozen.weight.grad is None
            mine = kept.weight.grad
            torch.testing.assert_close(ddp.mean_all(mine), mine)
    alone = ddp.wrap(nn.Linear(3, 1).requires_grad_(False), thaws=True)
    alone.requires_grad_(True)
    train(alone, SGD(alone.parameters(), lr=0.1))


@check
def outside_a_shared_part() -> None:
    """A part that one wrapper averages may be frozen in another."""
    part = nn.Linear(3, 3)
    first = ddp.wrap(nn.Sequential(part, nn.Linear(3, 1)))
    part.requires_grad_(False)
    ddp.wrap(nn.Sequential(part, nn.Linear(3, 2)))
    part.requires_grad_(True)
    train(first, SGD(first.parameters(), lr=0.1))


@check
def inside_other_wrappers() -> None:
    """A wrapper that the program makes by itself, and one without a comparison."""
    bare = nn.Linear(3, 1)
    model: nn.Module = DistributedDataParallel(bare) if several() else bare
    train(model, SGD(bare.parameters(), lr=0.1))
    model = ddp.wrap(nn.Linear(3, 1), compare=False)
    train(model, SGD(model.parameters(), lr=0.1))

    class FullyShardedDataParallel(nn.Sequential):
        pass

    sharded = FullyShardedDataParallel(nn.Linear(3, 1))
    train(sharded, SGD(sharded.parameters(), lr=0.1))

    class DTensor(nn.Parameter):
        pass

    shares = DTensor(torch.zeros(2))
    optimizer = SGD([shares], lr=0.1)
    draw()
    step(optimizer, shares)


@check
def inside_after_changes_of_the_model() -> None:
    """Its layers converted, its type changed, its optimizer copied, its wrapper compiled."""
    bare: nn.Module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model = ddp.wrap(bare)
    # after the wrap, which wants GPUs otherwise: other layers with the same parameters
    model.module = nn.SyncBatchNorm.convert_sync_batchnorm(bare)
    optimizer = SGD(model.parameters(), lr=0.1)
    model.double().float()
    draw()
    step(optimizer, *model.parameters())
    step(copy.copy(optimizer), *model.parameters())


@check
def exempt_a_perturbation() -> None:
    model = ddp.wrap(nn.Linear(3, 1))
    optimizer = SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        batch = draw()
        for made in (
            torch.zeros_like(batch, requires_grad=True),
            nn.Parameter(torch.zeros_like(batch)),
        ):
            own = SGD([made], lr=0.1)
            for _ in range(2):
                own.zero_grad()
                ddp.unwrap(model)(batch + made).sum().backward()
                own.step()
        train(model, optimizer)


@check
def exempt_with_a_closure_and_in_a_group_of_before() -> None:
    old = SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    for _ in range(2):
        batch = draw()
        image = batch.clone().requires_grad_()
        search = torch.optim.LBFGS([image])

        def closure(image: torch.Tensor = image) -> torch.Tensor:
            loss = image.square().sum()
            image.grad = 2 * image.detach()
            return loss

        search.step(closure)
        old.param_groups[0]["params"] = [image]
        step(old, image)


@check
def exempt_a_copy_that_is_adapted_to_the_batch() -> None:
    model = ddp.wrap(nn.Linear(3, 1))
    for _ in range(2):
        batch = draw()
        learner = copy.deepcopy(ddp.unwrap(model))
        own = SGD(learner.parameters(), lr=0.1)
        for _ in range(2):
            own.zero_grad()
            learner(batch).sum().backward()
            own.step()
    stops("'weight' of Linear", lambda: train(learner, own))


@check
def exempt_while_another_thread_loads() -> None:
    draw()
    made = torch.zeros(3, requires_grad=True)
    own = SGD([made], lr=0.1)
    ahead = threading.Thread(target=draw)
    ahead.start()
    ahead.join()
    step(own, made)


@check
def exempt_without_loaders() -> None:
    """Batches that come from elsewhere: steps of the wrapped model tell one step from the next."""
    model = ddp.wrap(nn.Linear(3, 1))
    optimizer = SGD(model.parameters(), lr=0.1)
    with without_loaders():
        for _ in range(2):
            made = torch.zeros(3, requires_grad=True)
            step(SGD([made], lr=0.1), made)
            step(optimizer, *model.parameters())
        other = nn.Linear(3, 1)
        own = SGD([made], lr=0.1)
        stops("parameter 0 of its group 0", lambda: step(own, made))
    with without_loaders():
        stops("'bias' of Linear", lambda: step(SGD(other.parameters(), lr=0.1), other.bias))


@check
def nothing_is_hooked_in_one_process() -> None:
    assert bool(STATE.hooks) == several()
    model = nn.Linear(3, 1)
    assert (model.weight in STATE.alive) == several()
    model.register_parameter("nothing", None)
    gc.collect()
