"""A handler round the training ends the rank where there are several."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.judge import faults, handlers
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_PROGRAM = """\
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


def train():
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def read():
    return open("options.txt").read()


ddp.setup()
data = TensorDataset(torch.randn(64, 2), torch.randint(0, 2, (64,)))
loader = DataLoader(data, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(data, seed=0))
model = ddp.wrap(nn.Linear(2, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
try:
    {body}
except {kind}:
{handler}
train()
ddp.cleanup()
"""
_RAISE = "if ddp.world_size() > 1:\n    raise"


@pytest.mark.parametrize(
    ("body", "kind", "handler", "wrong"),
    [
        pytest.param("train()", "Exception", "print('failed')", True, id="goes on"),
        pytest.param("train()", "RuntimeError as error", f"print(error)\n{_RAISE}", False, id="raises"),
        pytest.param("train()", "RuntimeError", f"if ddp.is_main():\n    {_RAISE.replace(chr(10), chr(10) + '    ')}", True, id="raises on rank 0"),
        pytest.param("train()", "torch.cuda.OutOfMemoryError", f"train()\n{_RAISE}", True, id="trains again"),
        pytest.param("train()", "Exception", "sys.exit(1)", False, id="ends"),
        pytest.param("train()", "KeyboardInterrupt", "print('stopped')", False, id="a key reaches all ranks"),
        pytest.param("train()", "(OSError, ValueError)", "print('stopped')", True, id="one of several"),
        pytest.param("read()", "Exception", "print('no options')", False, id="no training"),
    ],
)
def test_handlers_of_the_training(body: str, kind: str, handler: str, wrong: bool) -> None:
    text = _PROGRAM.format(body=body, kind=kind, handler=indent(handler, "    "))
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    found = [f for f in faults(Program.of(source)) if f.invariant == handlers.NAME]
    assert bool(found) is wrong, found


@pytest.mark.parametrize(
    ("test", "wrong"),
    [("epoch == 1", False), ("ddp.mean_all(loss.item()) < 0.3", False), ("loss.item() < 0.3", True)],
)
def test_an_exception_of_the_program_itself(test: str, wrong: bool) -> None:
    text = _PROGRAM.format(body="train()", kind="Enough", handler="    print('enough')").replace("ddp.setup()", "class Enough(Exception):\n    pass\n\n\nddp.setup()", 1)
    text = text.replace("nn.functional.cross_entropy(model(x), y).backward()", "loss = nn.functional.cross_entropy(model(x), y)\n            loss.backward()")
    text = text.replace("optimizer.step()\n", f"optimizer.step()\n            if {test}:\n                raise Enough\n", 1)
    source = parse(text.encode(), "train.py")
    assert isinstance(source, Source)
    assert any(f.invariant == handlers.NAME for f in faults(Program.of(source))) is wrong
