"""DPM122: activation checkpointing in the re-entrant form."""

from __future__ import annotations

import pytest

from tests.rules.program import after, found

_NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return {}
"""
_IMPORT = "from torch.utils.checkpoint import checkpoint, checkpoint_sequential"


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("self.fc(x)", id="none"),
        pytest.param("checkpoint(self.fc, x, use_reentrant=False)", id="the other form"),
        pytest.param("checkpoint(self.fc, x, **options)", id="options that are not seen"),
        pytest.param("self.checkpoint(self.fc, x)", id="another function"),
    ],
)
def test_nothing_to_say(call: str) -> None:
    assert found("DPM122", imports=_IMPORT, net=_NET.format(call)) == []


@pytest.mark.parametrize(
    ("imports", "call", "expected"),
    [
        pytest.param(_IMPORT, "checkpoint(self.fc, x)", "checkpoint(self.fc, x, use_reentrant=False)", id="not said"),
        pytest.param(_IMPORT, "checkpoint(self.fc, x, use_reentrant=True)", "checkpoint(self.fc, x, use_reentrant=False)", id="said"),
        pytest.param(_IMPORT, "checkpoint_sequential([self.fc], 1, x)", "checkpoint_sequential([self.fc], 1, x, use_reentrant=False)", id="a sequence"),
        pytest.param(
            "import torch.utils.checkpoint as cp", "cp.checkpoint(self.fc, *[x])", "cp.checkpoint(self.fc, *[x], use_reentrant=False)", id="alias, star"
        ),
    ],
)
def test_made_non_reentrant(imports: str, call: str, expected: str) -> None:
    assert after(imports=imports, net=_NET.format(call)) == [f"return {expected}"]
