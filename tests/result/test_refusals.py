"""Programs of which no right result is known: each is refused with the place and the reason, and stays as it is, byte for byte.

Where the tool comes to write the right result, the case moves to ``fixtures``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings

_HEAD = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
"""
_STEP = """\
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
_START = 'if __name__ == "__main__":\n    main()\n'
_DATA = "    data = TensorDataset(torch.randn(32, 3), torch.randn(32, 1))\n"

_ENDS_ON_DATA = f"""{_HEAD}

def harder(net, x, y, left=5):
    net.eval()
    kept = []
    moved = x.clone()
    while left > 0:
        moved.requires_grad_()
        scores = net(moved)
        fooled = scores.argmax(1) != y
        kept.append(moved[fooled].detach())
        if fooled.all():
            return torch.cat(kept)
        net.zero_grad()
        nn.CrossEntropyLoss()(scores, y).backward()
        moved, y = moved.detach()[~fooled] + moved.grad[~fooled].sign(), y[~fooled]
        left -= 1
    return torch.cat([*kept, moved])


def main():
    data = TensorDataset(torch.randn(32, 3), torch.randint(0, 2, (32,)))
    batches = DataLoader(data, batch_size=4, shuffle=True)
    net = nn.DataParallel(nn.Sequential(nn.Linear(3, 2)))
    opt = optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in batches:
            x = harder(net, x, y)
            net.train()
            opt.zero_grad()
            loss = nn.CrossEntropyLoss()(net(x), y)
            loss.backward()
            opt.step()


{_START}"""

_UNUSED_OUTPUT = f"""{_HEAD}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 8)
        self.head = nn.Linear(8, 1)
        self.other = nn.Linear(8, 1)

    def forward(self, x):
        found = dict(head=self.head(self.body(x)))
        found.update(other=self.other(self.body(x)))
        return found


def main():
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.1)
{_DATA}    batches = DataLoader(data, batch_size=4, shuffle=True)
    for epoch in range(2):
        for x, y in batches:
            loss = nn.functional.mse_loss(net(x)["head"], y)
            opt.zero_grad()
            loss.backward()
            opt.step()


{_START}"""

_PROGRAMS = [
    pytest.param(
        _ENDS_ON_DATA,
        ":18: weighted_mean() waits for every rank, but its loop may end on one alone, by fooled.all()",
        id="a loop that ends on its data",
    ),
]


def applied(path: Path) -> Outcome:
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        (outcome,) = engine.apply([Path(path.name)], Settings(), engine.Writing())
    finally:
        os.chdir(here)
    return outcome


@pytest.mark.parametrize(("program", "words"), _PROGRAMS)
def test_it_is_refused_and_stays(program: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(program)
    outcome = applied(path)
    assert (outcome.status, path.read_text()) == (Status.REFUSED, program)
    assert outcome.reason.startswith("the result would be wrong, so nothing was written: train.py:")
    assert words in outcome.reason
    assert [p.name for p in tmp_path.iterdir()] == ["train.py"]


def test_an_output_that_no_loss_is_made_of_is_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(_UNUSED_OUTPUT)
    outcome = applied(path)
    (told,) = [f.message for f in outcome.files[0].findings if f.code == "DPM111"]
    assert told == "no loss reaches Linear (made in line 11): DDP would stop in the second step"
    assert (outcome.status, "net = ddp.wrap(Net(), find_unused=True)" in path.read_text()) == (Status.CHANGED, True)


def test_windows_newlines_and_the_coding_line_stay(tmp_path: Path) -> None:
    data = ("# -*- coding: latin-1 -*-\n# \xe9\n" + _ENDS_ON_DATA).replace("\n", "\r\n").encode("latin-1")
    path = tmp_path / "train.py"
    path.write_bytes(data)
    assert applied(path).status is Status.REFUSED
    assert path.read_bytes() == data
