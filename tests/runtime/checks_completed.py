"""Gradients of wrapped models of which backwards leave parameters out, against one process that sees all ranks' samples."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import dpmigrate_runtime as ddp
import torch
from dpmigrate_runtime._drift import watch_model
from dpmigrate_runtime._state import STATE
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import CheckpointFunction, checkpoint

from tests.runtime.checks import check

Loss = Callable[[nn.Module, torch.Tensor, int], Any]


class Parts(nn.Module):
    """Goes through the parts that it is told; ``never`` through none."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.never = (nn.Linear(4, 4) for _ in range(4))

    def forward(self, x: torch.Tensor, parts: str) -> torch.Tensor:
        for part in "abc":
            if part in parts:
                x = getattr(self, part)(x)
        return x


class Result:
    """An object of a class of its own."""

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value


class Slots:
    """One that shows nothing of what it holds."""

    __slots__ = ("value",)

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value


class Results(Parts):
    """Gives its result in an object."""

    kind: type[Any] = Result

    def forward(self, x: torch.Tensor, parts: str) -> Any:
        return {"one": [self.kind(super().forward(x, parts))]}


class Hidden(Results):
    """Gives its result in an object that nobody can look into."""

    kind = Slots


def square(x: torch.Tensor) -> torch.Tensor:
    return x.square().mean()


def within(out: Any) -> torch.Tensor:
    """The result of ``Results``."""
    result: torch.Tensor = out["one"][0].value
    return result


def inside(model: nn.Module) -> Any:
    """The model in a wrapper, or the bare one."""
    return ddp.unwrap(model)


def backwards(model: nn.Module, x: torch.Tensor, share: float, losses: Any) -> None:
    """Each loss, differentiated in turn."""
    for loss in losses if isinstance(losses, list) else [losses]:
        (loss * share).backward(retain_graph=True)


def compared(*steps: Loss, made: type[nn.Module] = Parts, search: bool = False, none: bool = True, thaws: bool = False) -> nn.Module:
    """Take steps with a wrapped model, and with its like in one process: the gradients are the same, and None where none is made.

    A step makes a loss, or several that are differentiated one after the other, of a model, a rank's samples and the rank.
    """
    torch.manual_seed(0)
    whole = made().double()
    watch_model(whole, compare=False)
    bare = copy.deepcopy(whole)
    model = ddp.wrap(bare, find_unused=search, thaws=thaws)
    ranks = range(ddp.world_size())
    pairs = [(one, torch.optim.AdamW(one.parameters(), lr=0.05, weight_decay=0.3)) for one in (whole, model)]
    for number, step in enumerate(steps):
        x = torch.randn(len(ranks), 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(number))
        for one, optimizer in pairs:
            optimizer.zero_grad(set_to_none=none)
            for rank in ranks if one is whole else [ddp.rank()]:
                # a step without a list makes one graph
                backwards(one, x, 1 / len(ranks) if one is whole else 1.0, step(one, x[rank], rank))
        for (name, a), b in zip(whole.named_parameters(), bare.parameters(), strict=True):
            assert (a.grad is None) == (b.grad is None), (number, name, a.grad, b.grad)
            if a.grad is not None and b.grad is not None:
                torch.testing.assert_close(b.grad.to_dense(), a.grad.to_dense(), rtol=1e-9, atol=1e-12, msg=f"step {number}: {name}")
        for _, optimizer in pairs:
            optimizer.step()
    for (name, a), b in zip(whole.named_parameters(), bare.parameters(), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-12, msg=name)
    return model


def through(*parts: str) -> list[Loss]:
    """A step for each of these: one name of parts for all ranks, or one for each, between commas."""

    def step(told: str) -> Loss:
        by_rank = told.split(",")
        return lambda model, x, rank: square(model(x, by_rank[rank % len(by_rank)]))

    return [step(told) for told in parts]


@check
def completed_always() -> None:
    for search in (False, True):
        compared(*through("ab", "ab", "ab"), search=search)


@check
def completed_in_some_steps() -> None:
    for search in (False, True):
        compared(*through("abc", "ab", "ac", "a", "bc", "abc", "b"), search=search)
        compared(*through("abc", "ab", "ac", "a"), search=search, none=False)


@check
def completed_on_some_ranks() -> None:
    for search in (False, True):
        compared(*through("ab,ac", "abc,a", "a,ac", "c,ab", "ab"), search=search)


