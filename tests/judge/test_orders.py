"""Batches that are put into an order, as ``pack_padded_sequence`` wants it: the loss stays a mean over the samples."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

SEQUENCES = '''\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

ddp.setup()
data = TensorDataset(torch.randn(64, 10, 4), torch.randint(1, 11, (64,)), torch.randn(64, 1))
loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data, seed=0))
model = ddp.wrap(nn.Sequential(nn.Flatten(), nn.Linear(40, 1)))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
for epoch in range(3):
    loader.sampler.set_epoch(epoch)
    for x, lengths, y in loader:
        opt.zero_grad()
        {lines}
        loss.backward()
        opt.step()
ddp.cleanup()
'''
LOSS = "loss = nn.functional.mse_loss(model(x), y)"


@pytest.mark.parametrize(
    ("lines", "means"),
    [
        pytest.param("lengths, order = lengths.sort(0, descending=True)\nx, y = x[order], y[order]\n" + LOSS, True, id="sort"),
        pytest.param("lengths, order = torch.sort(lengths)\nx, y = x[order], y[order]\n" + LOSS, True, id="torch.sort"),
        pytest.param("order = torch.argsort(lengths, descending=True)\nx, y = x[order], y[order]\n" + LOSS, True, id="argsort"),
        pytest.param("lengths, order = lengths.sort(0)\n_, back = order.sort()\nloss = (model(x[order])[back] - y).pow(2).mean()", True, id="and back"),
        pytest.param("_, order = lengths.sort(0)\nw = lengths[order] / 10\nloss = ((model(x[order]) - y[order]).squeeze(1) * w).mean()", True, id="weighted"),
        pytest.param("y, _ = y.sort(0)\n" + LOSS, False, id="targets of several numbers"),
        pytest.param("loss = (model(x).squeeze(1).sort()[0] - y.squeeze(1).sort()[0]).pow(2).mean()", False, id="predictions"),
        pytest.param("top, _ = lengths.float().topk(3)\nloss = (model(x) - y).pow(2).mean() * top.mean()", False, id="the longest"),
    ],
)
def test_an_order_of_the_samples(lines: str, means: bool) -> None:
    source = parse(SEQUENCES.format(lines=lines.replace("\n", "\n        ")).encode(), "train.py")
    assert isinstance(source, Source)
    found = judge.judged(Program.of(source))
    assert found.means is means
    assert bool(found.doubts) is not means
