"""Parts of what a model of transformers gives: a slice of an output is a tuple of parts, not samples of a batch."""

from __future__ import annotations

import pytest

from dpmigrate.judge import judged
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

PROGRAM = '''\
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertForSequenceClassification
import dpmigrate_runtime as ddp

ddp.setup()
data = TensorDataset(torch.randint(20, (64, 7)), torch.randint(2, (64,)))
loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data))
net = ddp.wrap(BertForSequenceClassification.from_pretrained('bert-base-cased').to(ddp.device()))
opt = torch.optim.Adam(net.parameters())
ddp.seed_ranks()
for epoch in range(3):
    loader.sampler.set_epoch(epoch)
    for a, b in loader:
        opt.zero_grad()
        outputs = net(a.to(ddp.device()), labels=b.to(ddp.device()))
        {parts}
        loss.backward()
        opt.step()
        {end}
ddp.cleanup()
'''


def said(parts: str, end: str = "pass") -> tuple[list[str], list[str]]:
    source = parse(PROGRAM.format(parts=parts, end=end).encode(), "train.py")
    assert isinstance(source, Source)
    found = judged(Program.of(source))
    return [f.words for f in found.faults], list(found.assumed)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param("loss, logits = outputs[:2]", id="two parts"),
        pytest.param("loss = outputs[0]\n        logits = outputs[1:][0]", id="all from the second"),
        pytest.param("loss, logits = outputs[0:2:1]", id="with a step"),
        pytest.param("loss, logits = outputs.loss, outputs.logits", id="by name"),
    ],
)
def test_a_part_of_an_output(parts: str) -> None:
    assert said(parts) == ([], [])
    _, told = said(parts, "print(logits[3].detach())")
    assert any("needs at least 4 samples" in t for t in told), told


def test_the_first_part_is_the_loss_of_the_ranks_own_samples() -> None:
    _, told = said("loss, logits = outputs[:2]", "print(loss.item())")
    assert any("tells numbers of rank 0's part of the batch" in t for t in told), told
