"""What a model of a library gives in one branch is no value of an earlier turn, where the others have no use for that."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dpmigrate import judge
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_PROGRAM = """\
import argparse
import torch
import transformers
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def keeping(model, first):
    last = model(first)

    def give(x, anew):
        nonlocal last
        if anew:
            last = model(x)
        return last
    return give


def evaluate(model, loader, option, first):
    give = keeping(model, first)
    kept = [model(first)]
    both = (model(first), 0)
    right = total = 0
    with torch.no_grad():
        ddp.sync_buffers(model)
        for x, y in ddp.shard(loader):
{body}
            right += (out.logits.argmax(1) == y).sum().item()
            total += y.size(0)
    right, total = ddp.sum_all(right, total)
    return right / total


ddp.setup()
parser = argparse.ArgumentParser()
parser.add_argument("--option", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
data = TensorDataset(torch.randint(0, 9, (64, 5)), torch.randint(0, 2, (64,)))
train = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data, seed=0))
held = DataLoader(data, batch_size=8)
model = ddp.wrap(transformers.BertForSequenceClassification.from_pretrained("a"))
optimizer = torch.optim.AdamW(model.parameters())
ddp.seed_ranks()
for epoch in range(3):
    train.sampler.set_epoch(epoch)
    model.train()
    for x, y in train:
        loss = torch.nn.functional.cross_entropy(model(x).logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    print(evaluate(model.module, held, args.option, torch.ones(8, 5, dtype=torch.long)))
ddp.cleanup()
"""


def _faults(body: str) -> list[str]:
    text = _PROGRAM.replace("{body}", indent(dedent(body).strip("\n"), " " * 12))
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    return [f.words for f in judge.faults(Program.of(source))]


@pytest.mark.parametrize(
    "body",
    [
        "out = model(x)",
        "if option:\n    out = model(x)\nelse:\n    out = model(x)",
        "if option:\n    with torch.autocast('cuda'):\n        out = model(x)\nelse:\n    out = model(x)",
        "out = model(x)\nif option:\n    out = model(x)",
    ],
)
def test_made_anew_in_each_branch(body: str) -> None:
    assert _faults(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "if y.sum() > 3 or not total:\n    out = model(x)",
        "out = give(x, y.sum() > 3)",
        "if y.sum() > 3:\n    kept[0] = model(x)\nout = kept[0]",
        "if y.sum() > 3:\n    both = (model(x), 1)\nout = both[0]",
    ],
)
def test_one_of_an_earlier_turn_is_told(body: str) -> None:
    assert any("before the ranks add up" in words for words in _faults(body))
