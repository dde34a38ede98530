"""Wrapping a model in DistributedDataParallel, and getting the bare model and its plain keys back."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ._batches import watch_inputs
from ._completed import complete_backwards
from ._drift import watch_model
from ._meet import call, rows
from ._nets import cast_nets, keep_versions
from ._places import meeting
from ._seeds import agree_on_seeds
from ._state import STATE, alone, device, wire

_PREFIXES = ("module.", "_orig_mod.")


class Single(nn.Module):
    """DistributedDataParallel's face without its work: ``.module``, ``no_sync()`` and keys with ``module.``, for one process.

    A real DDP of one process costs 0.27 ms a step, 12% of a 2 ms step.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        # as DDP, which does not switch the mode of the model it is given
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def no_sync(self) -> AbstractContextManager[None]:
        """Nothing is synchronised here anyway."""
        return nullcontext()


def wrap(
    model: nn.Module,
    sync_bn: bool = False,
    find_unused: bool = False,
    compare: bool = True,
    thaws: bool = False,
    move_inputs: bool = False,
    again: bool = False,
) -> nn.Module:
    """``model`` in DistributedDataParallel; in one process, or without a trainable parameter, in a stand-in with ``.module``.

    A wrapped model is returned as it is, and nn.DataParallel is taken off first. The model stays where its parameters are, so it has to be
    moved before: one that the program keeps on the CPU of a machine with GPUs trains there, over gloo. ``sync_bn`` turns BatchNorm layers into
    SyncBatchNorm, which needs CUDA: on the CPU a warning is given instead. Parameters that a backward leaves out count as zero on this rank,
    and keep no gradient where no rank has used them, as in one process. ``find_unused`` says that there are such steps: autograd is then asked
    for them when a backward begins, so that gradients are exchanged while it runs; without it those steps exchange them at the end.
    Every now and then a step of the optimizer (the 2nd, 4th, 8th, ..., then every 512th) compares some of the ranks' weights, which nothing
    else would: they part where something of one rank reaches them; and what the ranks train on (``setup``). ``compare=False`` is for programs
    that mean their weights to part (local SGD, ZeroRedundancyOptimizer): nothing is compared after the steps of this model.
    ``thaws`` is for models of which parts are frozen and thawed later: DDP is shown all parameters as trained ones, and those that are frozen
    in a step are left out of it as with ``find_unused``.
    Inputs stay where the program has put them: lengths that ``pack_padded_sequence`` wants on the CPU go to the model as they are.
    ``again`` is for a model that makes its wrapper in a method of its own, which is called many times: the wrapper that the first call
    has made is returned, unless a parameter wants gradients that wanted none then. All ranks have to call it equally often.
    ``move_inputs`` copies the tensors in them to the GPU of the rank, as nn.DataParallel did (the ``device_ids`` of DDP).
    Errors are those of DDP, and RuntimeError where the model is on another rank's GPU, where samplers have been given other seeds on other
    ranks, or, later, where a comparison fails.
    (torch.nn.parallel.DistributedDataParallel)
    """
    if isinstance(getattr(model, "_orig_mod", model), DistributedDataParallel | Single):
        return model
    if isinstance(model, nn.DataParallel):
        model = model.module
    if alone():
        return Single(model)
    place = _place(model)
    options = (place, sync_bn, find_unused, compare, thaws, move_inputs)
    if again and (kept := _kept(model, options)) is not None:
        return kept
    whole = model
    if sync_bn:
        model = _synchronise(model, place)
    cast_nets()
    with _thawed(model) if thaws else nullcontext():
        wrapped = _wrapped(model, place, find_unused or thaws, compare, move_inputs)
    if again:
        vars(whole)[_AGAIN] = _Kept(wrapped, options)
    return wrapped


#: where a model keeps its wrapper: beside its parts, so that it is none of them
_AGAIN = "_ddp_wrapper"


class _Kept:
    """A wrapper in the model that it wraps, which lives as long as that does, on all ranks alike. In copies and files of the model it is empty."""

    def __init__(self, wrapped: nn.Module, options: tuple[Any, ...]) -> None:
        self.wrapped = wrapped
        self.options = options

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[()]]:
        return dict, ()


def _kept(model: nn.Module, options: tuple[Any, ...]) -> nn.Module | None:
    """The wrapper that ``wrap(…, again=True)`` has made of this model, where it serves the model as it is now."""
    kept = vars(model).get(_AGAIN)
    if not isinstance(kept, _Kept) or kept.options != options:
        return None
    completed = STATE.completed.get(kept.wrapped)
    if completed is None:  # of a process group that is gone, or without a trainable parameter
        return None
    known = set(map(id, completed.parameters))
    return kept.wrapped if all(id(p) in known for p in model.parameters() if p.requires_grad) else None


