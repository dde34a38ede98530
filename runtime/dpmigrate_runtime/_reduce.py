"""Sums over the ranks that keep the kind of what they are given."""

from __future__ import annotations

import copy
import functools
import pickle
import sys
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from ._data import is_divided
from ._meet import packed_from_all, reduced
from ._places import meeting
from ._state import alone, device, wire, world_size


@dataclass(frozen=True)
class _Sign:
    """What one rank holds of one value. ``kind``: number, numpy, tensor, dict (of numbers) or, for what cannot be summed, bad."""

    kind: str
    dtype: str
    shape: tuple[int, ...] = ()
    zero: bool = False
    items: tuple[tuple[Any, int | float], ...] = ()

    def __str__(self) -> str:
        shape = f" of shape {self.shape}" if self.kind in ("tensor", "numpy") else ""
        return f"{self.kind} ({self.dtype}){shape}"


def sum_all(*values: Any, over: Any = None) -> Any:
    """The sum of each value over all ranks, the same on every rank; one value gives itself, several a tuple. A collective.

    Takes numbers, tensors and numpy arrays of any shape. An int (or bool) gives an int, summed in int64; a float a float, summed in
    float64; a tensor or array one of its own dtype, shape and device (bool: int64). A rank whose shard was empty may hold a plain 0
    where the others hold a float, a tensor or an array: it gets what they get. A list of numbers, or of tensors and arrays without dimensions,
    gives one of its own kind and length, element by element, and a deque a deque with the same maxlen; a dict of numbers gives one of its own
    kind with the keys of all ranks. In one process the values are returned unchanged.

    ``over`` names the loader whose loop made the values, where one loop serves divided and undivided loaders: nothing is summed when
    every rank went through all of it.

    Raises on every rank: ValueError when the ranks hold different shapes, lengths or numbers of values, TypeError for what cannot be
    summed, OverflowError when a sum does not fit the values' own integer dtype.
    """
    if not alone() and (over is None or is_divided(over)):
        with meeting("ddp.sum_all"):
            sums = _sum(tuple(_packed(value) for value in values))
        values = tuple(_unpacked(one, value) for one, value in zip(sums, values, strict=True))
    return values[0] if len(values) == 1 else values


def mean_all(*values: Any, over: Any = None) -> Any:
    """The mean of each value over the ranks (not over samples: that is a ``sum_all`` of sums and counts), as float. A collective.

    ``over`` and the errors are those of ``sum_all``.
    """
    world = world_size() if not alone() and (over is None or is_divided(over)) else 1
    # one process makes no note
    with meeting("ddp.mean_all") if world > 1 else nullcontext():
        sums = sum_all(*values, over=over)
    means = [_like(one, [x / world for x in one]) if isinstance(one, list | deque) else one / world for one in ([sums] if len(values) == 1 else sums)]
    return means[0] if len(values) == 1 else tuple(means)


def _packed(value: Any) -> Any:
    """A list or deque of numbers, or of tensors and numpy arrays without dimensions, as one tensor; anything else as it is."""
    if not isinstance(value, list | deque) or not all(map(_is_scalar, value)):
        return value
    tensors = [x for x in value if isinstance(x, torch.Tensor)]
    if tensors:
        parts = [torch.as_tensor(x.item() if _is_numpy(x) else x, device=tensors[0].device).detach() for x in value]
        dtype = functools.reduce(torch.promote_types, [part.dtype for part in parts])
        return torch.stack([part.to(dtype) for part in parts])
    numbers = [x.item() if _is_numpy(x) else x for x in value]
    return torch.tensor(numbers, dtype=torch.float64 if any(isinstance(x, float) for x in numbers) or not value else torch.int64)


def _unpacked(total: Any, value: Any) -> Any:
    if not isinstance(value, list | deque):
        return total
    if any(isinstance(x, torch.Tensor) for x in value):
        return _like(value, list(total.unbind()))
    return _like(value, list(total.numpy()) if any(map(_is_numpy, value)) else total.tolist())


def _like(value: list[Any] | deque[Any], items: list[Any]) -> list[Any] | deque[Any]:
    if type(value) is list:
        return items
    # a class of the program that derives from list stays one, with what else it holds
    made = copy.copy(value)
    made.clear()
    made.extend(items)
    return made


def _is_scalar(value: Any) -> bool:
    without = (isinstance(value, torch.Tensor) or _is_numpy(value)) and not value.shape
    return without or type(value) in (int, float, bool)


def _is_numpy(value: Any) -> bool:
    return "numpy" in sys.modules and hasattr(value, "__array__") and hasattr(value, "dtype") and not isinstance(value, torch.Tensor)


def _tensor(value: Any) -> torch.Tensor:
    # numpy has kinds that torch lacks (uint16, strings): those are refused by the caller
    if _is_numpy(value):
        return torch.from_numpy(sys.modules["numpy"].array(value))
    if isinstance(value, torch.Tensor):
        return value.detach()
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)


