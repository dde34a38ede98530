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


def test_data_of_another_file_may_draw() -> None:
    (hit,) = hits("DPM222", imports="from data import Ratings", data="train_set = Ratings()", epoch_start="train_set.sample_negatives()")
    assert "train_set.sample_negatives() may draw" in hit.message


def test_a_function_that_leads_to_the_epoch() -> None:
    parts = _parts("refresh(train_set)")
    parts["defs"] += "\n\ndef refresh(data):\n    data.draw()"
    assert len(hits("DPM222", **parts)) == 1