def _wrapped(model: nn.Module, place: torch.device, find_unused: bool, compare: bool, move_inputs: bool) -> nn.Module:
    """The wrapper of a model that is where it trains."""
    if not any(parameter.requires_grad for parameter in model.parameters()):
        watch_model(model, compare)
        return Single(model)
    with meeting("ddp.wrap"):
        agree_on_seeds()
        where: dict[str, Any] = {"process_group": _group_for_cpu()} if place.type != "cuda" else {"device_ids": [place.index]} if move_inputs else {}
        keep_versions()
        _in_rows(model)
        _leave_out(model)
        wrapped = DistributedDataParallel(model, **where)
    STATE.wrapped.add(wrapped)
    complete_backwards(wrapped, find_unused)
    watch_model(model, compare)
    if compare:
        watch_inputs(wrapped)
    return wrapped


def _in_rows(model: nn.Module) -> None:
    """Buffers that lie in memory row by row, each element in a place of its own.

    DDP copies rank 0's buffers into the model, and cannot write to one that was expanded, nor, where it is the only one of its kind, to one of which
    an axis of length 1 has another stride (``torch.zeros(1, 9, 4).transpose(0, 1)``): pytorch/pytorch#68407.
    """
    for buffer in model.buffers():
        if buffer.layout is torch.strided and buffer.stride() != torch.empty(buffer.shape, device="meta").stride():
            buffer.data = buffer.detach().clone(memory_format=torch.contiguous_format)


#: what both gloo and NCCL can send
_SENT = frozenset({
    torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool, torch.complex64,
    torch.complex128,
})  # fmt: skip


def _leave_out(model: nn.Module) -> None:
    """DDP copies rank 0's buffers, and stops at one that is sparse or of a type that is not sent, such as int16. Those stay each rank's own, as they
    were made: most are constants, such as an adjacency. One that forward changes is not copied before each forward; ``sync_buffers`` copies those
    that are not sparse before an evaluation.
    """
    unsent = [name for name, buffer in model.named_buffers() if buffer.layout is not torch.strided or buffer.dtype not in _SENT]
    if unsent:
        known = getattr(model, "_ddp_params_and_buffers_to_ignore", ())
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, [*known, *unsent])  # type: ignore[no-untyped-call]


@contextmanager
def _thawed(model: nn.Module) -> Iterator[None]:
    """All parameters want gradients: DDP keeps hooks on those that do when it is built, and on no others."""
    every = (p for p in model.parameters() if p.is_floating_point() or p.is_complex())
    frozen = [p for p in every if not p.requires_grad]
    try:
        for parameter in frozen:
            parameter.requires_grad_(True)
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(False)


def _place(model: nn.Module) -> torch.device:
    """Where the model is: on this rank's GPU, or on the CPU."""
    found = {parameter.device for parameter in model.parameters() if parameter.is_cuda}
    if not found:
        return torch.device("cpu")
    own = device()
    if found != {own}:
        names = ", ".join(sorted(map(str, found)))
        raise RuntimeError(
            f"ddp.wrap: the model is on {names}, but the GPU of this rank is {own}: name the device without a number ('cuda'), "
            "also in options and files of settings, or move the model to ddp.device()"
        )
    return own


def _group_for_cpu() -> dist.ProcessGroup | None:
    """The group that sends CPU tensors: the program's own (None), or one of gloo beside NCCL, which cannot."""
    if dist.get_backend() != "nccl":
        return None
    if STATE.cpu_group is None:
        STATE.cpu_group = dist.new_group(backend="gloo", timeout=timedelta(seconds=STATE.timeout))
    return STATE.cpu_group


def _synchronise(model: nn.Module, place: torch.device) -> nn.Module:
    if place.type == "cuda":
        converted: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
        return converted
    warnings.warn("sync_bn: SyncBatchNorm needs CUDA; each rank normalises over its own part of the batch", stacklevel=3)
    return model


