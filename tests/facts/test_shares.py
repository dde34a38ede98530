"""Tests that fall out alike on all ranks, which have equal shares: sizes of batches, and numbers of them."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, found, refused, whole

_SIZES = {"setup": "bs = 16", "loader": "loader = DataLoader(train_set, batch_size=bs)"}


@pytest.mark.parametrize(
    ("step", "new"),
    [
        pytest.param("if x.size(0) != bs:\n    continue\n" + STEP, "if x.size(0) != ddp.local_batch(bs):", id="the last batch is left out"),
        pytest.param("if len(x) < bs:\n    break\n" + STEP, "if len(x) < ddp.local_batch(bs):", id="it ends the loop"),
        pytest.param("n = x.shape[0]\nif n < bs:\n    break\n" + STEP, "if n < ddp.local_batch(bs):", id="its size has a name"),
        pytest.param("x = x.float()\nif not bs == x.size(0):\n    break\n" + STEP, "if not ddp.local_batch(bs) == x.size(0):", id="moved"),
        pytest.param("if x.size(0) < 2 or epoch < 0:\n    continue\n" + STEP, "", id="too few for statistics"),
        pytest.param(
            "if len(x) == bs:\n    loss = model(x).mean()\n    loss.backward()\noptimizer.step()", "if len(x) == ddp.local_batch(bs):", id="the step itself"
        ),
        pytest.param("v = x[0]\nif len(v) != bs:\n    continue\n" + STEP, "if len(v) != ddp.local_batch(bs):", id="a part of the batch"),
        pytest.param(
            "v = Variable(x)\nif v.size(0) != bs:\n    continue\n" + STEP,
            "if v.size(0) != ddp.local_batch(bs):",
            id="a variable of old",
        ),
    ],
)
def test_the_size_of_a_batch_is_alike_on_all_ranks(step: str, new: str) -> None:
    parts = {"imports": "from torch.autograd import Variable", "step": step, **_SIZES}
    assert found("DPM322", **parts) == []
    assert not new or new in whole(**parts)


def test_batches_that_are_drawn_have_one_size() -> None:
    step = "x, y = next(it)\nif len(x) != bs:\n    continue\n" + STEP
    assert found("DPM322", batches="it = iter(loader)\nfor i in range(4):", step=step, **_SIZES) == []


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"step": "if len(x) != 16:\n    continue\n" + STEP}, id="a number, which is the global batch"),
        pytest.param({"step": "x = x[y > 0]\nif len(x) != bs:\n    continue\n" + STEP}, id="samples that are chosen"),
        pytest.param({"step": "x = torch.cat([x, x])\nif len(x) != bs:\n    continue\n" + STEP}, id="something made of the batch"),
        pytest.param({"step": "if len(x) != y.sum():\n    continue\n" + STEP}, id="something else of the batch"),
        pytest.param({"step": "if len(x) != bs and y.sum() > 3:\n    continue\n" + STEP}, id="and something else"),
        pytest.param(
            {"step": "if len(x) != bs:\n    continue\n" + STEP, "loader": "loader = DataLoader(train_set, batch_size=bs, collate_fn=f)"}, id="collated"
        ),
        pytest.param({"step": "if len(x) != bs:\n    continue\n" + STEP, "loader": "loader = get_loader(bs)"}, id="a loader of another file"),
        pytest.param({"step": "if not len(x):\n    continue\n" + STEP}, id="no comparison"),
        pytest.param({"step": "x += 0\nif len(x) != bs:\n    continue\n" + STEP}, id="changed"),
    ],
)
def test_sizes_that_may_differ(parts: dict[str, str]) -> None:
    assert refused("DPM322", **{"imports": "from data import get_loader, f", **_SIZES, **parts}) != []


_TRAINER = """\
class Trainer:
    def __init__(self, config, model, optimizer, loader, len_epoch=None):
        self.model, self.optimizer, self.loader = model, optimizer, loader
        {}

    def fit(self):
        for i, (x, y) in enumerate(self.loader):
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            if {}:
                break
