"""Models of which an option chooses one: what sets the mode of the chosen one leaves no other in the mode before."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpmigrate import engine
from dpmigrate.settings import Settings

_SCRIPT = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.line(x))


class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)
        self.drops = nn.ModuleList([nn.Dropout(0.1 * i) for i in range(len(sys.argv))])

    def forward(self, x):
        x = self.a(x)
        for drop in self.drops:
            x = drop(x)
        return self.b(x)


{made}
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
test_loader = DataLoader(data, batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    {mode}
    right = 0
    with torch.no_grad():
        for x, y in test_loader:
            right += (model(x).argmax(1) == y).sum().item()
    print(right / len(data))
"""

_MADE = {
    "a table": "model = {'small': Small, 'large': Large}[sys.argv[1]]()",
    "arms": "if sys.argv[1] == 'small':\n    model = Small()\nelse:\n    model = Large()",
}


@pytest.mark.parametrize("made", _MADE.values(), ids=_MADE)
@pytest.mark.parametrize(("mode", "draws"), [("model.eval()", False), ("pass", True)])
def test_whether_an_evaluation_draws(made: str, mode: str, draws: bool, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT.format(made=made, mode=mode))
    (outcome,) = engine.apply([script], Settings(), engine.Writing(write=False))
    said = "".join(n for n in outcome.notes if n.startswith("Evaluation: 1 loop is split"))
    assert ("draws random numbers" in said) is draws
    assert ("the numbers equal those of one process" in said) is not draws


def test_parts_of_one_model_exist_both(tmp_path: Path) -> None:
    made = "import lib\nnet = lib.Net()\nmodel = Small()\nmodel.extra = net.a if sys.argv[1] == 'small' else net.b"
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT.format(made=made, mode="model.extra.eval()"))
    (outcome,) = engine.apply([script], Settings(), engine.Writing(write=False))
    assert not any("the numbers equal those of one process" in n for n in outcome.notes)
