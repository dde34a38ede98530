"""Records more of a run than ``dpmigrate verify`` does: forward passes, collectives, draws and others.

It adds to what the probe notes by lines of the program (``dpmigrate_probe.places``), by the same function, so that one record holds both. It patches torch
and the standard library as the probe does, before it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import dpmigrate_probe
from dpmigrate_probe.places import named, note
from dpmigrate_probe.state import CONFIG, STATE

#: functions whose calls are events by themselves, by module or class. What torch calls of its own is
#: no event of the program: a draw of ``nn.Linear(3, 3)`` belongs to the making of the layer
_DIRECT = {
    "draw": (
        ("torch", "rand randn randint randperm normal bernoulli multinomial poisson rand_like randn_like randint_like"),
        ("torch.utils.data", "random_split"),
        ("torch.Tensor", "normal_ uniform_ random_ exponential_ bernoulli_ log_normal_ cauchy_ geometric_"),
        ("torch.nn.init", "normal_ uniform_ trunc_normal_ orthogonal_ sparse_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_"),
        ("torch.nn.functional", "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout gumbel_softmax"),
        ("numpy.random", "rand randn randint random random_sample normal uniform choice permutation shuffle beta binomial standard_normal poisson"),
        ("random", "random randint uniform gauss choice choices sample shuffle randrange normalvariate betavariate getrandbits"),
    ),
    "seed": (("torch", "manual_seed seed"), ("numpy.random", "seed"), ("random", "seed")),
    "gradient": (("torch.autograd", "grad"),),
    "backward": (("torch.autograd", "backward"),),
    "load": (("torch", "load"),),
    "load state": (("torch.nn.Module", "load_state_dict"), ("torch.optim.Optimizer", "load_state_dict")),
    "zero grad": (("torch.optim.Optimizer", "zero_grad"), ("torch.nn.Module", "zero_grad")),
    "clip": (("torch.nn.utils", "clip_grad_norm_ clip_grad_value_"),),
    "scaler step": (("torch.amp.GradScaler", "step"),),
    "requires grad": (("torch.Tensor", "requires_grad_"),),
    "exit": (("sys", "exit"),),
    "process": (("threading.Thread", "start"), ("multiprocessing.Process", "start"), ("torch.multiprocessing", "spawn")),
}
#: the collectives of torch.distributed
_COLLECTIVES = (
    "all_reduce broadcast all_gather all_gather_object all_gather_into_tensor all_to_all barrier "
    "monitored_barrier broadcast_object_list gather gather_object reduce reduce_scatter scatter "
    "scatter_object_list"
)
#: in the environment: the lines that run are recorded as well
LINES = "RECORD_LINES"
#: files whose frames stand between a caller and what it calls
_BETWEEN = (*(os.path.dirname(os.path.abspath(m.__file__)) for m in (sys.modules[__name__], dpmigrate_probe) if m.__file__), contextlib.__file__)


def enter() -> None:
    """Record what happens in this process, unless it is the launcher."""
    if not CONFIG["ranks"] or "RANK" in os.environ:
        sys.meta_path.insert(0, dpmigrate_probe._After("torch", install))
        if os.environ.get(LINES):
            sys.settrace(_line)


def _line(frame: FrameType, event: str, argument: Any) -> Any:
    """Every line of the program that runs."""
    name = named(frame)
    if name is None:
        return None
    STATE["places"].add(("line", name, frame.f_lineno))
    return _line


def install(torch: Any) -> None:
    """Patch what is recorded."""
    for kind, places in _DIRECT.items():
        for owner, names in places:
            for name in names.split():
                _patch(_found(owner), name, functools.partial(_directly, kind), kind)
    schedulers = importlib.import_module("torch.optim.lr_scheduler")
    for cls in vars(schedulers).values():
        if isinstance(cls, type) and issubclass(cls, schedulers.LRScheduler) and "step" in vars(cls):
            _patch(cls, "step", functools.partial(_directly, "schedule"), "schedule")
    _patch(torch.utils.data.DataLoader, "__init__", functools.partial(note, "loader"), "loader")
    _forward(torch)
    # what libraries warn of is no output of the program's
    warnings.showwarning = lambda *a, **k: note("warning")
    if torch.distributed.is_available():
        for module in (torch.distributed, torch.distributed.distributed_c10d):
            for name in _COLLECTIVES.split():
                _patch(module, name, _met, "collective")


def _forward(torch: Any) -> None:
    """A forward pass is the call of a module that has parameters."""
    call = torch.nn.Module.__call__

    @functools.wraps(call)
    def called(self: Any, *a: Any, **k: Any) -> Any:
        if next(self.parameters(), None) is not None:
            again = os.path.join("torch", "_tensor.py"), os.path.join("torch", "autograd", "__init__.py")
            note("forward again" if _entered().endswith(again) else "forward")
        return call(self, *a, **k)

    torch.nn.Module.__call__ = called


def _found(dotted: str) -> Any:
    """A module, or a class of one."""
    module, _, last = dotted.rpartition(".")
    return getattr(importlib.import_module(module), last) if last[:1].isupper() else importlib.import_module(dotted)


def _patch(owner: Any, name: str, told: Callable[[], object], kind: str) -> None:
    original = getattr(owner, name)
    if getattr(original, "_recorded", "") == kind:  # one function under two names
        return

    @functools.wraps(original, updated=())
    def recorded(*a: Any, **k: Any) -> Any:
        told()
        return original(*a, **k)

    recorded._recorded = kind  # type: ignore[attr-defined]
    setattr(owner, name, recorded)


def _met() -> None:
    """A collective: of the program's, or of a library that the program has called for something else."""
    called = _entered()
    own = not called or "dpmigrate_runtime" in called or os.path.join("torch", "distributed") in called
    note("collective" if own else "collective inside")


def _entered() -> str:
    """The file of what the program has called, in which something happens now."""
    frame, called = sys._getframe(1), ""
    while frame.f_back is not None and named(frame) is None:
        code = frame.f_code.co_filename
        called = called if code.startswith(_BETWEEN) else code
        frame = frame.f_back
    return called


def _directly(kind: str) -> None:
    """An event where a line of the program calls the function itself."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
    if named(frame) is not None:
        note(kind)