def method(model: Any, name: str) -> Callable[..., Any]:
    """A method or part of the model, such as ``"loss"`` or ``"encoder.conv"``, run by the wrapper's ``forward`` so that its gradients are reduced.

    For training passes that do not call the model itself: DDP prepares the reduction in its own forward, which runs the method in the place of the model's.
    Without gradients, in one process and for a bare model it is the method itself. Raises AttributeError where there is none of that name.
    (torch.nn.parallel.DistributedDataParallel, "forward"; the same is known as forward redirection.)
    """
    wrapper = getattr(model, "_orig_mod", model)
    inner = unwrap(model)
    target = functools.reduce(getattr, name.split("."), inner)
    if not isinstance(wrapper, DistributedDataParallel):
        return target  # type: ignore[no-any-return]

    def redirected(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return target(*args, **kwargs)
        kept = vars(inner).get("forward")

        def put_back() -> None:
            if kept is None:
                vars(inner).pop("forward", None)
            else:
                vars(inner)["forward"] = kept

        def run(*args: Any, **kwargs: Any) -> Any:
            # the method may call the model itself
            put_back()
            return target(*args, **kwargs)

        vars(inner)["forward"] = run
        try:
            return wrapper(*args, **kwargs)
        finally:
            put_back()

    return redirected


@contextmanager
def accumulate(*models: Any, sync: bool) -> Iterator[None]:
    """Forward and backward of one micro batch: gradients are averaged over the ranks if ``sync``, else each rank adds its own up.

    The first averaged backward after that averages all that has been added up, so the result is that of averaging each time, with one exchange for a window.
    ``sync`` must be true on every rank or on none, and for the last backward before the gradients are used. Forward belongs inside: DDP decides there.
    (torch.nn.parallel.DistributedDataParallel, ``no_sync``)
    """
    with ExitStack() as waiting:
        for model in models:
            wrapper = getattr(model, "_orig_mod", model)
            if not sync and isinstance(wrapper, DistributedDataParallel):
                waiting.enter_context(wrapper.no_sync())
        yield


def unwrap(model: Any) -> Any:
    """The bare model under DistributedDataParallel, nn.DataParallel, ``wrap``'s stand-in and torch.compile, in any nesting."""
    while True:
        if isinstance(model, DistributedDataParallel | nn.DataParallel | Single):
            model = model.module
        elif isinstance(model, nn.Module) and "_orig_mod" in model._modules:
            model = model._orig_mod
        else:
            return model


def clean_keys(state_dict: Any) -> Any:
    """``state_dict`` without the ``module.`` and ``_orig_mod.`` that wrappers put before every key; for loading into a bare model.

    Only a prefix that *all* keys carry is taken off (a wrapper's always is), so a model with a part of its own named ``module``
    keeps its keys; prefixes further inside stay too. Type, order and ``_metadata`` are kept. What is no dict, or has nothing to
    take off, is returned unchanged.
    """
    if not isinstance(state_dict, dict):
        return state_dict
    keys, rounds = list(state_dict), 0
    while keys and all(isinstance(key, str) and key.startswith(_PREFIXES) for key in keys):
        shorter = [_strip(key) for key in keys]
        if len(set(shorter)) < len(keys):
            break
        keys, rounds = shorter, rounds + 1
    if not rounds:
        return state_dict
    result = type(state_dict)(zip(keys, state_dict.values(), strict=True))
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        # by module: the wrapper's own entry "" comes first and is replaced by that of the bare model, "module"
        result._metadata = type(metadata)((_strip(f"{key}.", rounds)[:-1], value) for key, value in metadata.items())  # type: ignore[attr-defined]
    return result


def _strip(key: str, rounds: int = 1) -> str:
    for _ in range(rounds):
        key = next((key.removeprefix(prefix) for prefix in _PREFIXES if key.startswith(prefix)), key)
    return key


def sync_buffers(*models: Any) -> None:
    """Copy rank 0's buffers (running means, counters) to every rank, in one broadcast. A collective.

    Needed before an evaluation through the bare model: each rank's BatchNorm has seen its own shard only (3.89 against 2.49 for
    the same input). Sparse buffers are left out, as in ``wrap``. Nothing happens in one process or when no model has buffers.
    """
    if alone():
        return
    buffers = [buffer for model in models for buffer in unwrap(model).buffers() if buffer.layout is torch.strided]
    if not buffers:
        return
    # as bytes: one message for all types, including those that gloo cannot name (int16)
    parts = [buffer.detach().to(wire()).contiguous().reshape(-1).view(torch.uint8) for buffer in buffers]
    packed = torch.cat(parts)
    with meeting("ddp.sync_buffers"):
        sizes = [size for (size,) in rows(len(packed))]
        if len(set(sizes)) > 1:
            raise ValueError(f"sync_buffers: the buffers have different sizes on the ranks, in bytes: {sizes}")
        call(lambda: dist.broadcast(packed, src=0, group=STATE.group))
    with torch.no_grad():
        for buffer, part in zip(buffers, torch.split(packed, [len(part) for part in parts]), strict=True):
            # clone: a view into the packed bytes need not be aligned for the buffer's type
            buffer.copy_(part.clone().view(buffer.dtype).reshape(buffer.shape))
