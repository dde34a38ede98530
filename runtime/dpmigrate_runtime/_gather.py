"""What the ranks have collected, put end to end."""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Sequence
from typing import Any, Literal

import torch

from ._data import is_divided
from ._exchange import from_all
from ._places import meeting
from ._state import alone


def gather_all(*values: Any, over: Any = None, order: Literal["samples", "batches"] | None = None) -> Any:
    """What all ranks hold of each value, rank 0's first, the same on every rank; one value gives itself, several a tuple. A collective.

    Takes lists of anything that can be pickled, tensors and numpy arrays (put end to end along their first dimension), and dicts of
    these, key by key. A rank that holds nothing (None, something empty) adds nothing. After a loop over ``shard(loader, blocks=True)``
    the result is in the order of the loader. CUDA tensors arrive on the rank's own ``device()``. In one process the values are
    returned unchanged.

    ``over`` names the loader whose loop made the values, where one loop serves divided and undivided loaders: nothing is gathered
    when every rank went through all of it.

    ``order`` is for loops over a training loader, of which rank r has the samples r, r + W, r + 2W, ... (``distribute``,
    ``local_rows``). With ``"samples"`` the values have an element for each sample, which the ranks give in turn; with ``"batches"``
    lists have one for each batch, whose rows the ranks give in turn. The result is in the order of the loader then, with the samples
    at its end with which the ranks' shares are filled up.

    Raises on every rank: ValueError when the ranks hold different numbers of values, or for an unknown order, TypeError for what
    cannot be put end to end.
    """
    if order not in (None, "samples", "batches"):
        raise ValueError(f"gather_all: order is {order!r}, neither 'samples' nor 'batches'")
    if not alone() and (over is None or is_divided(over)):
        with meeting("ddp.gather_all"):
            ranks = from_all(tuple(_plain(value) for value in values))
        counts = [len(held) for held in ranks]
        if len(set(counts)) > 1:
            raise ValueError(f"gather_all: the ranks passed different numbers of values: {counts}")
        values = tuple(_like(value, _joined(list(parts), order)) for value, parts in zip(values, zip(*ranks, strict=True), strict=True))
    return values[0] if len(values) == 1 else values


def _plain(value: Any) -> Any:
    """Without what cannot be sent: a ``defaultdict(lambda: [])`` has a function in it."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return list(value) if isinstance(value, list) else value


def _like(own: Any, made: Any) -> Any:
    """What was put together, in the kinds of dict and list that this rank has."""
    if isinstance(own, dict) and isinstance(made, dict):
        result, inner = copy.copy(own), next(iter(own.values()), None)
        result.clear()
        for key, value in made.items():
            result[key] = _like(own.get(key, inner), value)
        return result
    if isinstance(own, list) and isinstance(made, list) and type(own) is not list:
        items = copy.copy(own)
        items[:] = made
        return items
    return made


def _joined(parts: list[Any], order: str | None) -> Any:
    kinds = [_kind(part) for part in parts]
    held = [part for part in parts if part is not None and len(part)]
    found = {kind for kind, part in zip(kinds, parts, strict=True) if part is not None and len(part)}
    if len(found) > 1:
        raise TypeError(f"gather_all: the ranks hold different kinds: {kinds}")
    if not held:
        return parts[0]
    if found == {"dict"}:
        return _by_key(held, order)
    if order == "batches" and found == {"list"}:
        turns = itertools.zip_longest(*held)
        return [_joined([part for part in turn if part is not None], "samples") for turn in turns]
    if order is not None:
        at = _in_turn([len(part) for part in held])
        if found == {"list"}:
            end_to_end = [one for part in held for one in part]
            return [end_to_end[i] for i in at]
        return _cat(held, found)[at]
    return [one for part in held for one in part] if found == {"list"} else _cat(held, found)


def _cat(held: list[Any], found: set[str]) -> Any:
    """Tensors or arrays end to end."""
    return torch.cat(held) if found == {"tensor"} else sys.modules["numpy"].concatenate(held)


def _in_turn(counts: Sequence[int]) -> list[int]:
    """Where the elements are that the ranks give in turn, in what they have end to end."""
    starts = [0, *itertools.accumulate(counts)]
    places = sorted((i, r) for r, count in enumerate(counts) for i in range(count))
    return [starts[r] + i for i, r in places]


def _by_key(held: list[dict[Any, Any]], order: str | None) -> dict[Any, Any]:
    joined = {}
    for key in dict.fromkeys(key for part in held for key in part):
        joined[key] = _joined([part[key] for part in held if key in part], order)
    return joined


def _kind(part: Any) -> str:
    if isinstance(part, torch.Tensor) and part.dim():
        return "tensor"
    if "numpy" in sys.modules and isinstance(part, sys.modules["numpy"].ndarray) and part.ndim:
        return "numpy"
    if isinstance(part, dict | list) or part is None:
        return "dict" if isinstance(part, dict) else "list"
    raise TypeError(f"gather_all: a {type(part).__name__} cannot be put end to end with others")