"""


@pytest.mark.parametrize("test", ["i == self.len_epoch", "i >= self.len_epoch - 1"])
@pytest.mark.parametrize(
    ("length", "known"),
    [
        pytest.param("self.len_epoch = len(self.loader)", True, id="of the loader"),
        pytest.param("self.len_epoch = len(loader) if len_epoch is None else len_epoch", True, id="or a setting"),
        pytest.param("self.len_epoch = len_epoch or len(loader)", True, id="or a setting, by or"),
        pytest.param(
            "if len_epoch is None:\n            self.len_epoch = len(self.loader)\n        else:\n            self.len_epoch = len_epoch",
            True,
            id="under a test",
        ),
        pytest.param("n = len(loader)\n        self.len_epoch = n * 2", True, id="by another name"),
        pytest.param("self.len_epoch = config.count(loader)", False, id="counted by somebody"),
        pytest.param("self.len_epoch = 0\n        self.len_epoch += len(loader)", False, id="added up"),
        pytest.param("if config.now():\n            self.len_epoch = len(loader)", False, id="under a test that may differ"),
        pytest.param("self.len_epoch = [len(loader)][0]", False, id="in a list"),
        pytest.param("for n in config.all():\n            self.len_epoch = n", False, id="of a loop"),
    ],
)
def test_the_number_of_batches_is_alike_on_all_ranks(length: str, known: bool, test: str) -> None:
    parts = {"imports": "from lib import config", "loader": "loader = config.init_obj('loader', lib)", "epochs": "", "batches": "", "step": ""}
    end = "trainer = Trainer(config, model, optimizer, loader=loader)\nfor epoch in range(2):\n    trainer.fit()"
    assert (found("DPM322", defs=_TRAINER.format(length, test), end=end, **parts) == []) is known


_IMAGES = {"data": "train_set = TensorDataset(torch.randn(64, 3, 8, 8), torch.randint(0, 2, (64,)))\nval_set = TensorDataset(torch.randn(33, 3, 8, 8), torch.randint(0, 2, (33,)))"}


@pytest.mark.parametrize("asked", ["x.size(1)", "x.shape[2]", "x.size()[3]", "x.float().size(dim=2)"])
@pytest.mark.parametrize("before", ["", "x = x.float().cuda()\n"], ids=["", "moved"])
def test_what_samples_that_are_stacked_have_alike(asked: str, before: str) -> None:
    step = f"{before}least = 5\nif {asked} <= least:\n    continue\nif torch.isnan(x).any():\n    break\n{STEP}"
    end = "for x, y in DataLoader(val_set, batch_size=4):\n    print(x.size(1))"
    parts = {**_IMAGES, "net": _MEANS, "step": step, "epoch_end": end}
    assert "if ddp.any_rank(torch.isnan(x).any()):" in whole(**parts)


_MEANS = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(8, 2)\n\n    def forward(self, x):\n        return self.fc(x.mean((1, 2)))\n"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"asked": "x.size(0)"}, id="the samples"),
        pytest.param({"asked": "x.size(-1)"}, id="from the end, which may be the samples"),
        pytest.param({"asked": "x.mean(0).size(1)"}, id="something made of the batch"),
        pytest.param({"asked": "x.edge_index.size(1)"}, id="a field"),
        pytest.param({"loader": "loader = DataLoader(train_set, batch_size=16)"}, id="in their order"),
        pytest.param({"loader": "loader = DataLoader(train_set, batch_size=None, shuffle=True)"}, id="one by one"),
        pytest.param({"loader": "loader = DataLoader(train_set, batch_size=16, shuffle=True, collate_fn=pad)"}, id="padded"),
        pytest.param({"loader": "loader = geometric.DataLoader(train_set, batch_size=16, shuffle=True)"}, id="put end to end"),
    ],
)
def test_sizes_that_samples_may_have_for_themselves(parts: dict[str, str]) -> None:
    given = {"asked": "x.size(1)", **parts}
    step = f"if {given.pop('asked')} <= 5:\n    continue\n{STEP}"
    assert refused("DPM322", **{"imports": "from data import pad\nimport torch_geometric.loader as geometric", **given, "step": step}) != []
