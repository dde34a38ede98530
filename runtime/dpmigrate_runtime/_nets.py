"""The ranks watch themselves: what is hooked into torch where there are several.

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
from typing import Any, Final

from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook
from torch.utils.data import dataloader

from . import _batches, _draws, _drift, _outside
from ._state import STATE, world_size

#: those that are hooked into torch
HOOKED: Final = frozenset({"parameters", "batches", "passes", "weights"})
NETS: Final = HOOKED | {"places"}


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


def take_in_nets() -> None:
    """Take all hooks out again and forget what was seen."""
    while STATE.hooks:
        STATE.hooks.pop()()
    _batches.leave_inputs()
    STATE.unwatched = frozenset()
    STATE.moment, STATE.loads, STATE.inputs_compared, STATE.warned = 0, False, False, False
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
