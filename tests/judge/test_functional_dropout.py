"""A functional dropout draws where it is told to train, and says so of an evaluation that is split."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.settings import Settings

_SCRIPT = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.b = nn.Linear(16, 3)

    def forward(self, x):
        return self.b(nn.functional.dropout(self.a(x), {given}))


def evaluate(model, loader):
    {mode}
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
    return right / len(loader.dataset)


data = TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
test_loader = DataLoader(data, batch_size=16)
model = Net()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(evaluate(model, test_loader))
"""


@pytest.mark.parametrize(
    ("given", "mode", "draws"),
    [
        ("0.5, self.training", "model.eval()", False),
        ("p=0.5, training=self.training", "model.eval()", False),
        ("0.5, training=False", "pass", False),
        ("0.5, training=self.training", "pass", True),
        ("0.5", "model.eval()", True),  # which forgets the mode
    ],
)
def test_what_is_said_of_the_evaluation(given: str, mode: str, draws: bool, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(_SCRIPT.format(given=given, mode=mode))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    said = "".join(n for n in outcome.notes if n.startswith("Evaluation: 1 loop is split"))
    assert ("draws random numbers" in said) is draws
    assert ("the numbers equal those of one process" in said) is not draws


@pytest.mark.parametrize(("given", "draws"), [("0.5, training=False", False), ("0.5", True)])
def test_what_is_said_of_an_evaluation_in_full(given: str, draws: bool, tmp_path: Path) -> None:
    text = _SCRIPT.format(given=given, mode="model.eval()").replace("            right += (", "            print(own(x))\n            right += (")
    path = tmp_path / "train.py"
    path.write_text(text.replace("def evaluate", "def own(x):\n    return [float(v) for v in sorted(x.flatten().tolist())][0]\n\n\ndef evaluate"))
    (outcome,) = engine.apply([path], Settings(), engine.Writing(write=False))
    (said,) = [n for n in outcome.notes if n.startswith("Evaluation: 1 loop runs in full")]
    assert ("draws other random numbers on each, so rank 0's results equal those of one process on average only" in said) is draws
    assert ("not faster, but exact" in said) is not draws
