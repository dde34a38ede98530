"""A sampler must not repeat samples where its loader would drop them."""

from __future__ import annotations

import pytest

from dpmigrate.judge import judged
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_TEXT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

ddp.setup()
data = TensorDataset(torch.randn(47, 2), torch.randint(0, 2, (47,)))
loader = DataLoader(data, batch_size=ddp.local_batch(8), drop_last={loader}, sampler=ddp.DistributedSampler(data{sampler}))
model = ddp.wrap(nn.Linear(2, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
for epoch in range(3):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
ddp.cleanup()
"""


@pytest.mark.parametrize(
    ("loader", "sampler", "wrong"),
    [(True, "", True), (True, ", drop_last=True", False), (False, "", False)],
)
def test_dropped_samples(loader: bool, sampler: str, wrong: bool) -> None:
    source = parse(_TEXT.format(loader=loader, sampler=sampler).encode(), "train.py")
    assert isinstance(source, Source)
    judgement = judged(Program.of(source))
    assert any("give the sampler drop_last=True" in f.words for f in judgement.faults) is wrong
    assert len(judgement.faults) == wrong
