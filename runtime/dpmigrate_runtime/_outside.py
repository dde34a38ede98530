"""The net under parameters that no wrapper averages: the first step that trains one stops the run.

Each rank would train its own copy, without an error and with numbers that look right. All ranks
reach that step, so each sees the fault by itself and no exchange is needed; where one rank alone
reaches it, that rank raises and the launcher ends the others.

Exempt is what a step makes of its batch and optimises by itself: an adversarial perturbation, a
latent code, a copy of the model that is adapted to the batch. *Made in this step* is measured, not
guessed: a parameter is first seen when a module registers it or an optimizer is given it, and the
moment moves on with every batch that a DataLoader gives the main thread; in a program without
DataLoaders, with every step that trains a wrapped model. A parameter that was first seen before the
present moment was not made in this step.

The limits: a tensor that is made before another batch is drawn, and optimised after it, counts as
trained; a model that is made in the middle of a step is stopped at its second step; an optimizer
whose step runs inside torch.compile is not seen.
"""

from __future__ import annotations

import functools
import gc
from typing import Any, NoReturn

import torch
from torch import nn
from torch.optim.optimizer import Optimizer

from ._state import STATE, Watched

#: classes of torch and of other libraries that average their gradients; known by their names,
#: since most are not installed
_WRAPPERS = frozenset(
    {
        "DistributedDataParallel",
        "FullyShardedDataParallel",
        "ShardedDataParallel",
        "DeepSpeedEngine",
    }
)


def first_seen(parameter: torch.Tensor) -> int:
    """The moment at which the parameter was first seen, which is now where it was not."""
    return STATE.alive.setdefault(parameter, STATE.moment)


def registered(module: nn.Module, name: str, parameter: torch.Tensor | None) -> None:
    """A module has got a parameter.

    (torch.nn.modules.module.register_module_parameter_registration_hook)
    """
    if parameter is not None:
        first_seen(parameter)


def check(optimizer: Optimizer, outside: list[tuple[int, int]]) -> bool:
    """Raise RuntimeError where the step has trained a parameter that no wrapper averages.

    ``outside`` tells the places, by group and number, at which the optimizer has parameters of no
    known wrapped model. Returns whether wrappers were found that had not been known.
    """
    modules: list[nn.Module] | None = None
    for group, number in outside:
        parameter = optimizer.param_groups[group]["params"][number]
        if parameter.grad is None or _made_in_this_step(parameter):
            continue
        if modules is None:
            # all objects are gone through, which takes a while: only where the run would stop
            modules = _modules()
            _know_wrappers(modules)
        if type(parameter).__name__ == "DTensor":  # of fully_shard, which has no wrapper
            STATE.watched.setdefault(parameter, Watched("", averaged=True, compared=False))
        if parameter not in STATE.watched:
            raise RuntimeError(
                f"{type(optimizer).__name__} has trained {_told(modules, parameter, group, number)}, "
                "which is in no wrapped model: nothing averages its gradients, and each rank "
                "trains its own. Wrap its model before the training: model = ddp.wrap(model). "
                f"{_LEAVE}"
            )
    return modules is not None


def stop_frozen(optimizer: Optimizer, parameter: torch.Tensor) -> NoReturn:
    """Raise RuntimeError for a parameter that was frozen when its model was wrapped."""
    raise RuntimeError(
        f"{type(optimizer).__name__} has trained {STATE.watched[parameter].name!r}, which was "
        "frozen when its model was wrapped: DDP does not average its gradient, and each rank "
        "trains its own. Set requires_grad before ddp.wrap, or wrap the model anew: "
        f"model = ddp.wrap(ddp.unwrap(model)). {_LEAVE}"
    )


_LEAVE = 'If each rank is meant to train it by itself: ddp.setup(unwatched="parameters")'


def _made_in_this_step(parameter: torch.Tensor) -> bool:
    if parameter not in STATE.alive:
        # neither registered nor given to an optimizer since setup: a model from before that, or
        # a tensor that was put into a group by hand
        return not isinstance(parameter, nn.Parameter) and first_seen(parameter) == STATE.moment
    if STATE.moment:
        return STATE.alive[parameter] == STATE.moment
    # no DataLoader has given a batch: the program feeds its wrapped model in another way, and this
    # may be its first step; or nothing is wrapped
    return len(STATE.watched) > 0 and _owner(_modules(), parameter) is None


def _know_wrappers(modules: list[nn.Module]) -> None:
    """Get to know the parameters of all wrappers among the modules, made by whomever."""
    for one in modules:
        if _WRAPPERS & {kind.__name__ for kind in type(one).__mro__}:
            for held in one.parameters():
                STATE.watched.setdefault(held, Watched("", averaged=True, compared=False))


def _modules() -> list[nn.Module]:
    # by type(), since isinstance asks an object for its __class__, and lazy objects answer by
    # loading what they stand for
    modules = [one for one in gc.get_objects() if issubclass(type(one), nn.Module)]
    return [one for one in modules if {"_modules", "_parameters"} <= vars(one).keys()]


def _owner(modules: list[nn.Module], parameter: torch.Tensor) -> tuple[nn.Module, str] | None:
    """The outermost module that holds the parameter, and its name there."""
    parents: dict[nn.Module | None, tuple[nn.Module, str]] = {}
    for one in modules:
        parents.update((child, (one, name)) for name, child in one._modules.items())
    for one in modules:
        for name, held in one._parameters.items():
            if held is parameter:
                seen = {one}
                while one in parents and parents[one][0] not in seen:
                    one, part = parents[one]
                    seen.add(one)
                    name = f"{part}.{name}"
                return one, name
    return None


def _told(modules: list[nn.Module], parameter: torch.Tensor, group: int, number: int) -> str:
    found = _owner(modules, parameter)
    shape = f"of shape {list(parameter.shape)}"
    if found is None:
        return f"parameter {number} of its group {group} ({shape})"
    return f"{found[1]!r} of {type(found[0]).__name__} ({shape})"


def given(original: Any) -> Any:
    """``Optimizer.add_param_group``, noting when each parameter was first seen."""

    @functools.wraps(original)
    def add_param_group(self: Optimizer, param_group: dict[str, Any]) -> None:
        original(self, param_group)
        for parameter in self.param_groups[-1]["params"]:
            first_seen(parameter)

    return add_param_group
