"""Losses that are no mean over the samples of a rank's batch."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from ._meet import call, rows, summed, total
from ._places import meeting
from ._state import STATE, rank, wire, world_size


def sum_loss(loss: torch.Tensor) -> torch.Tensor:
    """``loss`` itself, with a gradient that DDP's averaging over the ranks turns into their sum: for a loss that sums over the batch.

    Any shape. Not a collective. DDP divides gradients by the number of ranks, so such a loss trains W times too slowly without it.
    """
    world = world_size()
    if world == 1 or not loss.requires_grad:
        return loss
    # a view has a place of its own in the graph: other uses of the loss keep their gradient, and its value stays exact
    same = loss.view_as(loss)
    same.register_hook(lambda gradient: gradient * world)  # type: ignore[no-untyped-call]
    return same


def sum_term(value: torch.Tensor) -> torch.Tensor:
    """``value``, a sum over the rank's part of the batch, as a term of a loss beside terms that are means: W times as large, so that the mean over the
    ranks, which DDP takes of the gradients, is the sum over the global batch, and that of the values as well.

    Any shape. Not a collective. Where gradients are switched off, as in an evaluation of whole batches, ``value`` itself.
    """
    world = world_size()
    return value * world if world > 1 and torch.is_grad_enabled() else value


def mean_count(count: Any) -> Any:
    """``count`` averaged over the ranks: what a rank's sum is divided by, so that DDP's average of the quotients is the mean over the global batch.

    ``count`` is a number or a tensor of one element (of masked places, of valid targets), of which no gradient is wanted; a tensor gives a tensor of its
    shape. A collective of one number; where gradients are switched off, as in an evaluation, nothing is exchanged and ``count`` comes back.
    """
    if world_size() == 1 or not torch.is_grad_enabled():
        return count
    mine = torch.as_tensor(count).detach()
    if mine.numel() != 1:
        raise ValueError(f"mean_count() takes one number, not shape {tuple(mine.shape)}")
    with meeting("ddp.mean_count"):
        mean = total(mine.reshape(1).to(wire(), torch.float64)) / world_size()
    if not isinstance(count, torch.Tensor):
        return mean.item()
    return mean.reshape(mine.shape).to(mine.device, mine.dtype if mine.is_floating_point() else torch.get_default_dtype())


def weight_of(target: torch.Tensor, weight: torch.Tensor | None = None, ignore_index: int = -100) -> torch.Tensor:
    """What torch's cross entropy over ``target`` is divided by: the class weights of the targets that count, or their number.

    ``target`` holds class indices of any shape; class probabilities (floating) of shape (N, C, ...) count one for each of their N x ... places
    (torch.nn.CrossEntropyLoss). Returns a 0-dim tensor on the target's device, in float64 where weights are summed.
    """
    if target.is_floating_point():
        places = target.numel() // (target.shape[1] if target.dim() > 1 else target.shape[0])
        return torch.tensor(places, device=target.device)
    valid = target != ignore_index
    if weight is None:
        return valid.sum()
    return weight.detach().double()[target[valid]].sum()


def weighted_mean(loss: torch.Tensor, weight: Any) -> torch.Tensor:
    """The mean over what all ranks have, made of this rank's mean and what that was divided by (a number or a 0-dim tensor). A collective.

    The value is that of the global batch on every rank; the gradients that DDP averages are those of the global batch. A rank without anything that
    counts (weight 0, its mean is NaN) adds nothing. Exchanges two numbers. In one process, and where gradients are switched off, the loss itself.
    """
    if world_size() == 1 or not torch.is_grad_enabled():
        return loss
    mine = torch.as_tensor(weight, device=loss.device).detach().double()
    if loss.numel() != 1 or mine.numel() != 1:
        raise ValueError(f"weighted_mean() takes one loss and one weight, not shapes {tuple(loss.shape)} and {tuple(mine.shape)}")
    counts = mine != 0
    # one exchange, whose two numbers need no word on their shape
    sums = torch.stack([torch.where(counts, loss.detach().double() * mine, 0.0).reshape(()), mine.reshape(())]).to(wire())
    with meeting("ddp.weighted_mean"):
        all_losses, whole = (part.to(loss.device) for part in total(sums))
    # the same to the last bit on every rank, so that tests by it fall out alike
    value = (all_losses / whole).to(loss.dtype).reshape(loss.shape)
    if not counts:
        # nothing of the graph counts, and 0 * NaN is NaN: the gradients are 0, but every parameter must have its turn
        return _whole(torch.nan_to_num(loss), value, 0.0)
    return _whole(loss, value, (mine * world_size() / whole).to(loss.dtype))


_Criterion = TypeVar("_Criterion", bound=torch.nn.Module)


def weighted_loss(criterion: _Criterion) -> _Criterion:
    """``criterion`` itself, whose mean over class weights or valid targets is that over the global batch from now on: what each of its calls gives goes
    through ``weighted_mean``. For a variable that may hold another loss as well, which has no weights to be read where it is called.

    Of torch's losses these are CrossEntropyLoss and NLLLoss, which stay what they are: a forward hook is all that they get, and copies and files of them
    keep it. The others of torch come back as they are. Not a collective; each call is one, of two numbers, but in one process, where gradients are
    switched off, and where nothing or a sum is taken over the targets.
    """
    if isinstance(criterion, torch.nn.CrossEntropyLoss | torch.nn.NLLLoss):
        criterion.register_forward_hook(_over_weights, with_kwargs=True)
    elif type(criterion).__module__ != "torch.nn.modules.loss":
        raise TypeError(f"weighted_loss() takes a loss of torch, not {type(criterion).__name__}")
    return criterion


def _over_weights(criterion: Any, args: tuple[Any, ...], given: dict[str, Any], loss: torch.Tensor) -> torch.Tensor:
    """What a call of the criterion gives, put together over the ranks. At module level, so that the criterion can be pickled."""
    if world_size() == 1 or not torch.is_grad_enabled() or criterion.reduction != "mean":
        return loss
    target = given["target"] if "target" in given else args[-1]
    return weighted_mean(loss, weight_of(target, criterion.weight, criterion.ignore_index))


def batch_sum(value: Any) -> Any:
    """The sum over the global batch, made of ``value``, a sum over this rank's part of it: for losses that are a function of such sums, as a quotient
    or a root. A collective.

    A tensor of any shape, the same on every rank, gives one of its dtype (bool: int64), a number one of its kind. With s_r the rank's value and W ranks
    the result is S = s_1 + ... + s_W on every rank, and its derivative with respect to s_r is W. So the gradients of f(S), which DDP averages over the
    ranks, are f'(S) (ds_1 + ... + ds_W), those of one process with the whole batch. In one process, and where gradients are switched off, ``value`` itself.

    Raises RuntimeError on every rank where the ranks have different numbers of elements, but on GPUs, where the host does not wait for the others.
    """
    return _of_all(value, 1, "ddp.batch_sum")


def batch_mean(value: Any) -> Any:
    """The mean over the global batch, made of ``value``, a mean over this rank's part of it, of which every rank has equally many samples. A collective.

    As ``batch_sum``: the result is M = (m_1 + ... + m_W) / W on every rank, and its derivative with respect to m_r is 1. The mean of integers has the
    default floating dtype.
    """
    return _of_all(value, world_size(), "ddp.batch_mean")


def batch_rows(value: torch.Tensor, dim: int = 0, segments: int = 1, each: int = 1) -> torch.Tensor:
    """The samples of the global batch along ``dim``, made of ``value``, those of this rank's part of it: for losses that compare samples with each
    other. A collective.

    The order is that of the global batch, of which rank r has the samples r, r + W, r + 2W, ... (``DistributedSampler``, ``distribute``); ``each`` rows
    that lie together belong to one sample. ``segments`` tensors that were put end to end (two views of each sample) are each put together by
    themselves, and then end to end again. Everywhere but along ``dim`` the ranks have one form.

    The gradient of the rank's own rows is W times that which comes back, and what comes back for those of other ranks is dropped: where every rank makes
    the same loss of all rows, the gradients that DDP averages are those of one process. In one process, and where gradients are switched off, ``value``
    itself.

    Raises ValueError where the rank's rows cannot be parted into so many segments of samples.
    """
    world, mine = world_size(), rank()
    if world == 1 or not torch.is_grad_enabled():
        return value
    if value.shape[dim] % (segments * each):
        raise ValueError(f"batch_rows(): {value.shape[dim]} rows along dim {dim} are no {segments} segments of {each} for each sample")
    first = value.transpose(0, dim).contiguous() if dim else value.contiguous()
    with meeting("ddp.batch_rows"):
        counts = [n for (n,) in rows(len(first))]
        # as bytes: neither gloo nor NCCL sends every type, int16 least of all
        sent = first.detach().to(wire()).reshape(-1).view(torch.uint8)
        row = math.prod(first.shape[1:]) * first.element_size()
        parts = [torch.empty(n * row, dtype=torch.uint8, device=sent.device) for n in counts]
        # gloo gathers tensors of one size alone
        call(lambda: [dist.broadcast(part.copy_(sent) if i == mine else part, src=i, group=STATE.group) for i, part in enumerate(parts)])
    ranks = [part.view(first.dtype).reshape(n, *first.shape[1:]).to(first.device) for n, part in zip(counts, parts, strict=True)]
    ranks[mine] = _whole(first, first.detach(), world) if first.requires_grad else first
    made = torch.cat(ranks)[_places(counts, segments, each).to(first.device)]
    return made.transpose(0, dim) if dim else made


def _places(counts: list[int], segments: int, each: int) -> torch.Tensor:
    """Where the rows of the global batch are in what the ranks have, end to end; shape (sum of counts,)."""
    keys = []
    for r, count in enumerate(counts):
        samples = count // (segments * each)
        segment, row = torch.arange(count).reshape(segments, -1), torch.arange(samples * each) // each
        keys.append((segment // max(samples * each, 1) * max(counts) + row).flatten() * len(counts) + r)
    return torch.argsort(torch.cat(keys), stable=True)


def _of_all(value: Any, parts: int, name: str) -> Any:
    """What the ranks have, added up and divided by a number, with the gradient of this rank's part, which DDP divides by the number of ranks."""
    world = world_size()
    if world == 1 or not torch.is_grad_enabled():
        return value
    if not isinstance(value, torch.Tensor):
        made = torch.as_tensor(value)
        return _of_all(made.double() if made.is_floating_point() else made, parts, name).item()
    dtype = value.dtype
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype() if parts > 1 else torch.int64 if dtype == torch.bool else dtype
    flat = value.detach().to(wire(), torch.float64).reshape(-1)
    with meeting(name):
        whole = summed(flat, name)
    result = (whole.reshape(value.shape) / parts).to(value.device, dtype)
    return _whole(value, result, world / parts) if value.requires_grad else result


def _whole(mine: torch.Tensor, whole: torch.Tensor, times: float | torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = _Whole.apply(mine, whole, times)  # type: ignore[no-untyped-call]
    return made


class _Whole(torch.autograd.Function):
    """What all ranks have, with a number of times the gradient of this rank's part."""

    @staticmethod
    def forward(ctx: Any, mine: torch.Tensor, whole: torch.Tensor, times: float | torch.Tensor) -> torch.Tensor:
        ctx.times = times
        return whole.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * ctx.times, None, None
