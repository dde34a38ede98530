"""Views by the number of samples times how long a rank's are padded: ``y.view(y.size(0) * y.size(1))``."""

from __future__ import annotations

import pytest

from dpmigrate import judge
from dpmigrate.program import Program
from dpmigrate.source import Source, parse

_PROGRAM = """\
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
import dpmigrate_runtime as ddp


class Words(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.arange(2 + i % 5), torch.arange(2 + i % 5)


def put(batch):
    words, tags = zip(*batch)
    return pad_sequence(words, batch_first={first}), pad_sequence(tags, batch_first={first})


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 6)
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        a, b = x.shape[0], x.shape[1]
        x = self.words(x)
        x = {viewed}
        return self.fc(x)


ddp.setup()
data = Words()
loader = DataLoader(data, batch_size=ddp.local_batch(16), sampler=ddp.DistributedSampler(data, seed=0), collate_fn=put)
model = ddp.wrap(Tagger())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        n, m = y.size(0), y.size(1)
        optimizer.zero_grad()
        p = model(x)
        loss = {loss}
        loss.backward()
        optimizer.step()
ddp.cleanup()
"""
_FILLED = "a loss over what fills the samples up to the longest of a rank's part"
_ALL = "nn.functional.cross_entropy(p, {})"


def _words(viewed: str, loss: str, first: bool = True) -> set[str]:
    """What the judge says of the loss."""
    source = parse(_PROGRAM.format(viewed=viewed, loss=loss, first=first).encode(), "train.py")
    assert isinstance(source, Source)
    return {f.words for f in judge.faults(Program.of(source)) if "loss" in f.words}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("viewed", "labels"),
    [
        ("x.reshape(a * b, 6)", "y.reshape(n * m)"),
        ("x.reshape((a * b, 6))", "y.view((y.shape[0] * y.shape[1],))"),
        ("x.view(b * a, -1)", "y.view(-1)"),
        ("x.view(-1, 6)", "y.view(m * n)"),
        ("x.view(a * b, 2, 3).flatten(1)", "y.reshape(n * m)"),
        ("x.view(a * b * 2, 3).view(-1, 6)", "y.reshape(n * m)"),
    ],
)
def test_all_places_of_the_samples(viewed: str, labels: str, first: bool) -> None:
    """A mean over them goes by the padding, which is said, and nothing else is."""
    said = _words(viewed, _ALL.format(labels), first)
    assert said and all(_FILLED in w for w in said), said


def test_places_that_are_left_out_do_not_count() -> None:
    loss = "ddp.weighted_mean(nn.functional.cross_entropy(p, y.view(n * m), ignore_index=0), (y != 0).sum())"
    assert not _words("x.reshape(a * b, 6)", loss)
    assert not _words("x.reshape(a * b, 6).view(a, b, 6)[:, 0]", "nn.functional.cross_entropy(p, y[:, 0])")


@pytest.mark.parametrize(
    "labels",
    ["y.repeat(1, 2).view(n * m + n * m)", "y.view(n * m // 2, 2)[:, 0]", "y.view(int(n * (m / 2)), 2)[:, 0]"],
)
def test_other_numbers_are_not_those_of_the_places(labels: str) -> None:
    """Half as many rows may hold places of two samples each."""
    said = _words("x.view(a * b, 6)", _ALL.format(labels))
    assert said and not any(_FILLED in w for w in said), said


@pytest.mark.parametrize(
    "loss",
    [
        "nn.functional.cross_entropy(p, y.view(n * m), reduction='sum') / (n * m)",
        "nn.functional.cross_entropy(p, y.view(n * m), reduction='none').sum() / (n * m)",
        "p.sum() * (n * m)",
    ],
)
def test_their_number_is_the_rank_s_own(loss: str) -> None:
    assert _words("x.view(a * b, 6)", loss)


@pytest.mark.parametrize("viewed", ["x.view(-1, 6)", "x.view(a * b, 6)", "x.flatten(0, 1)", "x"])
def test_a_layer_over_all_places_leaves_them_as_they_were(viewed: str) -> None:
    """Where an axis of places is gone for certain the layer goes by features; here it is among the rows."""
    assert _words(viewed, "p.pow(2).mean()")
    assert not _words("x.sum(1)", "p.pow(2).mean()")
