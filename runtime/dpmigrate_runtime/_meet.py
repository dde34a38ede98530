"""The exchanges that the collectives of this package are made of.

Each collective begins with ``rows``: one all_reduce of a small table, of one size whatever the
collective, in which every rank says where it is. So ranks that are in different collectives learn
it before a number of the one is taken for a number of the other; gloo itself mixes them where the
sizes agree, and aborts the process where they do not. Over gloo these exchanges have a group of
their own, where they do not meet the gradients of DistributedDataParallel either.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import torch
import torch.distributed as dist

from ._places import HERE, signature
from ._state import STATE, rank, wire, world_size
from ._watch import lost

_HEAD: Final = 3
#: numbers that a rank can say in the table
_ROOM: Final = 2
_TEXT: Final = 512
#: What of the head has to be alike on all ranks beside the name: the line where two lines mean two
#: different numbers, the function of a loss, which may have two branches (with and without mixup).
#: Of the others a program may have a call in any branch (``if ddp.is_main(): ddp.barrier()``).
_FUNCTION, _LINE = 1, 2
_SAME: Final = {
    "ddp.any_rank": _LINE,
    "ddp.sum_all": _LINE,
    "ddp.mean_all": _LINE,
    "ddp.gather_all": _LINE,
    "ddp.weighted_mean": _FUNCTION,
    "ddp.mean_count": _FUNCTION,
    "ddp.batch_sum": _FUNCTION,
    "ddp.batch_mean": _FUNCTION,
    "ddp.batch_rows": _FUNCTION,
}


def rows(*mine: int) -> list[list[int]]:
    """What each rank says in the table, by rank: at most two int64. Waits for every rank.

    Raises RuntimeError on every rank, with the place of each, when these are in different ones.
    """
    table = torch.zeros(world_size(), _HEAD + _ROOM, dtype=torch.int64)
    empty = [0] * (_ROOM - len(mine))
    table[rank()] = torch.tensor([*signature(), *mine, *empty], dtype=torch.int64)
    table = table.to(wire())
    found: list[list[int]] = reduced(table).tolist()
    if STATE.watch is not None:
        _compare([tuple(row[:_HEAD]) for row in found])
    return [row[_HEAD : _HEAD + len(mine)] for row in found]


def _compare(heads: list[tuple[int, ...]]) -> None:
    # all ranks have the same table, so they raise together
    name = "" if HERE.now is None else HERE.now.name
    if len({head[0] for head in heads}) > 1:
        raise RuntimeError(f"the ranks are in different collectives:{_everywhere()}\n{_ADVICE}")
    if name in _SAME and len({head[_SAME[name]] for head in heads}) > 1:
        raise RuntimeError(
            f"the ranks are at different calls of {name}:{_everywhere()}\n{_ADVICE} "
            'If they are meant to be: ddp.setup(unwatched="places")'
        )


_ADVICE: Final = (
    "A test or a loop has come out differently on one of them: by its own batch, its clock, its "
    "random numbers, or `if ddp.is_main()`."
)


def _everywhere() -> str:
    here = b"" if HERE.now is None else HERE.now.where.encode()[-_TEXT:]
    texts = torch.zeros(world_size(), _TEXT, dtype=torch.uint8)
    texts[rank(), : len(here)] = torch.tensor(list(here), dtype=torch.uint8)
    told = [bytes(row).rstrip(bytes(1)) for row in reduced(texts.to(wire())).tolist()]
    return "".join(f"\n  rank {i} in {one.decode(errors='replace')}" for i, one in enumerate(told))


def call(exchange: Callable[[], Any]) -> Any:
    """``exchange()``. Raises LostRankError, with the place of each rank, if torch fails in it."""
    try:
        return exchange()
    except RuntimeError as error:
        # of a long text there is more in torch's own
        raise lost(error) from (error if "\n" in str(error) else None)


def total(numbers: torch.Tensor) -> torch.Tensor:
    """The sum over the ranks of at most two float64 numbers, shape (n,).

    On the GPU, as NCCL wants it, the host does not wait, and the collectives are not compared.
    """
    if numbers.is_cuda:
        return reduced(numbers)
    table = rows(*numbers.view(torch.int64).tolist())  # the bits, which torch.compile can trace in a forward, as struct cannot be
    return torch.tensor(table, dtype=torch.int64).view(torch.float64).sum(0)


def summed(numbers: torch.Tensor, name: str) -> torch.Tensor:
    """The sum over the ranks of any number of float64 numbers, shape (n,).

    Raises RuntimeError on every rank where n differs; on the GPU, where the host does not wait
    (``total``), that is not looked at.
    """
    if numbers.is_cuda:
        return reduced(numbers.clone())
    count = len(numbers)
    bits = int(numbers.view(torch.int64).item()) if count == 1 else 0
    table = rows(count, bits)
    counts = {n for n, _ in table}
    if len(counts) > 1:
        raise RuntimeError(f"{name}() takes as many numbers on every rank, not {sorted(counts)}")
    if count != 1:
        return reduced(numbers.clone())
    return torch.tensor([[row] for _, row in table], dtype=torch.int64).view(torch.float64).sum(0)


def packed_from_main(mine: bytes) -> bytes:
    """Rank 0's bytes."""
    size = rows(len(mine))[0][0]
    box = (as_tensor(mine) if rank() == 0 else torch.empty(size, dtype=torch.uint8)).to(wire())
    call(lambda: dist.broadcast(box, src=0, group=STATE.group))
    return as_bytes(box, size) if rank() else mine


def packed_from_all(mine: bytes) -> list[bytes]:
    """The bytes of each rank, by rank."""
    sizes = [row[0] for row in rows(len(mine))]
    box = torch.zeros(max(sizes), dtype=torch.uint8)
    box[: len(mine)] = as_tensor(mine)
    box = box.to(wire())
    boxes = [torch.empty_like(box) for _ in sizes]
    call(lambda: dist.all_gather(boxes, box, group=STATE.group))
    return [as_bytes(one, size) for one, size in zip(boxes, sizes, strict=True)]


def as_tensor(mine: bytes) -> torch.Tensor:
    """Bytes as a tensor of their own."""
    # frombuffer wants at least one element
    return torch.frombuffer(bytearray(mine or bytes(1)), dtype=torch.uint8)[: len(mine)]


def as_bytes(box: torch.Tensor, size: int | None = None) -> bytes:
    """The first bytes of a tensor of bytes, or all of them; without numpy, which torch need not have."""
    here = box.cpu()
    size = len(here) if size is None else size
    return ctypes.string_at(here.data_ptr(), size) if size else b""


def reduced(values: torch.Tensor, op: Any = dist.ReduceOp.SUM) -> torch.Tensor:
    """``values``, reduced over the ranks in place. The size must be the same on all of them."""
    call(lambda: dist.all_reduce(values, op=op, group=STATE.group))
    return values
