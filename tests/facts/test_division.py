"""Where a training loader is divided that a factory gives in a tuple."""

from __future__ import annotations

import pytest

from tests.rules.program import found, migrated, refused, whole

_PAIRS = "def make(s, flag):\n    loader = DataLoader(s, batch_size=4, shuffle=flag == 'train')\n    return s, loader"
_COUNT = "{}\nn = 0\nfor a, b in v:\n    n += model(a).sum().item()"


@pytest.mark.parametrize(
    ("loader", "val", "new"),
    [
        pytest.param("data, loader = make(train_set, 'train')", "vd, v = make(val_set, flag='val')", "loader = ddp.distribute(loader)", id="unpacked"),
        pytest.param("*_, loader = make(train_set, flag='train')", "*_, v = make(val_set, flag='val')", "loader = ddp.distribute(loader)", id="the last"),
        pytest.param("pair = make(train_set, 'train')\ndata, loader = pair", "_, v = make(val_set, '')", "loader = ddp.distribute(loader)", id="kept first"),
        pytest.param("data, first = make(train_set, 'train')\nloader = first", "_, v = make(val_set, '')", "first = ddp.distribute(first)", id="another name"),
        pytest.param("loader = make(train_set, 'train')[1]", "v = make(val_set, '')[1]", "loader = ddp.distribute(make(train_set, 'train')[1])", id="an item"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_a_factory_of_pairs(loader: str, val: str, new: str, module_level: bool) -> None:
    """What is divided is the loader, and not the pair; that of the evaluation is left as it is."""
    lines = whole(defs=_PAIRS, loader=loader, end=_COUNT.format(val), module_level=module_level).splitlines()
    assert [one.strip() for one in lines if "ddp.distribute" in one] == [new]


def test_a_factory_of_pairs_for_attributes_and_for_two_trainings() -> None:
    defs = (
        _PAIRS
        + """
class Work:
    def __init__(self):
        self.model = Net()
    def train(self):
        data, self.loader = make(train_set, 'train')
        val_data, val_loader = make(val_set, 'val')
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for epoch in range(2):
            for x, y in self.loader:
                optimizer.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                optimizer.step()
        for a, b in val_loader:
            print(self.model(a).sum().item())
class Other:
    def __init__(self):
        self.net = Net()
    def train(self):
        data, loader = make(train_set, flag='train')
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for epoch in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                optimizer.step()
"""
    )
    text = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader, TensorDataset\n"
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n    def forward(self, x):\n        return self.fc(x)\n"
    data = "train_set = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))\nval_set = train_set\n"
    lines = migrated(text + net + data + defs + "\nWork().train()\nOther().train()\n").splitlines()
    assert [one for one in lines if "ddp.distribute" in one] == ["        self.loader = ddp.distribute(self.loader)", "        loader = ddp.distribute(loader)"]


def test_pairs_taken_apart_together() -> None:
    """A part of a part has no line of its own: refused, and not written round the pair."""
    parts = {"loader": "(d, loader), (e, v) = make(train_set, 'train'), make(val_set, '')", "end": _COUNT.format("print(d)")}
    assert refused("DPM905", defs=_PAIRS, **parts)
    assert found("DPM201", defs=_PAIRS, **parts) == []
