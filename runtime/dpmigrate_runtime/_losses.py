"""Losses that are no mean over the samples of a rank's batch."""

from __future__ import annotations

from typing import Any

import torch

from ._meet import summed, total
from ._places import meeting
from ._state import wire, world_size


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
    if not counts:
        # nothing of the graph counts, and 0 * NaN is NaN: the gradients are 0, but every parameter must have its turn
        share = torch.nan_to_num(loss) * 0
    else:
        share = loss * (mine * world_size() / whole).to(loss.dtype)
    value: torch.Tensor = share + ((all_losses / whole).to(loss.dtype) - share.detach())
    return value


def batch_sum(value: Any) -> Any:
    """The sum over the global batch, made of ``value``, a sum over this rank's part of it: for losses that are a function of such sums, as a quotient
    or a root. A collective.

    A tensor of any shape, the same on every rank, or a number, which gives a number; integers and masks give the default floating dtype, other tensors
    their own. With s_r the rank's value and W ranks the result is S = s_1 + ... + s_W on every rank, and its derivative with respect to s_r is W. So the
    gradients of f(S), which DDP averages over the ranks, are f'(S) (ds_1 + ... + ds_W), those of one process with the whole batch.
    In one process, and where gradients are switched off, ``value`` itself.

    Raises RuntimeError on every rank where the ranks have different numbers of elements, but on GPUs, where the host does not wait for the others.
    """
    return _of_all(value, 1, "ddp.batch_sum")


def batch_mean(value: Any) -> Any:
    """The mean over the global batch, made of ``value``, a mean over this rank's part of it, of which every rank has equally many samples. A collective.

    As ``batch_sum``: the result is M = (m_1 + ... + m_W) / W on every rank, and its derivative with respect to m_r is 1.
    """
    return _of_all(value, world_size(), "ddp.batch_mean")


def _of_all(value: Any, parts: int, name: str) -> Any:
    """What the ranks have, added up and divided by a number, with the gradient of this rank's part, which DDP divides by the number of ranks."""
    world = world_size()
    if world == 1 or not torch.is_grad_enabled():
        return value
    if not isinstance(value, torch.Tensor):
        return _of_all(torch.as_tensor(value, dtype=torch.float64), parts, name).item()
    dtype = value.dtype if value.is_floating_point() else torch.get_default_dtype()
    mine = value.to(dtype) * (world / parts)
    flat = value.detach().to(wire(), torch.float64).reshape(-1)
    with meeting(name):
        whole = summed(flat, name)
    # the value of all ranks, exactly, and the gradient of the rank's own part
    made: torch.Tensor = (whole.reshape(value.shape) / parts).to(value.device, dtype) + (mine - mine.detach())
    return made
