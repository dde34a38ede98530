"""A loop over a generator begins one pass, however often the generator is asked: its body is executed anew for each turn that is not the first."""

from __future__ import annotations

import pytest

from dpmigrate.judge import epochs, judged
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_TEXT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp

class Turns:
    again = False

class Batches:
    def __init__(self, loader):
        self.loader = loader
    def __iter__(self):
        for batch in self.loader:
            yield batch

def given(loader):
    for batch in loader:
        yield batch

def endless(loader):
    while True:
        for batch in loader:
            yield batch

def counting(loader):
    epoch = 0
    while True:
        loader.sampler.set_epoch(epoch)
        epoch += 1
        for batch in loader:
            yield batch

def perhaps_twice(loader):
    for batch in loader:
        yield batch
    if Turns.again:
        for batch in loader:
            yield batch

def begun_first(loader):
    first = [x for x, _ in loader]
    for batch in loader:
        yield batch

def both(loader):
    for batch in given(loader):
        yield batch

ddp.setup()
data = TensorDataset(torch.randn(48, 2), torch.randint(0, 2, (48,)))
loader = DataLoader(data, batch_size=ddp.local_batch(8), sampler=ddp.DistributedSampler(data))
model = ddp.wrap(nn.Linear(2, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
for epoch in range(3):
    TELL
    for i, (x, y) in enumerate(OVER):
        if i == 9:
            break
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        Turns.again = AGAIN
ddp.cleanup()
"""


@pytest.mark.parametrize(
    ("over", "tell", "again", "wrong"),
    [
        pytest.param("given(loader)", "loader.sampler.set_epoch(epoch)", "False", False, id="a generator"),
        pytest.param("Batches(loader)", "loader.sampler.set_epoch(epoch)", "False", False, id="an object"),
        pytest.param("both(loader)", "loader.sampler.set_epoch(epoch)", "False", False, id="a generator of a generator"),
        pytest.param("zip(given(loader), range(9)) if epoch else given(loader)", "loader.sampler.set_epoch(epoch)", "False", False, id="one of two"),
        pytest.param("given(ddp.next_epoch(loader))", "pass", "False", False, id="counted by itself"),
        pytest.param("counting(loader)", "pass", "False", False, id="told in there"),
        pytest.param("given(loader)", "pass", "False", True, id="a generator, never told"),
        pytest.param("Batches(loader)", "pass", "False", True, id="an object, never told"),
        pytest.param("given(loader)", "loader.sampler.set_epoch(1)", "False", True, id="a generator, told one epoch"),
        pytest.param("Batches(loader)", "loader.sampler.set_epoch(1)", "False", True, id="an object, told one epoch"),
        pytest.param("endless(loader)", "loader.sampler.set_epoch(epoch)", "False", True, id="passes without end"),
        pytest.param("perhaps_twice(loader)", "loader.sampler.set_epoch(epoch)", "True", True, id="a second pass that a turn asks for"),
        pytest.param("begun_first(loader)", "loader.sampler.set_epoch(epoch)", "False", True, id="a pass before it"),
    ],
)
def test_a_pass_is_begun_once(over: str, tell: str, again: str, wrong: bool) -> None:
    text = _TEXT.replace("TELL", tell).replace("OVER", over).replace("AGAIN", again)
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    faults = judged(Program.of(source)).faults
    assert any(f.invariant == epochs.NAME for f in faults) is wrong, [f.words for f in faults]
