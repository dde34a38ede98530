"""DPM202: each rank takes its share of the batch."""

from __future__ import annotations

import pytest

from dpmigrate.settings import Settings
from tests.rules.program import after, found, refused, whole


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"end": "val_loader = DataLoader(val_set, batch_size=7)\nprint(val_loader)"}, id="a loader that does not train"),
        pytest.param({"end": "print('DataLoader(train_set, batch_size=7)')  # DataLoader(train_set, 7)"}, id="in a string and a comment"),
        pytest.param({"imports": "import lib", "end": "lib.DataLoader(train_set, batch_size=7)"}, id="another library's DataLoader"),
    ],
)
def test_only_the_training_loader(parts: dict[str, str]) -> None:
    assert found("DPM202", **parts) == ["16"]


@pytest.mark.parametrize(
    ("parts", "pointed", "new"),
    [
        pytest.param({"loader": "loader = DataLoader(train_set, 8, shuffle=True)"}, "8", "ddp.local_batch(8)", id="positional"),
        pytest.param(
            {"setup": "n = 4", "loader": "loader = DataLoader(dataset=train_set, batch_size=n * 2)"},
            "n * 2",
            "batch_size=ddp.local_batch(n * 2)",
            id="expression",
        ),
        pytest.param(
            {"imports": "import torch.utils.data as D", "loader": "loader = D.DataLoader(train_set, batch_size=8)"}, "8", "ddp.local_batch(8)", id="alias"
        ),
        pytest.param(
            {"imports": "from torch.utils.data import DataLoader as Batches", "loader": "loader = Batches(train_set, batch_size=8)"},
            "8",
            "ddp.local_batch(8)",
            id="from",
        ),
        pytest.param(
            {"defs": "def make(s, n):\n    return DataLoader(s, batch_size=n)", "loader": "loader = make(train_set, 8)"},
            "n",
            "ddp.local_batch(n)",
            id="function",
        ),
        pytest.param({"module_level": True, "loader": "loader = DataLoader(train_set, 8)"}, "8", "ddp.local_batch(8)", id="module level"),
    ],
)
def test_found_and_fixed(parts: dict[str, str], pointed: str, new: str) -> None:
    assert found("DPM202", **parts) == [pointed]
    assert any(new in line for line in after(**parts))


def test_a_loader_of_single_samples_is_refused() -> None:
    assert refused("DPM202", loader="loader = DataLoader(train_set)") == ["DataLoader(train_set)"]


def test_a_loader_that_cannot_be_read_is_left_to_distribute() -> None:
    assert found("DPM202", defs="def make(s, **kw):\n    return DataLoader(s, **kw)", loader="loader = make(train_set)") == []


def test_per_rank_keeps_the_number() -> None:
    settings = Settings(batch="per-rank")
    assert found("DPM202", settings) == []
    assert "loader = DataLoader(train_set, batch_size=16, sampler=" in whole(settings)
