"""DPM222: data that are drawn anew between the epochs."""

from __future__ import annotations

import pytest

from tests.rules.program import STEP, after, found, hits, whole

_CLASS = """
class Pairs(Dataset):
    def __init__(self):
        self.x = torch.zeros(8, 2)
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return self.x[i], 0
    def draw(self):
        self.x = {value}
    def again(self):
        self.draw()
"""


def _parts(call: str, value: str = "torch.rand(8, 2)", **more: str) -> dict[str, str]:
    return {
        "imports": "import random\nimport numpy as np\nfrom torch.utils.data import Dataset",
        "defs": _CLASS.format(value=value),
        "data": "train_set = Pairs()",
        "epoch_start": call,
        **more,
    }


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="nothing is called"),
        pytest.param(_parts("train_set.draw()", "self.x + 1"), id="nothing is drawn"),
        pytest.param(_parts("train_set.set_epoch(epoch)"), id="an epoch is told"),
        pytest.param(_parts("", before="train_set.draw()"), id="before the epochs"),
        pytest.param(_parts("", step="train_set.draw()\n" + STEP), id="in a batch"),
        pytest.param(_parts("other.draw()", setup="other = Pairs()"), id="other data"),
        pytest.param(_parts("print('train_set.draw()')  # train_set.draw()"), id="in a string and a comment"),
        pytest.param(_parts("train_set.x = torch.ones(8, 2)"), id="nothing drawn is put in"),
        pytest.param(_parts("order = [3, 4]\ntrain_set.x = order"), id="nothing drawn is put in, by a name"),
        pytest.param(_parts("other.x = torch.rand(8, 2)", setup="other = Pairs()"), id="put into other data"),
        pytest.param(_parts("train_set.transform = torch.rand(8, 2)"), id="a transform"),
        pytest.param(_parts("print(train_set.x)"), id="shown"),
        pytest.param(_parts("'a remark'"), id="a string"),
        pytest.param(
            _parts(
                "model.change(train_set)", net="class Net(nn.Module):\n    def forward(self, x):\n        return x\n    def change(self, d):\n        d.draw()"
            ),
            id="in a model",
        ),
        pytest.param(_parts("order = torch.randperm(8)\nprint(order)"), id="drawn for something else"),
        pytest.param(_parts("", before="order = torch.randperm(8)", epoch_end="train_set.x = train_set.x[order]"), id="drawn before the epochs"),
        pytest.param(_parts("if train_set.draw():\n    pass"), id="in the head of a larger statement"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM222", **parts) == []


@pytest.mark.parametrize(
    "value",
    ["torch.rand(8, 2)", "torch.randperm(8)", "np.random.rand(8, 2)", "[random.random()]", "rng.permutation(8)", "torch.empty(8, 2).normal_()"],
)
def test_what_is_drawn(value: str) -> None:
    assert "with ddp.same_stream():" in after(**_parts("train_set.draw()", value, before="rng = np.random.default_rng(0)"))


@pytest.mark.parametrize("call", ["train_set.draw()", "train_set.again()", "loader.dataset.draw()", "kept = train_set.draw()"])
def test_where_it_is_called(call: str) -> None:
    assert f"    with ddp.same_stream():\n            {call}\n" in whole(**_parts(call))


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        pytest.param("random.shuffle(train_set.x)", "", id="shuffled in place"),
        pytest.param("train_set.x = torch.rand(8, 2)", "", id="put in"),
        pytest.param("train_set.x[0] += torch.rand(2)", "", id="added to a part"),
        pytest.param("loader.dataset.x = train_set.x[torch.randperm(8)]", "", id="through the loader"),
        pytest.param("order = torch.randperm(8)", "train_set.x = train_set.x[order]", id="drawn in a statement of its own"),
    ],
)
def test_what_is_put_into_the_data(lines: str, kept: str) -> None:
    assert f"    with ddp.same_stream():\n            {lines}\n        {kept}".rstrip() in whole(**_parts(f"{lines}\n{kept}"))


def test_data_of_another_file_may_draw() -> None:
    (hit,) = hits("DPM222", imports="from data import Ratings", data="train_set = Ratings()", epoch_start="train_set.sample_negatives()")
    assert "train_set.sample_negatives() may draw" in hit.message


def test_a_function_that_leads_to_the_epoch() -> None:
    parts = _parts("refresh(train_set)")
    parts["defs"] += "\n\ndef refresh(data):\n    data.draw()"
    assert len(hits("DPM222", **parts)) == 1
