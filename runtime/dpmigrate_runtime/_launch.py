"""What the launcher said: the environment that ``torchrun`` sets, checked before anything waits for another process.

Source: https://docs.pytorch.org/docs/stable/elastic/run.html (environment variables).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

import torch
import torch.distributed as dist

_NUMBERS: Final = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
_ADDRESS: Final = ("MASTER_ADDR", "MASTER_PORT")
BACKEND_VARIABLE: Final = "DPMIGRATE_BACKEND"


@dataclass(frozen=True)
class Launch:
    """One process's place in the job; ``launched`` is False when no launcher variable is set (plain ``python``)."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    launched: bool = False


def _number(name: str, least: int) -> int:
    text = os.environ[name]
    try:
        value = int(text)
    except ValueError:
        raise RuntimeError(f"environment variable {name} must be a whole number, but it is {text!r}") from None
    if value < least:
        raise RuntimeError(f"environment variable {name} must be at least {least}, but it is {value}")
    return value


def read_launch() -> Launch:
    """Read and check RANK, LOCAL_RANK, WORLD_SIZE and, for more than one process, MASTER_ADDR and MASTER_PORT.

    Raises RuntimeError naming the variable that is missing or wrong.
    """
    given = [name for name in _NUMBERS if name in os.environ]
    if not given:
        return Launch()
    for name in _NUMBERS:
        if name not in os.environ:
            raise RuntimeError(f"{given[0]} is set but {name} is not; start the script with torchrun, or unset {', '.join(given)}")
    world = _number("WORLD_SIZE", 1)
    rank, local = _number("RANK", 0), _number("LOCAL_RANK", 0)
    if rank >= world:
        raise RuntimeError(f"environment variable RANK is {rank}, but it must be below WORLD_SIZE, which is {world}")
    if local >= world:
        raise RuntimeError(f"environment variable LOCAL_RANK is {local}, but it must be below WORLD_SIZE, which is {world}")
    if world > 1:
        for name in _ADDRESS:
            if not os.environ.get(name):
                raise RuntimeError(f"WORLD_SIZE is {world} but {name} is not set; start the script with torchrun")
        _number("MASTER_PORT", 0)
    return Launch(rank, local, world, True)


def backend() -> str:
    """``nccl`` where CUDA is usable, else ``gloo``; DPMIGRATE_BACKEND overrides. Raises RuntimeError for any other override."""
    wanted = os.environ.get(BACKEND_VARIABLE, "")
    if wanted not in ("", "gloo", "nccl"):
        raise RuntimeError(f"environment variable {BACKEND_VARIABLE} must be gloo or nccl, but it is {wanted!r}")
    return wanted or ("nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo")


def device_for(local_rank: int) -> torch.device:
    """The device of this process: ``cuda:local_rank``, or the CPU without CUDA.

    With DPMIGRATE_BACKEND=gloo several ranks may share a GPU (NCCL cannot do that), so the index wraps round.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    shared = os.environ.get(BACKEND_VARIABLE) == "gloo"
    return torch.device("cuda", local_rank % torch.cuda.device_count() if shared else local_rank)


def check_device(local_rank: int) -> torch.device:
    """``device_for``, or RuntimeError naming LOCAL_RANK when this machine has no such GPU."""
    device = device_for(local_rank)
    if device.type == "cuda" and device.index >= torch.cuda.device_count():
        raise RuntimeError(
            f"LOCAL_RANK is {local_rank}, but only {torch.cuda.device_count()} GPU(s) are visible: start at most that many processes "
            f"per machine (torchrun --nproc-per-node), or set {BACKEND_VARIABLE}=gloo to let processes share a GPU"
        )
    return device