def _sign(value: Any) -> _Sign:
    if isinstance(value, torch.Tensor) or _is_numpy(value):
        kind = "tensor" if isinstance(value, torch.Tensor) else "numpy"
        try:
            as_tensor = _tensor(value)
        except (TypeError, ValueError):
            return _Sign("bad", f"numpy {value.dtype}")
        name = str(as_tensor.dtype).removeprefix("torch.")
        if as_tensor.is_complex() or as_tensor.layout != torch.strided:
            return _Sign("bad", f"{kind} {name} {as_tensor.layout}")
        return _Sign(kind, name, tuple(as_tensor.shape))
    if isinstance(value, int | float):
        return _Sign("number", "float" if isinstance(value, float) else "int", zero=value == 0)
    if isinstance(value, dict) and all(type(x) in (int, float, bool) for x in value.values()):
        return _Sign("dict", "dict", items=tuple(value.items()))
    return _Sign("bad", type(value).__name__)


def _sum(values: tuple[Any, ...]) -> list[Any]:
    ranks: list[list[_Sign]] = [pickle.loads(signs) for signs in packed_from_all(pickle.dumps([_sign(value) for value in values]))]
    counts = [len(signs) for signs in ranks]
    if len(set(counts)) > 1:
        raise ValueError(f"sum_all: the ranks passed different numbers of values: {counts}")
    merged = [_merge(position, list(signs)) for position, signs in enumerate(zip(*ranks, strict=True))]
    totals: dict[int, torch.Tensor] = {}
    for wide in (torch.int64, torch.float64):
        here = [i for i, sign in enumerate(merged) if sign.kind != "dict" and _is_float(sign) == wide.is_floating_point]
        if here:
            totals.update(zip(here, _reduce([values[i] for i in here], [merged[i] for i in here], wide), strict=True))
    return [_with_items(value, merged[i]) if merged[i].kind == "dict" else _give_back(totals[i], value, merged[i]) for i, value in enumerate(values)]


def _with_items(value: Any, sign: _Sign) -> Any:
    # a defaultdict or Counter stays one
    total = copy.copy(value)
    total.clear()
    total.update(dict(sign.items))
    return total


def _dtype(sign: _Sign) -> torch.dtype:
    found: torch.dtype = {"int": torch.int64, "float": torch.float64}.get(sign.dtype) or getattr(torch, sign.dtype)
    return found


def _is_float(sign: _Sign) -> bool:
    return _dtype(sign).is_floating_point


def _merge(position: int, signs: list[_Sign]) -> _Sign:
    """The kind, dtype and shape that all ranks get back for one value."""
    for rank, sign in enumerate(signs):
        if sign.kind == "bad":
            raise TypeError(f"sum_all: value {position} on rank {rank} cannot be summed: {sign.dtype}")
    if any(sign.kind == "dict" for sign in signs):
        return _merge_items(position, signs)
    arrays = [sign for sign in signs if sign.kind != "number"]
    if not arrays:
        return _Sign("number", "float" if any(map(_is_float, signs)) else "int")
    shape = arrays[0].shape
    if any(sign.shape != shape and not sign.zero for sign in signs):
        held = "; ".join(f"rank {rank}: {sign}" for rank, sign in enumerate(signs))
        raise ValueError(f"sum_all: value {position} differs between the ranks: {held}")
    dtype = functools.reduce(torch.promote_types, map(_dtype, arrays))
    if dtype == torch.bool:
        dtype = torch.int64
    if any(map(_is_float, signs)) and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    kind = "tensor" if any(sign.kind == "tensor" for sign in arrays) else "numpy"
    return _Sign(kind, str(dtype).removeprefix("torch."), shape)


def _merge_items(position: int, signs: list[_Sign]) -> _Sign:
    if any(sign.kind != "dict" for sign in signs):
        raise ValueError(f"sum_all: value {position} is a dict on some ranks only")
    total: dict[Any, int | float] = {}
    for sign in signs:
        for key, number in sign.items:
            total[key] = total[key] + number if key in total else number
    return _Sign("dict", "dict", items=tuple(total.items()))


def _reduce(values: list[Any], signs: list[_Sign], wide: torch.dtype) -> list[torch.Tensor]:
    # wide types: float32 counters stop at 2**24, uint8 wraps, gloo cannot send int16
    parts = [_tensor(value).to(wire(), wide).expand(sign.shape).reshape(-1) for value, sign in zip(values, signs, strict=True)]
    packed = reduced(torch.cat(parts))
    return [part.reshape(sign.shape) for part, sign in zip(torch.split(packed, [len(part) for part in parts]), signs, strict=True)]


def _give_back(total: torch.Tensor, value: Any, sign: _Sign) -> Any:
    if sign.kind == "number":
        return total.item()
    dtype = _dtype(sign)
    narrow = total.to(dtype)
    if not dtype.is_floating_point and not torch.equal(narrow.to(torch.int64), total):
        raise OverflowError(f"sum_all: the sum does not fit into {dtype}; count in int64")
    if sign.kind == "numpy":
        array = narrow.cpu().numpy()
        return array if getattr(value, "shape", sign.shape) != () or isinstance(value, sys.modules["numpy"].ndarray) else array[()]
    return narrow.to(value.device if isinstance(value, torch.Tensor) else device(), copy=True)
