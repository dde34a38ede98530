"""Evaluations that every rank runs in full: what makes their numbers differ between ranks, and what is done with such numbers."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.judge import Fault, files, judged, parted, statistics
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
import dpmigrate_runtime as ddp


class Rows(Dataset):
    def __init__(self):
        self.x = torch.randn(64, 4)

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return {sample}, self.x[i, :1]


def evaluate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for i in range(2):
            for x, y in ddp.whole(loader):
                total += nn.functional.mse_loss({called}(x), y).item()
    model.train()
    return total


ddp.setup()
train_set = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = DataLoader(train_set, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(train_set, seed=0, drop_last=True), drop_last=True)
val_loader = DataLoader(Rows(), batch_size=16)
model = ddp.wrap(nn.Sequential(nn.Linear(4, 8), {norm}(8), nn.Linear(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
best, path = 9.0, "best.pt"
for epoch in range(4):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
{end}
ddp.barrier()
{after}
ddp.cleanup()
"""
_SCORE = "score = evaluate(model, val_loader)"
_NAMED = _SCORE + "\nif ddp.from_main(score < best):\n    path = f'best-{score:.3f}.pt'\n    ddp.save(model.module.state_dict(), path)"
_LOAD = "model.module.load_state_dict(torch.load(path, map_location=ddp.device()))"


def _faults(
    end: str, after: str = "pass", *, norm: str = "nn.BatchNorm1d", sample: str = "self.x[i]", called: str = "model.module"
) -> list[Fault]:
    text = _PROGRAM.format(end=indent(end, "    "), after=after, norm=norm, sample=sample, called=called)
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return list(judged(Program.of(source)).faults)


@pytest.mark.parametrize(
    ("options", "other"),
    [
        pytest.param({}, True, id="running statistics of each rank"),
        pytest.param({"norm": "nn.LayerNorm"}, False, id="no running statistics"),
        pytest.param({"called": "model"}, False, id="through the wrapper"),
        pytest.param({"norm": "nn.LayerNorm", "sample": "self.x[i] + torch.randn(4)"}, True, id="samples that each rank draws"),
    ],
)
def test_a_file_is_named_by_such_a_number(options: dict[str, str], other: bool) -> None:
    found = [f for f in _faults(_NAMED, _LOAD, **options) if "reads a file of another name" in f.words]
    assert bool(found) is other
    assert all(f.invariant == files.ALONE and f.established for f in found)


def test_buffers_that_are_made_those_of_rank_0() -> None:
    assert not _faults("ddp.sync_buffers(model)\n" + _NAMED, _LOAD)


def test_the_ranks_would_part() -> None:
    stop = _SCORE + "\nif score > best:\n    break\nbest = score"
    assert parted.NAME in {f.invariant for f in _faults(stop)}
    assert not _faults(stop, norm="nn.LayerNorm")
    assert not _faults(stop.replace("score > best", "ddp.from_main(score > best)"))


def test_numbers_of_several_models_are_put_together() -> None:
    """The mean over the ranks would be that of as many models."""
    end = "if ddp.mean_all(evaluate(model, val_loader)) < best:\n    ddp.save(model.module.state_dict(), 'best.pt')"
    assert {f.invariant for f in _faults(end)} == {statistics.NAME}
    assert not _faults(end, norm="nn.LayerNorm")


def test_a_part_of_the_model_is_evaluated() -> None:
    end = "if ddp.mean_all(evaluate(model.module[:2], val_loader)) < best:\n    ddp.save(model.module.state_dict(), 'best.pt')"
    assert statistics.NAME in {f.invariant for f in _faults(end, called="model")}
