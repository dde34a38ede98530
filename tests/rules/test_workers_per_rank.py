"""DPM216: workers for each rank."""

from __future__ import annotations

import pytest

from dpmigrate.model import Severity
from tests.rules.program import hits

_CLASS = "class Files(torch.utils.data.Dataset):\n    def __len__(self):\n        return 9\n    def __getitem__(self, i):\n        "
_FOLDER = {"imports": "from torchvision import datasets", "setup": "train_set = datasets.ImageFolder('d')"}


def _found(**parts: str) -> list[str]:
    found = hits("DPM216", **parts)
    assert all(f.severity is Severity.NOTE and not f.edits and f.advice for f in found)
    return [f.message for f in found]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="data in memory"),
        pytest.param({"defs": _CLASS + "return (lambda: self.x[i])()", "setup": "train_set = Files()"}, id="a data set that does nothing slow"),
        pytest.param({**_FOLDER, "loader": "loader = DataLoader(train_set, batch_size=8, num_workers=4)"}, id="some workers"),
        pytest.param({**_FOLDER, "loader": "loader = DataLoader(train_set, 8, True, None, None, 4)"}, id="some workers, positional"),
        pytest.param({**_FOLDER, "loader": "loader = DataLoader(train_set, batch_size=8, num_workers=os.cpu_count())"}, id="as many as there are cores"),
        pytest.param({**_FOLDER, "loader": "loader = DataLoader(train_set, batch_size=8, **dict(num_workers=0))"}, id="in a dict"),
        pytest.param(
            {**_FOLDER, "loader": "loader = DataLoader(train_set, **some())", "defs": "def some():\n    return {'batch_size': 8}"}, id="from elsewhere"
        ),
        pytest.param({"imports": "from lib import get_loader", "loader": "loader = get_loader(8)"}, id="another file's loader"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert _found(**parts) == []


@pytest.mark.parametrize("workers", ["", ", num_workers=0"])
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_FOLDER, id="image folder"),
        pytest.param({"defs": _CLASS + "return open(self.files[i]).read(), 0", "setup": "train_set = Files()"}, id="opens files"),
        pytest.param({"defs": _CLASS + "return self.transform(self.x[i]), 0", "setup": "train_set = Files()"}, id="transforms"),
    ],
)
def test_none(parts: dict[str, str], workers: str) -> None:
    loader = f"loader = DataLoader(train_set, batch_size=16{workers})"
    assert _found(**{"data": "", **parts, "loader": loader}) == ["every rank reads its data in the process that trains: its GPU waits"]


def test_many() -> None:
    assert _found(loader="loader = DataLoader(train_set, batch_size=16, num_workers=16)") == ["16 workers for each rank"]
