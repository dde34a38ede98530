"""One number for each sample is a vector ``(B,)``: beside a column ``(B, 1)`` every sample meets every other one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import proving
from dpmigrate.model import Outcome, Status
from dpmigrate.settings import Settings

_PROGRAM = """\
import random
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, n=64):
        self.x = torch.randn(n, 4)
        self.y = torch.randint(0, 3, (n,))
        self.read = open("labels.txt").read().split()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        j = (i * 7 + 3) % len(self.x)
        label = {label}
        return self.x[i], self.x[j], label


def contrast(a, b, label):
    d = F.pairwise_distance(a, b{keeps})
    return torch.mean((1 - label) * d.pow(2) + label * torch.clamp(2.0 - d, min=0.0).pow(2))


loader = DataLoader(Pairs(), batch_size=8)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for a, b, label in loader:
        optimizer.zero_grad()
        contrast(model(a), model(b), label).backward()
        optimizer.step()
"""
_NUMBERS = [
    "torch.tensor(float(self.y[i] != self.y[j]))",
    "torch.tensor(1 - np.random.choice([True, False]), dtype=torch.float32)",
    "torch.tensor(random.randint(0, 1), dtype=torch.float32)",
    "float(self.y[i] != self.y[j])",
    "int(self.y[i] == self.y[j])",
    "(self.y[i] != self.y[j]).float()",
]
_COLUMNS = ["torch.tensor([float(self.y[i] != self.y[j])])", "np.array([int(self.y[i] != self.y[j])], dtype='float32')"]
_UNSEEN = ["self.made(i)", "lib.label(self.read[i])"]
_KEEPS = ", keepdim=True"


def _migrated(folder: Path, label: str, keeps: str) -> tuple[Outcome, str]:
    script = folder / "train.py"
    imported = "import lib\n" if "lib." in label else ""
    script.write_text(imported + _PROGRAM.format(label=label, keeps=keeps).replace("self.made(i)", "__import__('made').label(i)"))
    outcome, files = proving.migration(script, Settings(unproven=True))
    assert outcome.status is Status.CHANGED, outcome
    assert files is not None
    return outcome, files[script].decode()


@pytest.mark.parametrize("label", _NUMBERS)
def test_a_number_for_each_sample_beside_a_column(label: str, tmp_path: Path) -> None:
    _, text = _migrated(tmp_path, label, _KEEPS)
    assert "ddp.batch_rows(1 - label) * ddp.batch_rows(d.pow(2))" in text


@pytest.mark.parametrize(("label", "keeps"), [*((n, "") for n in _NUMBERS), *((c, _KEEPS) for c in _COLUMNS)])
def test_each_sample_beside_itself(label: str, keeps: str, tmp_path: Path) -> None:
    outcome, text = _migrated(tmp_path, label, keeps)
    assert "batch_rows" not in text
    assert not [n for n in outcome.notes if "a column" in n]


@pytest.mark.parametrize("label", _UNSEEN)
def test_it_is_told_where_the_label_is_not_seen(label: str, tmp_path: Path) -> None:
    outcome, _ = _migrated(tmp_path, label, _KEEPS)
    (note,) = [n for n in outcome.notes if "a column" in n]
    assert note.startswith("(1 - label) * d.pow(2)")
