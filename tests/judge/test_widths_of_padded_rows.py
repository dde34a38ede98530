"""Batches that are padded as a whole and then divided: what each rank unpacks may be shorter than its labels."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_PROGRAM = """\
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
import dpmigrate_runtime as ddp


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.rnn = nn.LSTM(8, 8, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True{more})
        return self.out(h)


ddp.setup()
X, Y, L = torch.randint(0, 20, (64, 9)), torch.randint(0, 3, (64, 9)), torch.randint(1, 9, (64,))
model = ddp.wrap(Tagger())
opt = torch.optim.SGD(model.parameters(), lr=0.1)
ddp.seed_ranks()
for i in range(0, 64, 16):
    x, y, lengths = ddp.local_rows((X[i : i + 16], Y[i : i + 16], L[i : i + 16]))
    out = model(x, lengths)
    loss = {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
ddp.cleanup()
"""
_FLAT = "nn.functional.cross_entropy(out.reshape(-1, 3), y.reshape(-1))"


@pytest.mark.parametrize(
    ("loss", "more", "doubt"),
    [
        pytest.param(_FLAT, "", True, id="flat"),
        pytest.param("nn.functional.cross_entropy(out.transpose(1, 2), y)", "", True, id="with the axis"),
        pytest.param(_FLAT, ", total_length=x.size(1)", False, id="as long as the batch"),
        pytest.param("nn.functional.cross_entropy(out[:, 0], y[:, 0])", "", False, id="one for each sample"),
    ],
)
def test_unpacked_rows_and_labels_of_the_whole_batch(loss: str, more: str, doubt: bool) -> None:
    source = parse(_PROGRAM.format(loss=loss, more=more).encode(), "train.py")
    assert isinstance(source, Source)
    found = judge.judged(Program.of(source))
    assert any("total_length" in str(d) for d in found.doubts) is doubt
