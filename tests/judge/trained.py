"""A migrated program with places for what a test adds: in the epoch, in the step, after it, at the end of an epoch, after the last."""

from __future__ import annotations

from textwrap import indent

from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_TRAINED = """\
import random
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp
{top}

class Meter:
    def __init__(self):
        self.sum, self.count, self.avg = 0, 0, 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ('{{avg' + ':.3f' + '}}').format(**self.__dict__)


ddp.setup()
data = TensorDataset(torch.randn(64, 2), torch.randint(0, 2, (64,)))
loader = DataLoader(data, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(data, seed=0))
val_loader = DataLoader(data, batch_size=16, shuffle=True)
net = nn.Linear(2, 2)
model = ddp.wrap(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
generator = torch.Generator().manual_seed(3)
ddp.seed_ranks()
best = 9.0
for epoch in range(4):
    loader.sampler.set_epoch(epoch)
{epoch}
    total, meter = 0.0, Meter()
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
{step}
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        accuracy = (out.argmax(1) == y).float().sum() * (100.0 / x.size(0))
{turn}
{end}
{last}
ddp.cleanup()
"""


def result(epoch: str = "", step: str = "", turn: str = "", end: str = "", last: str = "", top: str = "") -> Program:
    """The program with the statements of a test."""
    parts = {"epoch": indent(epoch, " " * 4), "step": indent(step, " " * 8), "turn": indent(turn, " " * 8), "end": indent(end, " " * 4), "last": last, "top": top}
    source = parse(_TRAINED.format(**parts).replace("\n\n    total", "\n    total").encode(), "train.py")
    assert isinstance(source, Source)
    return Program.of(source)
