"""What migrated programs call: every function of the runtime has a row, with the effect that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate.contract import COLLECTIVE, NAMES
from dpmigrate.execution.engine import Execution
from dpmigrate.execution.placements import Kind
from dpmigrate.execution.trace import Trace
from dpmigrate.execution.values import placement_of
from dpmigrate.library.registry import FUNCTIONS
from dpmigrate.library.tables import Tables
from dpmigrate.linking import link
from dpmigrate.source import Source, parse

_PROGRAM = """
import torch
import dpmigrate_runtime as ddp
from torch.utils.data import DataLoader, TensorDataset
w = torch.nn.Parameter(torch.ones(4))
loader = {loader}
for x, t in loader:
    found = {expression}
"""
_LOADER = "DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8)), batch_size=4)"


def executed(expression: str, loader: str = _LOADER) -> tuple[str, Trace]:
    text = _PROGRAM.format(expression=expression, loader=loader)
    if "rand" in expression or "drop" in expression:
        text = text.replace("loader =", "ddp.seed_ranks()\nloader =", 1)
    source = parse(text.encode(), "program.py")
    assert isinstance(source, Source)
    execution = Execution(link(Path("program.py"), source), Tables()).run()
    module = next(o for o in execution.heap.objects.values() if o.kind == "pymodule")
    held = execution.heap.read((module.number, "found"))
    assert held
    return str(placement_of(execution.bound(held))), execution.trace


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_function_of_the_runtime_has_a_row(name: str) -> None:
    assert f"dpmigrate_runtime.{name}" in FUNCTIONS


@pytest.mark.parametrize(
    ("expression", "placement"),
    [
        ("x.sum()", "partial(sum)"),
        ("ddp.sum_loss(x.sum())", "partial(mean)"),
        ("ddp.sum_loss(x.mean())", "unknown"),
        ("ddp.sum_term(x.sum())", "partial(mean)"),
        ("ddp.sum_term(x.sum()) + x.mean()", "partial(mean)"),
        ("ddp.sum_term(x.mean())", "unknown"),
        ("ddp.sum_term(torch.ones(1))", "unknown"),
        ("ddp.sum_all(x.sum().item())", "uniform"),
        ("ddp.mean_all(x.mean().item())", "uniform"),
        ("ddp.any_rank(x.max() > 1)", "uniform"),
        ("ddp.from_main(x)", "uniform"),
        ("ddp.main_settings(x)", "uniform"),
        ("x.sum() / ddp.mean_count((x * w).sum())", "unknown"),
        ("ddp.batch_sum(x.sum())", "uniform"),
        ("ddp.batch_sum(x.mean())", "unknown"),
        ("ddp.batch_mean(x.mean())", "uniform"),
        ("ddp.batch_mean(x.sum())", "unknown"),
        ("ddp.batch_sum((x * w).sum(0)) / (ddp.batch_sum(len(x)) + 1)", "partial(mean)"),
        ("torch.sqrt(ddp.batch_mean((x * w).mean()))", "partial(mean)"),
        ("ddp.batch_sum((x * w).sum()) / x.sum()", "ratio"),
        ("(x - ddp.batch_mean((x * w).mean())).pow(2).mean()", "per rank"),
        ("(x - ddp.batch_mean(x.mean())).pow(2).mean()", "partial(mean)"),
        ("ddp.batch_rows(x)", "uniform"),
        ("ddp.batch_rows(x * w)", "partial(mean)"),
        ("ddp.batch_rows(x, dim=1)", "unknown"),
        ("ddp.batch_rows(x.sum())", "unknown"),
        ("ddp.batch_rows(torch.arange(len(x)))", "unknown"),
        ("ddp.batch_rows(torch.cat([x, x]))", "unknown"),
        ("ddp.batch_rows(torch.cat([x, x]), segments=2)", "uniform"),
        ("(ddp.batch_rows(x * w) @ ddp.batch_rows((x * w).T, dim=1)).logsumexp(1).mean()", "partial(mean)"),
        ("(ddp.batch_rows(x * w) @ (x * w).T).logsumexp(1).mean()", "per rank"),
        ("torch.nn.functional.dropout(ddp.batch_rows(x * w)).mean()", "per rank"),
        ("(ddp.batch_rows(x * w) * torch.rand(4)).mean()", "per rank"),
        ("torch.nn.functional.cross_entropy(ddp.batch_rows(x * w), t.long())", "per rank"),
        ("torch.nn.functional.cross_entropy(ddp.batch_rows(x * w), ddp.batch_rows(t).long())", "partial(mean)"),
        ("ddp.batch_rows(x * w)[: len(x)].mean()", "per rank"),
        ("ddp.batch_rows(x)[: len(x)].mean()", "per rank"),
        ("ddp.batch_rows(x * w).view(len(x), -1).max(0)[0].mean()", "per rank"),
        ("ddp.batch_rows(x * w).split(len(x))[0].mean()", "per rank"),
        ("(x * ddp.batch_rows(x)).mean()", "per rank"),
        ("(x * torch.ones(ddp.batch_sum(len(x)), 4)).mean()", "per rank"),
        ("(x * torch.eye(2 * ddp.batch_sum(len(x)))).mean()", "per rank"),
        ("(x * torch.ones(1, 4).expand(ddp.batch_sum(x.size(0)), 4)).mean()", "per rank"),
        ("x[torch.arange(ddp.batch_sum(len(x)))].mean()", "per rank"),
        ("x[: ddp.batch_sum(len(x))].mean()", "per rank"),
        ("x.view(ddp.batch_sum(len(x)), -1).mean()", "unknown"),
        ("(x / ddp.batch_sum(len(x))).sum()", "partial(sum)"),
        ("(x - ddp.batch_rows(x).mean()).pow(2).mean()", "partial(mean)"),
        ("(x - ddp.batch_mean(x.mean(0))).pow(2).mean()", "partial(mean)"),
        ("ddp.batch_rows(x * w)[torch.arange(ddp.batch_sum(len(x)))].mean()", "partial(mean)"),
        ("(ddp.batch_rows(x * w).mean() if x.max() > 0 else ddp.batch_rows(x * w).max()).exp()", "per rank"),
        ("x[x[:, 0] > 0].sum() / ddp.mean_count((x[:, 0] > 0).sum())", "partial(mean)"),
        ("ddp.weighted_mean(x[x[:, 0] > 0].mean(), (x[:, 0] > 0).sum())", "partial(mean)"),
        ("ddp.weighted_mean((x @ x.t()).exp().mean(), x.numel())", "per rank"),
        ("ddp.weight_of(t)", "partial(sum)"),
        ("ddp.weight_of(t, weight=torch.ones(3))", "partial(sum)"),
        ("ddp.weight_of(t, weight=torch.bincount(t.long(), minlength=3))", "per rank"),
        ("ddp.weight_of(t, weight=ddp.batch_sum(torch.bincount(t.long(), minlength=3)))", "partial(sum)"),
        ("ddp.rank()", "per rank"),
        ("ddp.is_main()", "per rank"),
        ("ddp.world_size()", "uniform"),
    ],
)
def test_what_the_runtime_gives(expression: str, placement: str) -> None:
    assert executed(expression)[0] == placement


@pytest.mark.parametrize("name", ["sum_all", "mean_all", "gather_all", "any_rank", "from_main", "main_settings"])
def test_a_collective_is_recorded(name: str) -> None:
    assert name in COLLECTIVE
    events = list(executed(f"ddp.{name}(x.sum())")[1].of("collective"))
    assert len(events) == 1


def test_every_rank_goes_through_a_whole_loader() -> None:
    assert executed("x.sum()", f"ddp.whole({_LOADER})")[0] == "uniform"
    assert executed("x.sum()", f"ddp.distribute({_LOADER})")[0] == "partial(sum)"


def test_a_batch_is_rows() -> None:
    assert executed("x")[0].startswith(Kind.ROWS.value)
