"""The guard against ranks that part: after a step of the optimizer they compare a sample of their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from ._meet import reduced, rows
from ._places import meeting
from ._state import STATE, wire

#: weights of a parameter that are compared, at even distances; with all of them a comparison would be as large as an exchange of gradients
SAMPLE: Final = 64
#: steps between two comparisons, once the first ones (2, 4, 8, ...) are over
EVERY: Final = 512
#: relative to the largest weight of the sample. Ranks compute the same updates from the same averaged gradients, so on machines of one kind
#: there is no difference at all; between GPUs of two kinds the last bits may differ
TOLERANCE: Final = 1e-4


@dataclass
class Watched:
    """A parameter of a wrapped model; ``steps`` is counted at the first one that an optimizer has, so another optimizer of the same ones goes on counting."""

    name: str
    steps: int = 0


def watch(model: nn.Module) -> None:
    """From now on, compare what optimizers of this model's parameters have made of them.

    An optimizer is known by one of the model's parameters and compared with all it has, so one that trains a parameter outside the wrapper (of a loss,
    of a layer put in later) is found too; one of other parameters alone may run on a single rank and is left in peace.
    """
    for name, parameter in model.named_parameters():
        STATE.watched[parameter] = Watched(name)
    if STATE.guard is None:
        STATE.guard = register_optimizer_step_post_hook(_after_step)


def _after_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    if torch.compiler.is_compiling():
        return
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    first = next((STATE.watched[parameter] for parameter in parameters if parameter in STATE.watched), None)
    if first is None:
        return
    first.steps += 1
    if _due(first.steps) and not _captured():
        _compare(parameters, f"step {first.steps} of {type(optimizer).__name__}")


def _due(steps: int) -> bool:
    return steps > 1 and (steps & (steps - 1) == 0 or steps % EVERY == 0)


def _captured() -> bool:
    # a CUDA graph cannot wait for an answer
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _compare(parameters: list[torch.Tensor], moment: str) -> None:
    """Raises RuntimeError on every rank where the samples differ on any; a collective."""
    samples = [_sample(parameter) for parameter in parameters]
    mine = torch.cat(samples)
    extremes = torch.cat([mine, -mine])
    with meeting("the comparison of the ranks' weights"):
        rows()
        reduced(extremes, dist.ReduceOp.MAX)
    highest, lowest = extremes.cpu().chunk(2)
    sizes = [len(sample) for sample in samples]
    for number, (high, low) in enumerate(zip(torch.split(highest, sizes), torch.split(-lowest, sizes), strict=True)):
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
