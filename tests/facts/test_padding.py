"""Which parts of a batch are padded to its longest sample."""

from __future__ import annotations

import pytest

from dpmigrate.facts.padding import padded
from tests.facts.probe import probed

_PROGRAM = """
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
def padding(batch):
    words, labels = zip(*batch)
    longest = max(len(w) for w in words)
    rows = torch.zeros(len(words), longest)
    lists = [w + [0] * (longest - len(w)) for w in words]
    return pad_sequence(words), torch.stack(labels), rows, lists
def plain(batch):
    return torch.stack([b[0] for b in batch]), torch.stack([b[1] for b in batch]), torch.zeros(len(batch), 9), [[0] * 3]
def named(batch):
    words = pad_sequence([b[0] for b in batch])
    labels = torch.stack([b[1] for b in batch])
    batch = words, labels, words, words
    return batch
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=8, collate_fn={collate})
for words, labels, rows, lists in loader:
    words = words.cuda()
    loss = model(words).sum()
    probe({expression})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("collate", "expression", "why"),
    [
        ("plain", "words", "nothing is padded"),
        ("plain", "rows", "made in a fixed size"),
        ("padding", "labels", "another part"),
        ("named", "labels", "made before the name of the samples is that of the batch"),
        ("padding", "words.size(0)", "only its size"),
        ("padding", "model(words)", "given to a model"),
        ("None", "words", "torch's own"),
    ],
)
def test_not_padded(collate: str, expression: str, why: str) -> None:
    found, node = probed(_PROGRAM.format(collate=collate, expression=expression))
    assert not padded(found.roles, node), why


@pytest.mark.parametrize("expression", ["words", "words.float().cpu()", "words[:, 1:] + 1", "rows", "torch.from_numpy(rows)", "lists", "torch.tensor(lists).float()"])
def test_padded(expression: str) -> None:
    found, node = probed(_PROGRAM.format(collate="padding", expression=expression))
    assert padded(found.roles, node)