@check
def completed_after_a_late_change() -> None:
    class Used(Parts):
        def __init__(self) -> None:
            super().__init__()
            del self.never

    compared(*through(*["abc"] * 70, "ab", "ac,ab", "abc"), made=Used)


@check
def completed_beside_forward() -> None:
    for search in (False, True):
        for made, value in ((Parts, lambda out: out), (Results, within), (Hidden, within)):

            def loss(model: nn.Module, x: torch.Tensor, rank: int, value: Callable[[Any], torch.Tensor] = value) -> torch.Tensor:
                weight: torch.Tensor = inside(model).c.weight
                return square(value(model(x, "ab"))) + weight.square().sum()

            compared(loss, loss, made=made, search=search)


@check
def completed_after_several_forwards() -> None:
    def both(model: nn.Module, x: torch.Tensor, rank: int) -> torch.Tensor:
        return square(model(x, "ab")) + square(model(x + 1, "ac"))

    def one_by_one(model: nn.Module, x: torch.Tensor, rank: int) -> list[torch.Tensor]:
        return [square(model(x, "ab")), square(model(x + 1, "ac"))]

    def the_first(model: nn.Module, x: torch.Tensor, rank: int) -> torch.Tensor:
        first, _ = model(x, "ab"), model(x, "ac")
        return square(first)

    for search in (False, True):
        compared(one_by_one, both, the_first, one_by_one, search=search)


@check
def completed_in_each_of_several_backwards() -> None:
    def twice(model: nn.Module, x: torch.Tensor, rank: int) -> list[torch.Tensor]:
        out = square(model(x, "ab"))
        return [out, out]

    def by_parts(model: nn.Module, x: torch.Tensor, rank: int) -> list[torch.Tensor]:
        hidden = model(x, "a")
        inner = inside(model)
        return [square(inner.b(hidden)), square(inner.c(hidden.detach())), square(inner.c(hidden))]

    for search in (False, True):
        compared(twice, *through("ac"), twice, by_parts, search=search)


@check
def completed_in_several_backwards_of_objects() -> None:
    """The second one is averaged whatever forward returns."""

    def one_by_one(model: nn.Module, x: torch.Tensor, rank: int) -> list[torch.Tensor]:
        first, second = square(within(model(x, "ab"))), square(within(model(x + 1, "ac")))
        return [first, second, first]

    for made in (Results, Hidden):
        for search in (False, True):
            compared(one_by_one, one_by_one, made=made, search=search)


@check
def completed_with_penalties() -> None:
    def loss(model: nn.Module, x: torch.Tensor, rank: int) -> torch.Tensor:
        x = x.clone().requires_grad_()
        out = model(x, "ab").tanh()
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        weights = torch.autograd.grad(square(out), list(inside(model).a.parameters()), retain_graph=True)
        return square(slope) + square(out) + torch.stack([square(weight) for weight in weights]).sum()

    for search in (False, True):
        compared(loss, loss, search=search)


@check
def completed_over_windows() -> None:
    """A part that only the micro batches without an exchange have used."""
    if ddp.world_size() == 1:
        return
    for search in (False, True):
        torch.manual_seed(0)
        whole = Parts().double()
        bare = copy.deepcopy(whole)
        model = ddp.wrap(bare, find_unused=search)
        x = torch.randn(ddp.world_size(), 3, 4, dtype=torch.float64)
        for parts in (("ab", "ac"), ("ac", "a"), ("a", "ab"), ("ab", "ab")):
            whole.zero_grad()
            model.zero_grad()
            for number, part in enumerate(parts):
                for each in x:
                    (square(whole(each + number, part)) / len(x)).backward()
                with ddp.accumulate(model, sync=number == 1):
                    square(model(x[ddp.rank()] + number, part)).backward()
            for (name, a), b in zip(whole.named_parameters(), bare.parameters(), strict=True):
                assert (a.grad is None) == (b.grad is None), (parts, name)
                if a.grad is not None and b.grad is not None:
                    torch.testing.assert_close(b.grad, a.grad, rtol=1e-9, atol=1e-12, msg=f"{parts}: {name}")


@check
def completed_with_recomputed_parts() -> None:
    def loss(model: nn.Module, x: torch.Tensor, rank: int) -> torch.Tensor:
        return square(model(x.requires_grad_(), "ab"))

    for reentrant in (True, False):

        class Recomputed(Parts):
            def forward(self, x: torch.Tensor, parts: str, reentrant: bool = reentrant) -> torch.Tensor:
                inner = checkpoint(self.c, checkpoint(self.b, x, use_reentrant=reentrant), use_reentrant=reentrant)
                out: torch.Tensor = self.a(inner)
                return out

        for search in (False, True):
            compared(loss, loss, made=Recomputed, search=search)
            assert STATE.recomputes == (reentrant and ddp.world_size() > 1)
            STATE.recomputes = False


