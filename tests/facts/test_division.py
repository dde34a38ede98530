"""Where a training loader is divided."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.division import distributed_after, distributed_at, reads_statically
from tests.pipeline import script
from tests.rules.program import found, migrated, program, refused, whole

_EVAL = "with torch.no_grad():\n    for a, b in val_loader:\n        print(model(a))"


@pytest.mark.parametrize("loader", ["DataLoader(train_set, batch_size=16)", "DataLoader(dataset=train_set, batch_size=args.n, shuffle=True, num_workers=2)"])
def test_a_loader_that_can_be_read_is_divided_in_its_call(loader: str) -> None:
    found = script(program(imports="from lib import args", loader=f"loader = {loader}"))
    (call,) = found.train_loader_calls
    assert reads_statically(found, call) and distributed_at(found, call) == [] and distributed_after(found, call) == []


def test_a_loader_that_cannot_be_read_is_divided_when_it_is_finished() -> None:
    found = script(program(imports="from lib import options", loader="loader = DataLoader(train_set, **options())"))
    (call,) = found.train_loader_calls
    assert not reads_statically(found, call)
    assert [ast.unparse(e) for e in distributed_at(found, call)] == ["DataLoader(train_set, **options())"]


def test_a_factory_of_both_is_divided_where_training_gets_it() -> None:
    defs = "def make(data, **more):\n    return DataLoader(data, batch_size=16, **more)"
    found = script(program(defs=defs, loader="loader = make(train_set, shuffle=True)\nval_loader = make(val_set)", end=_EVAL))
    (call,) = found.train_loader_calls
    assert [ast.unparse(e) for e in distributed_at(found, call)] == ["make(train_set, shuffle=True)"]


_TRAINER = """\
class Trainer:
    def __init__(self, net, train, val):
        self.net, self.loaders = net, {{'train': train, 'val': val}}
    def fit(self, optimizer):
        for epoch in range(3):
            for phase in {phases}:
                for x, y in self.loaders[phase]:
                    loss = F.cross_entropy(self.net(x), y)
                    if phase == 'train':
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
"""


@pytest.mark.parametrize("phases", ["('train', 'val')", "self.loaders", "list(self.loaders.keys())"])
def test_a_factory_of_both_whose_loaders_a_dictionary_holds(phases: str) -> None:
    defs = "def make(data, shuffle=False):\n    return DataLoader(data, batch_size=16, shuffle=shuffle)\n" + _TRAINER.format(phases=phases)
    parts = {"defs": defs, "loader": "", "epochs": "if True:", "batches": "if True:", "step": "Trainer(model, make(train_set, True), make(val_set)).fit(optimizer)"}
    text = whole(**parts)
    assert "Trainer(model, ddp.distribute(make(train_set, True)), make(val_set))" in text
    assert "self.loaders['train'].sampler.set_epoch(epoch)" in text or "in ddp.next_epoch(self.loaders[phase]):" in text


def test_one_of_several_loaders_is_divided_after_their_statement() -> None:
    loader = "loaders = {w: DataLoader(d, batch_size=16) for w, d in (('train', train_set), ('val', val_set))}"
    found = script(program(loader=loader, batches="for x, y in loaders['train']:"))
    (call,) = found.train_loader_calls
    assert [name for name, _ in distributed_after(found, call)] == ["loaders['train']"] and distributed_at(found, call) == []


# ------------------------------------------------------------------ factories of pairs
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
