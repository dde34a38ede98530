"""Small exchanges between the ranks. None of them catches a failed collective: the group is dead after one."""

from __future__ import annotations

import io
from typing import Any

import torch
import torch.distributed as dist

from ._state import device, rank, wire, world_size


def barrier() -> None:
    """Wait for every rank. One process: nothing happens."""
    if world_size() > 1:
        dist.barrier()


def any_rank(flag: Any) -> bool:
    """Whether ``flag`` is true on at least one rank: the same answer everywhere, so that ranks leave a loop together."""
    if world_size() == 1:
        return bool(flag)
    votes = torch.tensor([int(bool(flag))], device=wire())
    dist.all_reduce(votes, op=dist.ReduceOp.MAX)
    return bool(votes.item())


def _place(storage: Any, location: str) -> Any:
    # rank 0's cuda:0 is another rank's own GPU
    return storage.cuda(device().index) if location.startswith("cuda") else storage


def from_main(value: Any) -> Any:
    """Rank 0's value, on every rank; what the others pass is ignored.

    The value must be picklable. CPU tensors in it arrive on the CPU, CUDA tensors on the receiving rank's ``device()``.
    """
    if world_size() == 1:
        return value
    box: list[bytes | None] = [None]
    if rank() == 0:
        stream = io.BytesIO()
        torch.save(value, stream)
        box[0] = stream.getvalue()
    dist.broadcast_object_list(box, src=0)
    if rank() == 0:
        return value
    return torch.load(io.BytesIO(box[0] or b""), map_location=_place, weights_only=False)
