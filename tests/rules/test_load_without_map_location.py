"""DPM405: checkpoints come to the rank that loads them."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("x = torch.load('a', map_location='cpu')", id="keyword"),
        pytest.param("x = torch.load('a', 'cpu')", id="positional"),
        pytest.param("x = torch.load('a', map_location=lambda s, _: s)", id="a function"),
        pytest.param("x = torch.load('a', **os.environ)", id="hidden arguments"),
        pytest.param("x = lib.load('a')", id="another library's"),
        pytest.param("print(\"torch.load('a')\")  # torch.load('a')", id="in a string and a comment"),
    ],
)
def test_nothing_to_say(end: str) -> None:
    assert found("DPM405", imports="import lib", end=end) == []


@pytest.mark.parametrize(
    ("imports", "line", "new"),
    [
        pytest.param("", "x = torch.load('a')", "x = torch.load('a', map_location=ddp.device())", id="plain"),
        pytest.param("", "x = torch.load(f='a', weights_only=True)", "x = torch.load(f='a', weights_only=True, map_location=ddp.device())", id="keywords"),
        pytest.param("", "x = torch.load('a', None)", "x = torch.load('a', ddp.device())", id="None"),
        pytest.param("", "x = torch.load('a', map_location=None)", "x = torch.load('a', map_location=ddp.device())", id="None by keyword"),
        pytest.param("", "x = torch.load('a', map_location={'cuda:0': 'cuda:1'})", "x = torch.load('a', map_location=ddp.device())", id="a dict of GPUs"),
        pytest.param("from torch import load as read", "x = read('a')", "x = read('a', map_location=ddp.device())", id="from-import with alias"),
        pytest.param("import torch as th", "x = th.load('a')", "x = th.load('a', map_location=ddp.device())", id="alias"),
    ],
)
@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found_and_fixed(imports: str, line: str, new: str, module_level: bool) -> None:
    parts: dict[str, str | bool] = {"imports": imports, "before": line, "module_level": module_level}
    assert found("DPM405", **parts) == [line.removeprefix("x = ")]
    assert after(**parts) == [new]


def test_in_a_method() -> None:
    assert after(defs="class T:\n    def read(self, p):\n        return torch.load(p)") == ["return torch.load(p, map_location=ddp.device())"]
