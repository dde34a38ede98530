"""The net under batches that are the same on all ranks: these do the work of one.

Two signs, compared where the ranks compare their weights:

* *The same data.* The steps are fed by DataLoaders that go through all of their data, by samplers
  of torch's own, and the data look alike on all ranks: classes, lengths, and a sample of what they
  hold. With equal seeds all ranks do the same work, with others an epoch is W epochs. Where the
  content is seen (tensors, arrays, lists of files) this is certain, and the run stops. Where a data
  set shows nothing of what it holds, its samples may still be others on each rank, and ranks that
  draw with replacement may mean to draw for themselves: a warning is given.
* *The same batches.* The inputs of the last training passes through the wrapped models before the
  second step of an optimizer are identical on all ranks and change from pass to pass, and no
  DataLoader divides its data. What proves nothing does not count: inputs that do not change (one
  full batch, constant noise), single numbers, and steps fed by divided loaders, where different
  samples may have equal content.
"""

from __future__ import annotations

import hashlib
import itertools
import warnings
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

import torch
from torch import nn
from torch.utils.data import Dataset

from . import _draws
from ._state import STATE, capturing, world_size

#: passes through a model whose inputs are kept, the last ones
SLOTS: Final = 8
#: elements that are looked at, of a tensor or a list
_SOME: Final = 64
#: data sets may hold data sets
_DEEP: Final = 6
_REMEDY: Final = "sampler=ddp.DistributedSampler(train_set) or ddp.distribute(loader)"
_LEAVE: Final = 'If that is meant: ddp.setup(unwatched="batches")'


def watch_inputs(wrapped: nn.Module) -> None:
    """Look at what the wrapper is given, until the ranks have compared it."""
    if "batches" not in STATE.unwatched and not STATE.inputs_compared:
        STATE.input_hooks.append(wrapped.register_forward_pre_hook(_look, with_kwargs=True).remove)


def _look(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if torch.compiler.is_compiling() or capturing():
        return
    if not module.training or not torch.is_grad_enabled():
        return
    STATE.inputs.append(_mark(list(_tensors((args, kwargs)))))
    del STATE.inputs[:-SLOTS]


def _tensors(value: Any, depth: int = 6) -> Iterator[torch.Tensor]:
    """The tensors in what a model is given that may be samples."""
    if isinstance(value, torch.Tensor):
        number = value.is_floating_point() or value.is_complex()
        if (
            value.layout == torch.strided
            and not value.is_quantized
            and (value.numel() > 1 if number else value.dim() > 1)
        ):
            yield value.detach()
    elif depth and isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(part, depth - 1)


def _mark(tensors: list[torch.Tensor]) -> torch.Tensor | None:
    """A number that is another one for other tensors, where these are."""
    total: torch.Tensor | None = None
    for place, tensor in enumerate(tensors):
        flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).flatten()
        some = _some(flat).double().nan_to_num()
        weights = torch.arange(1, len(some) + 1, dtype=torch.float64, device=some.device).sqrt()
        part = (some * weights).sum() * (place + 1)
        total = part if total is None else total + part.to(total.device)
    return total


def facts() -> list[float]:
    """What this rank has to say: its data, whether they are divided, its batches."""
    if "batches" in STATE.unwatched:
        return [0.0] * (SLOTS + 2)
    marks = [0.0 if mark is None else float(mark) for mark in STATE.inputs]
    fed = _draws.undivided()
    alike = [likeness(iterator._dataset) for iterator, _ in fed]
    # ranks that draw with replacement may mean to draw for themselves
    STATE.sure = all(sure for _, sure in alike) and not any(repeats for _, repeats in fed)
    data = float(sum(number for number, _ in alike) % 2**52)
    return [data, float(_draws.divides()), *marks, *[0.0] * (SLOTS - len(marks))]


def judge(highest: list[float], lowest: list[float]) -> None:
    """Raise RuntimeError, or warn, where the ranks train on the same samples; alike on all."""
    first = not STATE.inputs_compared
    leave_inputs()
    if "batches" in STATE.unwatched:
        return
    if highest[0] == lowest[0] != 0:
        _same_data()
    changing = len(set(highest[2:]) - {0.0}) > 1
    if first and not highest[1] and changing and highest[2:] == lowest[2:]:
        raise RuntimeError(
            f"all {world_size()} ranks train on the same samples: what the model was given in its "
            "first passes is identical on all of them, so they do the work of one. Divide the "
            f"data, with {_REMEDY}; what the program draws by itself differs between ranks from "
            f"ddp.seed_ranks() on. {_LEAVE}"
        )


def leave_inputs() -> None:
    """The inputs have been compared: nothing more is looked at."""
    STATE.inputs_compared = True
    STATE.inputs.clear()
    while STATE.input_hooks:
        STATE.input_hooks.pop()()


def _same_data() -> None:
    names = " and ".join(
        f"{type(one._dataset).__name__} of {len(one._dataset)}" for one, _ in _draws.undivided()
    )
    if STATE.sure:
        raise RuntimeError(
            f"every rank trains on all of the data ({names}): an epoch is {world_size()} epochs, "
            f"or {world_size()} times the same. Divide them, with {_REMEDY}. {_LEAVE}"
        )
    if not STATE.warned:
        STATE.warned = True
        warnings.warn(
            f"every rank seems to train on all of the data ({names}), unless the data set gives "
            f"each rank other samples by itself. Divide them, with {_REMEDY}. {_LEAVE}",
            stacklevel=2,
        )


def likeness(data: Any) -> tuple[int, bool]:
    """A number that data sets have in common which look alike, from 1 to 2**52.

    And whether this is certain: as many elements were seen as there are samples.
    """
    digest = hashlib.blake2b(digest_size=8)
    seen: list[int] = []
    for part in _parts(data, seen, _DEEP):
        digest.update(part.encode("utf-8", "backslashreplace"))
    sure = any(length >= len(data) for length in seen)
    return int.from_bytes(digest.digest(), "big") % (2**52 - 1) + 1, sure


def _parts(value: Any, seen: list[int], depth: int) -> Iterator[str]:
    """What can be said of a value in words that are the same in all processes.

    The lengths of what holds elements go into ``seen``.
    """
    if value is None or isinstance(value, str | bytes | int | float | complex | PurePath):
        yield repr(value)
        return
    yield type(value).__qualname__
    if not depth:
        return
    if hasattr(value, "__array_interface__") or (
        isinstance(value, torch.Tensor) and value.layout == torch.strided
    ):
        yield str(tuple(value.shape))
        if value.ndim:
            seen.append(len(value))
            yield str(_some(_some(value).reshape(-1)).tolist())
    elif isinstance(value, list | tuple | range):
        seen.append(len(value))
        yield str(len(value))
        for part in _some(value):
            yield from _parts(part, seen, depth - 1)
    elif isinstance(value, Mapping):
        seen.append(len(value))
        for item in itertools.islice(value.items(), _SOME):
            yield from _parts(item, [], depth - 1)
    elif isinstance(value, Dataset) or (depth == _DEEP and hasattr(value, "__dict__")):
        for name, part in vars(value).items():
            yield name
            yield from _parts(part, seen, depth - 1)


def _some(row: Any) -> Any:
    """At most _SOME elements, at even distances."""
    return row[:: max(1, len(row) // _SOME)][:_SOME]
