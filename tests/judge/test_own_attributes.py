"""What a method stores in an attribute of its object and reads again is its own, though one place made many such objects."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dpmigrate import judge
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_PROGRAM = """\
import argparse
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

parser = argparse.ArgumentParser()
parser.add_argument("--deep", type=int, default=2)
parser.add_argument("--other", action="store_true")
args = parser.parse_args()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.state = torch.zeros(1)
        self.neighbour = None

    def keep(self, x):
        self.state = self.layer(x)

    def forward(self, x):
{body}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(args.deep)])
        for block in self.blocks:
            block.neighbour = [self.blocks[0]]
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.last(x)


def evaluate(model, loader):
    right = total = 0
    model.eval()
    with torch.no_grad():
        ddp.sync_buffers(model)
        for x, y in ddp.shard(loader):
            right += (model.module(x).argmax(1) == y).sum().item()
            total += y.size(0)
    right, total = ddp.sum_all(right, total)
    return right / total


ddp.setup()
torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
held = DataLoader(data, batch_size=8)
train = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data, seed=0))
model = ddp.wrap(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
for epoch in range(3):
    train.sampler.set_epoch(epoch)
    model.train()
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(evaluate(model, held))
ddp.cleanup()
"""


def _faults(body: str) -> list[str]:
    text = _PROGRAM.replace("{body}", indent(dedent(body).strip("\n"), " " * 8))
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return [f.words for f in judge.faults(Program.of(source))]


@pytest.mark.parametrize(
    "body",
    [
        "return self.layer(x)",
        "self.state = self.layer(x)\nreturn self.state.relu()",
        "self.count, self.size = x.shape\nreturn self.layer(x).view(self.count, self.size)",
        "self.state = self.layer(x)\nself.state = self.state.relu()\nreturn self.state",
        "self.state = self.layer(x)\nif args.other:\n    return self.state.relu()\nreturn self.state",
        "self.state = x.mean(1, keepdim=True)\nx = self.layer(x)\nreturn x + self.state",
    ],
)
def test_stored_and_read_again(body: str) -> None:
    assert _faults(body) == []


@pytest.mark.parametrize(
    "body",
    [
        # what an earlier batch has left
        "before, self.state = self.state, self.layer(x)\nreturn x + before.mean()",
        "self.state = self.state + self.layer(x).mean()\nreturn x + self.state",
        "if x.sum() > 0:\n    self.state = self.layer(x).mean()\nreturn x + self.state",
        # there may be one of an earlier batch again
        "self.state = self.layer(x).mean()\nif args.other:\n    self.state = self.neighbour[0].state\nreturn x + self.state",
        "self = self.neighbour[0]\nbefore = self.state\nself.state = self.layer(x).mean()\nreturn x + before",
    ],
)
def test_what_an_earlier_batch_has_left_is_told(body: str) -> None:
    assert _faults(body)


@pytest.mark.parametrize(
    "body",
    [
        "self.state = self.layer(x)\nself.neighbour[0].keep(x)\nreturn self.state",
        "self.state = self.layer(x)\nother = self.neighbour[0]\nother.state = other.layer(x)\nreturn self.state",
        "self.state = self.layer(x)\nsetattr(self.neighbour[0], 'state', self.layer(x))\nreturn self.state",
    ],
)
def test_what_another_may_have_stored_is_not_taken_for_it(body: str) -> None:
    """Another object of the place may be the same one."""
    assert _faults(body)
