"""What rank 0's part of the samples decides or is told as, and random numbers that ranks draw alike again."""

from __future__ import annotations

from textwrap import indent

import pytest

from dpmigrate.judge import judged, streams, totals
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_TRAINED = """\
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import dpmigrate_runtime as ddp


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
ddp.cleanup()
"""


def _result(epoch: str = "", step: str = "", turn: str = "", end: str = "") -> Program:
    parts = {"epoch": indent(epoch, " " * 4), "step": indent(step, " " * 8), "turn": indent(turn, " " * 8), "end": indent(end, " " * 4)}
    source = parse(_TRAINED.format(**parts).replace("\n\n    total", "\n    total").encode(), "train.py")
    assert isinstance(source, Source)
    return Program.of(source)


def said(word: str, **parts: str) -> list[str]:
    return [s for s in judged(_result(**parts)).assumed if word in s]


_SAVE = "ddp.save(net.state_dict(), 'best.pt')"


@pytest.mark.parametrize(
    ("end", "told"),
    [
        pytest.param(f"if total < best:\n    best = total\n    {_SAVE}", True, id="a sum"),
        pytest.param(f"if ddp.from_main(loss.item() < best):\n    {_SAVE}", True, id="the last batch, by rank 0"),
        pytest.param("if ddp.from_main(total > best):\n    break", True, id="an early stop"),
        pytest.param(f"if ddp.mean_all(total) < best:\n    {_SAVE}", False, id="of all ranks"),
        pytest.param(f"if epoch % 2:\n    {_SAVE}", False, id="the epoch"),
        pytest.param("if ddp.from_main(np.random.rand() < 0.5):\n    print(epoch)", False, id="a draw"),
    ],
)
def test_what_goes_by_rank_0s_part(end: str, told: bool) -> None:
    assert bool(said("goes by numbers of rank 0", end=end)) is told


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        pytest.param("if i % 10 == 0:\n    print(f'{total / 10:.3f}', np.exp(total / 10))", True, id="every tenth, a power"),
        pytest.param("meter.update(loss.item(), len(x))\nprint('\\t'.join([str(m) for m in [meter]]))", True, id="texts of meters in a list"),
        pytest.param("total = ddp.mean_all(total)\nprint('%.3f' % total)", False, id="of all ranks"),
        pytest.param("print('step %d' % i)", False, id="the turn"),
    ],
)
def test_numbers_in_texts(turn: str, told: bool) -> None:
    assert bool(said("tells numbers of rank 0's part", turn=turn)) is told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param("loss.item()", False, id="a mean"),
        pytest.param("accuracy.item()", False, id="a sum times 100 / size"),
        pytest.param("(10 * torch.log10(1 / nn.functional.mse_loss(out[:, 0], x[:, 0]))).item()", True, id="a ratio in decibels"),
        pytest.param("loss.item() ** 0.5", True, id="a root"),
    ],
)
def test_totals_of_what_is_no_mean_over_the_samples(value: str, told: bool) -> None:
    turn = f"meter.update({value}, x.size(0))"
    end = "meter.sum, meter.count = ddp.sum_all(meter.sum, meter.count)"
    assert bool(said("no sums or means over the samples", turn=turn, end=end)) is told


def test_totals_over_all_batches_are_those_of_all_ranks() -> None:
    loop = "seen = 0.0\nfor x, y in val_loader:\n    seen += nn.functional.cross_entropy(net(x), y).item() * len(x)\nseen = ddp.sum_all(seen, over={0})\n"
    step = "scheduler.step(ddp.mean_all(seen / len(data)))"
    known = judged(_result(end=loop.format("val_loader") + step)).faults
    assert not [f for f in known if f.invariant == totals.NAME]


_NOISE = "x = x + torch.randn(x.shape)"


@pytest.mark.parametrize(
    ("parts", "alike"),
    [
        pytest.param({"step": _NOISE}, False, id="own streams"),
        pytest.param({"epoch": "torch.manual_seed(7 + epoch)", "step": _NOISE}, True, id="seeded anew"),
        pytest.param({"epoch": "torch.manual_seed(7 + epoch)\nddp.seed_ranks()", "step": _NOISE}, False, id="and parted again"),
        pytest.param({"epoch": "np.random.seed(epoch)", "step": _NOISE}, False, id="another stream"),
        pytest.param({"end": "torch.manual_seed(1)\nwith torch.no_grad():\n    z = torch.randn(4, 2)\nddp.seed_ranks()", "step": _NOISE}, False, id="in an evaluation"),
        pytest.param({"step": "x = x + torch.randn(x.shape, generator=generator)"}, True, id="a generator with one seed"),
        pytest.param({"step": "z = torch.randn(4, 2, generator=generator)"}, False, id="not for samples"),
    ],
)
def test_random_numbers_of_training(parts: dict[str, str], alike: bool) -> None:
    found = [f for f in judged(_result(**parts)).faults if f.invariant == streams.NAME]
    assert bool(found) is alike