@check
def completed_in_two_models_at_once() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Parts(), Parts()

    for search in (False, True):
        torch.manual_seed(0)
        whole = Pair().double()
        bare = copy.deepcopy(whole)
        first, second = ddp.wrap(bare.first, find_unused=search), ddp.wrap(bare.second, find_unused=search)
        x = torch.randn(ddp.world_size(), 3, 4, dtype=torch.float64)
        for patterns in ((("ab", "ac"), ("ac", "a")), (("a", "c"), ("abc", "b")), (("abc", "abc"), ("b", "b"))):
            for one in (whole, bare):
                one.zero_grad()
            told = [patterns[rank % 2] for rank in range(len(x))]
            for (a, b), each in zip(told, x, strict=True):
                (square(whole.second(whole.first(each, a), b)) / len(x)).backward()
            square(second(first(x[ddp.rank()], told[ddp.rank()][0]), told[ddp.rank()][1])).backward()
            for (name, p), q in zip(whole.named_parameters(), bare.named_parameters(), strict=True):
                assert (p.grad is None) == (q[1].grad is None), (patterns, name)
                if p.grad is not None and q[1].grad is not None:
                    torch.testing.assert_close(q[1].grad, p.grad, rtol=1e-9, atol=1e-12, msg=f"{patterns}: {name}")


@check
def completed_where_parts_are_frozen_and_thawed() -> None:
    def frozen(yes: bool) -> Loss:
        def loss(model: nn.Module, x: torch.Tensor, rank: int) -> torch.Tensor:
            inside(model).b.requires_grad_(not yes)
            return square(model(x, "ab"))

        return loss

    class Frozen(Parts):
        def __init__(self) -> None:
            super().__init__()
            self.b.requires_grad_(False)

    compared(frozen(False), frozen(True), frozen(False), none=True)
    compared(frozen(True), frozen(False), frozen(True), made=Frozen, thaws=True)


@check
def completed_where_a_gradient_is_undefined() -> None:
    class Constant(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> Any:
            return grads[0] * 2, None

    def loss(model: nn.Module, x: torch.Tensor, rank: int) -> torch.Tensor:
        return square(Constant.apply(model(x, "ab"), inside(model).never.weight))

    for search in (False, True):
        compared(loss, loss, search=search)


@check
def completed_after_a_backward_of_one_rank() -> None:
    """What rank 0 alone differentiates past the wrapper is its own affair."""

    def look(model: nn.Module, x: torch.Tensor, rank: int) -> torch.Tensor:
        if isinstance(model, DistributedDataParallel) and ddp.is_main():
            square(inside(model)(x, "ac")).backward()
            model.zero_grad()
        return square(model(x, "ab"))

    compared(look, look)


@check
def completed_for_copies_and_afterwards() -> None:
    """A copy of a wrapper is left alone, and nothing stays of a wrapper that is gone."""
    model = compared(*through("ab"))
    if ddp.world_size() == 1:
        return
    copied: Any = copy.deepcopy(model)
    assert model in STATE.completed and copied not in STATE.completed
    square(copied(torch.ones(2, 4, dtype=torch.float64), "abc") + sum(p.sum() for p in copied.module.never.parameters())).backward()
    bare, gone = inside(model), weakref.ref(STATE.completed[model])
    del model, copied
    gc.collect()
    assert gone() is None
    square(bare(torch.ones(2, 4, dtype=torch.float64), "abc")).backward()


@check
def completed_where_the_wrapper_is_compiled() -> None:
    """torch runs its hooks in a compiled wrapper, too."""
    model = ddp.wrap(Parts())
    compiled = torch.compile(model, backend="eager")
    for parts in ("ab", "ac", "a"):
        model.zero_grad()
        square(compiled(torch.ones(2, 4), parts)).backward()
        assert [name for name in "abc" if getattr(inside(model), name).weight.grad is not None] == list(parts)


@check
def recomputing_is_noted_where_the_class_was() -> None:
    compared(*through("ab"))
    compared(*through("ab"))
    noted = CheckpointFunction.forward.__module__ == "dpmigrate_runtime._nets"
    assert noted == (ddp.world_size() > 1)
