"""What is hooked into torch where there are several ranks, most of it so that they watch themselves.

* ``parameters``: an optimizer trains what is in no wrapped model (``_outside``);
* ``batches``: all ranks train on the same samples (``_batches``);
* ``passes``: the ranks go through their data in different orders (``_draws``);
* ``weights``: the ranks' weights part (``_drift``);
* ``places``: the ranks are in different collectives, or wait in vain (``_meet``, ``_watch``).

``ddp.setup(unwatched=...)`` turns them off by these names, and ``ddp.wrap(model, compare=False)``
all that compares ranks after the steps of one model. The ranks meet in ``_drift``. In one process
nothing is hooked, and nothing costs anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Any, Final

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook
from torch.utils.checkpoint import CheckpointFunction
from torch.utils.data import dataloader

from . import _batches, _draws, _drift, _outside
from ._state import STATE, world_size

#: those that are hooked into torch
HOOKED: Final = frozenset({"parameters", "batches", "passes", "weights"})
NETS: Final = HOOKED | {"places"}
_PRESERVES: Final = "_unsafe_preserve_version_counter"


def nets(names: str | Collection[str]) -> frozenset[str]:
    """The names of nets, as ``setup`` takes them. Raises ValueError for one that does not exist."""
    found = frozenset({names} if isinstance(names, str) else names)
    if unknown := found - NETS:
        raise ValueError(
            f"there is no net called {', '.join(map(repr, sorted(unknown)))}; "
            f"there are {', '.join(sorted(NETS))}"
        )
    return found


def cast_nets() -> None:
    """Hook the nets into torch, once; nothing in one process, or where all are turned off."""
    if STATE.hooks or world_size() == 1 or STATE.unwatched >= HOOKED:
        return
    STATE.hooks.append(register_optimizer_step_post_hook(_drift.after_step).remove)
    if not {"parameters", "batches", "passes"} <= STATE.unwatched:
        _replace(dataloader._BaseDataLoaderIter, "__next__", _draws.given)
    if "parameters" not in STATE.unwatched:
        STATE.hooks.append(register_module_parameter_registration_hook(_outside.registered).remove)
        _replace(Optimizer, "add_param_group", _outside.given)


def keep_versions() -> None:
    """Let a model with buffers be called several times before a backward, also by a torch that lacks the fix of pytorch/pytorch#175024.

    DDP copies rank 0's buffers into the model before each forward. Without the fix autograd takes that for a change of what an earlier
    forward has kept for its backward (running statistics of BatchNorm), and stops.
    """
    if _PRESERVES not in DistributedDataParallel._sync_buffers.__code__.co_names:
        _replace(DistributedDataParallel, "_sync_buffers", _preserving)


def _preserving(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def _sync_buffers(self: Any) -> Any:
        with ExitStack() as stack:
            for buffer in self.module.buffers():
                stack.enter_context(torch.autograd._unsafe_preserve_version_counter(buffer))  # type: ignore[attr-defined]
            return method(self)

    return _sync_buffers


def note_recomputing() -> None:
    """Know of passes that will be computed again in a backward of their own.

    (torch.utils.checkpoint, ``use_reentrant``)
    """
    if not STATE.recomputes and CheckpointFunction.forward.__module__ != __name__:
        _replace(CheckpointFunction, "forward", _noting)


def _noting(method: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*given: Any) -> Any:
        STATE.recomputes = True
        return method(*given)

    return forward


def take_in_nets() -> None:
    """Take all hooks out again and forget what was seen."""
    while STATE.hooks:
        STATE.hooks.pop()()
    _batches.leave_inputs()
    STATE.unwatched = frozenset()
    STATE.moment, STATE.loads, STATE.inputs_compared, STATE.warned = 0, False, False, False
    STATE.recomputes = False
    for kept in (STATE.watched, STATE.looked, STATE.alive, STATE.drawn, STATE.before):
        kept.clear()


def _replace(kind: Any, name: str, made: Callable[[Any], Any]) -> None:
    """Put ``made(method)`` in the place of a class's method.

    Until ``take_in_nets``, unless somebody else has put something there since.
    """
    before = getattr(kind, name)
    after = made(before)
    setattr(kind, name, after)

    def undo() -> None:
        if getattr(kind, name) is after:
            setattr(kind, name, before)

    STATE.hooks.append(undo)
