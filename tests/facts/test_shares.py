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
