"""Samples that a ``collate_fn`` fills up to the longest of a rank's part, by whichever means."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_PROGRAM = """\
import lib
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
import dpmigrate_runtime as ddp


class Series(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return np.ones(2 + 3 * i, dtype=np.float32)


def put(batch):
    n = {size}
    {made}


ddp.setup()
data = Series()
loader = DataLoader(data, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(data, seed=0), collate_fn=put)
model = ddp.wrap(nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    loader.sampler.set_epoch(epoch)
    for x in loader:
        x = torch.as_tensor(x).float().unsqueeze(-1)
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(x), x)
        loss.backward()
        optimizer.step()
ddp.cleanup()
"""
_WORDS = "a loss over what fills the samples up to the longest of a rank's part"


def _said(made: str, size: str) -> bool:
    source = parse(_PROGRAM.format(made=made, size=size).encode(), "train.py")
    assert isinstance(source, Source)
    return any(_WORDS in f.words for f in judge.faults(Program.of(source)))


@pytest.mark.parametrize(
    "made",
    [
        "return np.stack([np.pad(b, (0, n - len(b))) for b in batch])",
        "return torch.stack([nn.functional.pad(torch.from_numpy(b), (0, n - len(b))) for b in batch])",
        "return np.array([list(b) + [0.0] * (n - len(b)) for b in batch])",
        "return torch.tensor([b.tolist() + [0.0] * (n - len(b)) for b in batch])",
        "return np.stack([lib.spectrum(np.pad(b, (0, n - len(b)))) for b in batch])",
        "out = np.zeros((len(batch), n))\n    for i, b in enumerate(batch):\n        out[i, :len(b)] = b\n    return out",
    ],
)
def test_filled_up_to_the_longest(made: str) -> None:
    assert _said(made, "max(len(b) for b in batch)")
    assert not _said(made, "200")


@pytest.mark.parametrize(
    "row",
    [
        "row = [0.0] * n\n        row[:len(b)] = b.tolist()",
        "row = (n - len(b)) * [0.0] + b.tolist()",
    ],
)
def test_rows_that_a_loop_makes_as_long_as_the_longest(row: str) -> None:
    made = f"rows = []\n    for b in batch:\n        {row}\n        rows.append(row)\n    return torch.tensor(rows)"
    assert _said(made, "max(map(len, batch))")
    assert not _said(made, "200")


@pytest.mark.parametrize(
    "filled",
    [
        "b.tolist() + [0.0] * (n - len(b)) if len(b) < n else b.tolist()[:n]",
        "b.tolist()[:n] + [0.0] * max(0, n - len(b))",
        "(b.tolist() + [0.0] * n)[:n]",
    ],
)
def test_what_is_missing_of_a_given_size_is_the_sample_s_own(filled: str) -> None:
    assert not _said(f"return torch.tensor([{filled} for b in batch])", "200")


@pytest.mark.parametrize("round_it", ["ddp.weighted_mean(loss, ddp.weight_of(x.long()))", "ddp.sum_term(loss)"])
def test_what_is_put_round_such_a_loss_is_not_the_reason(round_it: str) -> None:
    made = "return np.stack([np.pad(b, (0, n - len(b))) for b in batch])"
    text = _PROGRAM.format(made=made, size="max(len(b) for b in batch)")
    source = parse(text.replace("    loss.backward()", f"    loss = {round_it}\n        loss.backward()").encode(), "train.py")
    assert isinstance(source, Source)
    found = judge.faults(Program.of(source))
    assert {f.established for f in found if "the loss is" in f.words and _WORDS in f.words} == {False}
