"""Behaviours of the guard that compares the ranks' weights after some steps of the optimizer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dpmigrate_runtime as ddp
import torch
from dpmigrate_runtime import _drift
from dpmigrate_runtime._state import STATE
from torch import nn

from tests.runtime.checks import check, raises


def train(optimizer: torch.optim.Optimizer, *models: nn.Module, steps: int = 4, before: Callable[[int], Any] = lambda step: None) -> None:
    for step in range(steps):
        before(step)
        for model in models:
            optimizer.zero_grad()
            model(torch.ones(2, 3) * (ddp.rank() + 1)).square().mean().backward()
        optimizer.step()


def fresh(compare: bool = True) -> nn.Module:
    return ddp.wrap(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), compare=compare)


def parts(text: str, run: Callable[[], None]) -> None:
    """In a job of several ranks each raises; one process goes on."""
    if ddp.world_size() == 1:
        run()
    else:
        raises(RuntimeError, text, run)


@check
def guard_alike_on_all_ranks() -> None:
    model = fresh()
    train(torch.optim.Adam(model.parameters(), lr=0.1), model, steps=9)


@check
def guard_not_a_number_everywhere() -> None:
    model = fresh()
    train(torch.optim.SGD(model.parameters(), lr=float("inf")), model)
    assert not any(parameter.isfinite().all() for parameter in model.parameters())


@check
def guard_empty_and_complex_parameters() -> None:
    model = fresh()
    other: list[torch.Tensor] = [nn.Parameter(torch.zeros(0)), nn.Parameter(torch.ones(3, dtype=torch.complex64))]  # without a gradient
    train(torch.optim.SGD([*model.parameters(), *other], lr=0.1), model)


@check
def guard_last_bits() -> None:
    # GPUs of two kinds
    model = fresh()

    def nudge(step: int) -> None:
        with torch.no_grad():
            ddp.unwrap(model)[0].weight.mul_(1 + 1e-6 * ddp.rank())

    train(torch.optim.SGD(model.parameters(), lr=0.1), model, before=nudge)


@check
def guard_of_a_program_that_means_it() -> None:
    model = fresh(compare=False)
    train(torch.optim.SGD(model.parameters(), lr=0.1 * (ddp.rank() + 1)), model)


@check
def guard_learning_rate_of_one_rank() -> None:
    model = fresh()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (ddp.rank() + 1))
    parts("after step 2 of SGD, '0.weight' differs between them by", lambda: train(optimizer, model))


@check
def guard_parameter_outside_the_wrapper() -> None:
    model = fresh()
    loss = nn.Linear(3, 1, bias=False)
    groups: list[dict[str, Any]] = [{"params": model.parameters()}, {"params": loss.parameters()}]
    both = torch.optim.SGD(groups, lr=0.1)
    STATE.unwatched = frozenset({"parameters"})
    parts("parameter 4 of the optimizer, which is in no wrapped model, differs", lambda: train(both, model, loss))
    STATE.unwatched = frozenset()


@check
def guard_not_a_number_on_one_rank() -> None:
    model = fresh()

    def spoil(step: int) -> None:
        with torch.no_grad():
            ddp.unwrap(model)[1].bias.fill_(float("nan") if ddp.rank() else 0.0)

    frozen = torch.optim.SGD([ddp.unwrap(model)[1].bias], lr=0.0)

    def run() -> None:
        for step in range(2):
            spoil(step)
            ddp.unwrap(model)[1].bias.grad = torch.zeros(1)
            frozen.step()

    parts("'1.bias' differs between them by 1e+30", run)


@check
def guard_optimizer_exchanged() -> None:
    model = fresh()
    box = [torch.optim.SGD(model.parameters(), lr=0.1)]

    def exchange(step: int) -> None:
        if step == 1 and ddp.rank():
            box[0] = torch.optim.SGD(model.parameters(), lr=0.2)

    def run() -> None:
        for step in range(4):
            exchange(step)
            train(box[0], model, steps=1)

    parts("after step 2 of SGD", run)


@check
def guard_compiled_step() -> None:
    model = fresh()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = torch.compile(optimizer.step, backend="eager")
    for _ in range(4):
        model(torch.ones(2, 3)).mean().backward()
        with warnings.catch_warnings():
            # torch's own, about itself
            warnings.simplefilter("ignore")
            step()


@check
def guard_when() -> None:
    due = [step for step in range(1, 2000) if _drift._due(step)]
    assert due == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1536]
