"""Where the ranks meet: after some steps they compare weights, batches and passes over the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.optim.optimizer import Optimizer

from . import _batches, _draws, _outside
from ._exchange import from_all
from ._meet import reduced, rows
from ._places import meeting
from ._state import STATE, Watched, capturing, wire

#: weights of a parameter that are compared, at even distances; with all of them a comparison would be as large as an exchange of gradients
SAMPLE: Final = 64
#: steps between two comparisons, once the first ones (2, 4, 8, ...) are over
EVERY: Final = 512
#: steps between two comparisons of the passes alone, one number
PASSES_EVERY: Final = 64
#: relative to the largest weight of the sample. Ranks compute the same updates from the same averaged gradients, so on machines of one kind
#: there is no difference at all; between GPUs of two kinds the last bits may differ
TOLERANCE: Final = 1e-4


@dataclass
class Looked:
    """What is known of an optimizer as long as it holds its parameters in these lists."""

    lists: list[tuple[int, int]]
    counter: Watched | None  # its first parameter that is compared
    wrapped: bool  # it has a parameter of a wrapped model
    outside: list[tuple[int, int]]  # the places of those of no wrapped model, by group and number
    frozen: list[torch.Tensor]  # those that were frozen when their model was wrapped


def watch_model(model: nn.Module, compare: bool) -> None:
    """From now on know the parameters of a model, and compare what optimizers make of them.

    An optimizer is known by one of the model's parameters and compared with all it has.
    """
    for name, parameter in model.named_parameters():
        before = STATE.watched.get(parameter)
        # compare=False is for programs that mean to let their ranks part
        elsewhere = before is not None and before.averaged
        averaged = parameter.requires_grad or elsewhere or not compare
        STATE.watched[parameter] = Watched(name, averaged, compare)
    STATE.looked.clear()


def after_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """The hook that torch calls after each step of any optimizer."""
    if torch.compiler.is_compiling():
        return
    looked = STATE.looked.get(optimizer)
    if looked is None or looked.lists != _lists(optimizer):
        looked = STATE.looked[optimizer] = _look(optimizer)
    for parameter in looked.frozen:
        if parameter.grad is not None:
            _outside.stop_frozen(optimizer, parameter)
    if looked.outside and _outside.check(optimizer, looked.outside):
        looked = STATE.looked[optimizer] = _look(optimizer)
    if looked.wrapped and not STATE.loads:
        STATE.moment += 1
    first = looked.counter
    if first is None:
        return
    first.steps += 1
    if (_due(first.steps) or first.steps % PASSES_EVERY == 0) and not capturing():
        _meet(optimizer, first.steps)
    _draws.next_step()


def _meet(optimizer: Optimizer, steps: int) -> None:
    """Compare what is due after so many steps. A collective.

    Raises RuntimeError on every rank where something is wrong on any.
    """
    order = None if "passes" in STATE.unwatched else _draws.order()
    if not _due(steps):
        if "passes" not in STATE.unwatched:
            with meeting("the comparison of the ranks' passes"):
                _passes(order)
        return
    if {"weights", "batches", "passes"} <= STATE.unwatched:
        return
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if "weights" in STATE.unwatched:
        parameters = []
    samples = [_sample(parameter) for parameter in parameters]
    said = _batches.facts()
    sizes = [len(said), sum(map(len, samples))]
    with meeting("the comparison of the ranks' weights"):
        _passes(order)
        highest, lowest = (torch.split(part, sizes) for part in _extremes(said, samples))
    _batches.judge(highest[0].tolist(), lowest[0].tolist())
    moment = f"step {steps} of {type(optimizer).__name__}"
    _weights(parameters, [len(sample) for sample in samples], highest[1], lowest[1], moment)


def _extremes(
    numbers: Sequence[float], samples: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The highest and the lowest of each number and of each element of the samples.

    A collective.
    """
    own = torch.tensor(numbers, dtype=torch.float64, device=wire())
    mine = torch.cat([own, *samples])
    extremes = reduced(torch.cat([mine, -mine]), dist.ReduceOp.MAX)
    highest, lowest = extremes.cpu().chunk(2)
    return highest, -lowest


def _passes(order: int | None) -> None:
    """Raise RuntimeError where the ranks' orders differ. A collective.

    A rank's None says nothing, and is compared with nothing.
    """
    said = rows(int(order is not None), order or 0)
    if len({number for known, number in said if known}) < 2:
        return
    orders = enumerate(from_all(_draws.told()))
    told = "; ".join(f"rank {number}: {which}" for number, which in orders)
    raise RuntimeError(
        "the ranks go through their training data in different orders, so that samples are taken "
        f"twice and others left out ({told}). One rank has begun a pass that the others have not: "
        "a look at a batch on one rank alone (next(iter(loader)) under ddp.is_main()) is such a "
        "pass, and so is a loop that one rank leaves or begins by itself; or its sampler has "
        'another seed or epoch. If that is meant: ddp.setup(unwatched="passes")'
    )


def _lists(optimizer: Optimizer) -> list[tuple[int, int]]:
    return [(id(group["params"]), len(group["params"])) for group in optimizer.param_groups]


def _look(optimizer: Optimizer) -> Looked:
    known: list[Watched] = []
    outside: list[tuple[int, int]] = []
    frozen: list[torch.Tensor] = []
    for number, group in enumerate(optimizer.param_groups):
        for place, parameter in enumerate(group["params"]):
            watched = STATE.watched.get(parameter)
            if watched is None:
                outside.append((number, place))
                continue
            known.append(watched)
            if not watched.averaged:
                frozen.append(parameter)
    if "parameters" in STATE.unwatched:
        outside, frozen = [], []
    counter = next((watched for watched in known if watched.compared), None)
    return Looked(_lists(optimizer), counter, bool(known), outside, frozen)


def _due(steps: int) -> bool:
    return steps > 1 and (steps & (steps - 1) == 0 or steps % EVERY == 0)


def _weights(
    parameters: list[torch.Tensor],
    sizes: list[int],
    highest: torch.Tensor,
    lowest: torch.Tensor,
    moment: str,
) -> None:
    """Raise RuntimeError where the samples of the parameters differ between the ranks."""
    pairs = zip(torch.split(highest, sizes), torch.split(lowest, sizes), strict=True)
    for number, (high, low) in enumerate(pairs):
        if len(high) and (high - low).max() > TOLERANCE * torch.maximum(high.abs(), low.abs()).max():
            watched = STATE.watched.get(parameters[number])
            which = repr(watched.name) if watched else f"parameter {number} of the optimizer, which is in no wrapped model,"
            raise RuntimeError(
                f"the weights of the ranks have parted: after {moment}, {which} differs between them by {(high - low).max().item():.2g}. "
                "Something that one rank alone knows has reached the weights or the optimizer: a number of its own batch, its clock or random numbers in a "
                "test or a learning rate, or a parameter that is trained outside the wrapped model. `dpmigrate check` tells the usual places. "
                "If they are meant to differ: ddp.wrap(model, compare=False)"
            )


def _sample(parameter: torch.Tensor) -> torch.Tensor:
    """At most SAMPLE weights, float64, finite, where they can be sent."""
    weights = torch.view_as_real(parameter.detach()) if parameter.is_complex() else parameter.detach()
    flat = weights.flatten()
    few = flat[:: max(1, len(flat) // SAMPLE)][:SAMPLE].to(wire(), torch.float64)
    # a run that has become NaN everywhere has not parted
    return few.nan_to_num(nan=1e30, posinf=2e30, neginf=-2e30)
