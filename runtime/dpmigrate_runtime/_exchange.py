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
    box: list[bytes | None] = [to_bytes(value) if rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return value if rank() == 0 else from_bytes(box[0] or b"")


def from_all(value: Any) -> list[Any]:
    """Every rank's value, by rank; tensors arrive as in ``from_main``, and one's own value is the object itself."""
    box = [b""] * world_size()
    dist.all_gather_object(box, to_bytes(value))
    return [value if number == rank() else from_bytes(packed) for number, packed in enumerate(box)]


def to_bytes(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def from_bytes(packed: bytes) -> Any:
    return torch.load(io.BytesIO(packed), map_location=_place, weights_only=False)
