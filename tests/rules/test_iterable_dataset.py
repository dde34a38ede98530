"""DPM906: streams that no sampler divides."""

from __future__ import annotations

import pytest

from tests.rules.program import found, refused

_STREAM = "class Stream({}):\n    def __iter__(self):\n        return iter([])"
_LOADER = "loader = DataLoader(Stream(), batch_size=4)"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="a data set with an index"),
        pytest.param({"defs": _STREAM.format("torch.utils.data.Dataset"), "loader": _LOADER}, id="a class with a length"),
        pytest.param({"defs": _STREAM.format("torch.utils.data.IterableDataset")}, id="a stream that does not train"),
        pytest.param({"end": "print('IterableDataset')  # IterableDataset"}, id="in a string and a comment"),
    ],
)
def test_nothing_to_say(parts: dict[str, str]) -> None:
    assert found("DPM906", **parts) == []


@pytest.mark.parametrize(
    ("imports", "base", "loader"),
    [
        pytest.param("", "torch.utils.data.IterableDataset", _LOADER, id="full name"),
        pytest.param("from torch.utils.data import IterableDataset as I", "I", "loader = DataLoader(dataset=Stream())", id="alias, keyword"),
        pytest.param("from torch.utils.data import *", "IterableDataset", _LOADER, id="star import"),
        pytest.param("", "torch.utils.data.IterableDataset", "s = Stream()\nloader = DataLoader(s, 4)", id="through a name"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_refused(imports: str, base: str, loader: str, module_level: bool) -> None:
    (call,) = refused("DPM906", imports=imports, defs=_STREAM.format(base), loader=loader, module_level=module_level)
    assert call.startswith("DataLoader(")


def test_a_class_derived_from_one_of_this_file() -> None:
    defs = _STREAM.format("torch.utils.data.IterableDataset") + "\nclass More(Stream):\n    pass"
    assert refused("DPM906", defs=defs, loader="loader = DataLoader(More())") == ["DataLoader(More())"]
