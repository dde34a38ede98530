"""The one piece of state that the package keeps, and the questions about this process's place."""

from __future__ import annotations

import multiprocessing
import weakref
from collections import Counter
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from ._launch import device_for, read_launch

if TYPE_CHECKING:
    from ._watch import Watch

DEFAULT_TIMEOUT = 600.0


@dataclass
class Watched:
    """A parameter of a wrapped model.

    ``steps`` is counted at the first one that an optimizer has, so that another optimizer of the
    same ones goes on counting.
    """

    name: str
    averaged: bool  # by DDP, which knows what could be trained when the model was wrapped
    compared: bool  # unless compare=False
    steps: int = 0


def counts_of(kind: Any) -> MutableMapping[Any, int]:
    """An empty mapping from objects like ``kind`` to numbers, by identity, which keeps no object alive.

    Where Python makes no weak references to such objects it keeps them: torch has these of
    generators since one of the versions after 2.11.
    """
    try:
        weakref.ref(kind)
    except TypeError:
        return {}
    return weakref.WeakKeyDictionary()


@dataclass
class State:
    """What ``setup`` did.

    ``common_seed`` is set by ``seed_ranks``, after which torch.initial_seed() differs between ranks; ``seedings`` counts how often
    each rank was given streams of its own, ``seeds_given``
    counts how often each has been asked for, ``generators`` how many samplers have one of the program's own.
    What the nets need (``_nets.py``) stands below: nothing of it is filled in one process.
    """

    active: bool = False
    owns_group: bool = False
    timeout: float = DEFAULT_TIMEOUT
    generation: int = 0
    sections: int = 0
    quieted: bool = False
    common_seed: int | None = None
    seedings: int = 0
    seeds_given: Counter[int] = field(default_factory=Counter)
    generators: MutableMapping[torch.Generator, int] = field(default_factory=lambda: counts_of(torch.default_generator))
    group: dist.ProcessGroup | None = None  # of the collectives of this package, over gloo; None: the program's own
    watch: Watch | None = None  # tells the other ranks where this one is
    watches: int = 0  # how many there have been
    cpu_group: dist.ProcessGroup | None = None  # of gloo, beside NCCL, for models that stay on the CPU
    wrapped: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)
    #: what finishes the backwards of wrapped models (_completed.Completed)
    completed: weakref.WeakKeyDictionary[Any, Any] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    #: a backward has run in another one, or will
    recomputes: bool = False
    #: the nets that are turned off
    unwatched: frozenset[str] = frozenset()
    #: what takes the nets' hooks out of torch again
    hooks: list[Callable[[], None]] = field(default_factory=list)
    #: the parameters of wrapped models
    watched: MutableMapping[torch.Tensor, Watched] = field(default_factory=WeakIdKeyDictionary)
    #: what is known of optimizers (_drift.Looked)
    looked: weakref.WeakKeyDictionary[Optimizer, Any] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    #: moves on with each batch of a DataLoader; without any, with each step of a wrapped model
    moment: int = 0
    #: DataLoaders have given batches
    loads: bool = False
    #: the moment at which a parameter was first seen
    alive: MutableMapping[torch.Tensor, int] = field(default_factory=WeakIdKeyDictionary)
    #: the passes that have given batches since the last step (_draws.Draw)
    drawn: dict[int, Any] = field(default_factory=dict)
    #: and those of the step before
    before: dict[int, Any] = field(default_factory=dict)
    #: marks of what wrapped models were given
    inputs: list[torch.Tensor | None] = field(default_factory=list)
    input_hooks: list[Callable[[], None]] = field(default_factory=list)
    inputs_compared: bool = False
    #: that data which look alike are the same
    sure: bool = False
    warned: bool = False


STATE = State()


def rank() -> int:
    """Number of this process in the job, from 0. Before ``setup`` from the environment (RuntimeError if that is malformed)."""
    return dist.get_rank() if dist.is_initialized() else read_launch().rank


def local_rank() -> int:
    """Number of this process on its machine, from 0; without LOCAL_RANK (a group made by somebody else) the rank."""
    launch = read_launch()
    return launch.local_rank if launch.launched else rank()


def world_size() -> int:
    """How many processes work on the job; 1 under plain ``python``."""
    return dist.get_world_size() if dist.is_initialized() else read_launch().world_size


def is_child() -> bool:
    """Whether this process is one that multiprocessing has started, as a worker of a DataLoader.

    One that is spawned imports the program's main module before it knows its parent.
    """
    return multiprocessing.parent_process() is not None or getattr(multiprocessing.current_process(), "_inheriting", False)


def alone() -> bool:
    """Whether there is no other rank to meet: in one process, and in one that a rank has spawned, which imports the program again."""
    return world_size() == 1 or (is_child() and not dist.is_initialized())


def is_main() -> bool:
    """Whether this is rank 0, the process that prints and writes files."""
    return rank() == 0


def device() -> torch.device:
    """``cuda:local_rank``, or ``cpu`` without CUDA. MPS is not offered: DistributedDataParallel does not support it."""
    return device_for(local_rank())


def capturing() -> bool:
    """Whether a CUDA graph is being captured, which cannot wait for an answer."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def wire() -> torch.device:
    """Where a tensor must lie to be sent: NCCL moves CUDA tensors only, gloo is at home on the CPU."""
    return device() if dist.get_backend() == "nccl" else torch.device("cpu")
