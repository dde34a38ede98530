"""DPM515: ranks that wait for each other in a finally."""

from __future__ import annotations

import pytest

from tests.pipeline import findings
from tests.rules.program import found, hits

_TEST = """\
def test(net, data):
    right = 0
    for a, b in data:
        right += (net(a).argmax(1) == b).sum().item()
    print(right)
"""
_SET_UP = "val_loader = DataLoader(val_set, batch_size=16)"


def _end(end: str) -> dict[str, str | bool]:
    return {"defs": _TEST, "before": _SET_UP, "end": end}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("test(model, val_loader)", id="no try"),
        pytest.param("try:\n    test(model, val_loader)\nfinally:\n    print(3)", id="in the body"),
        pytest.param("try:\n    print(3)\nfinally:\n    torch.save(model.state_dict(), 'a')", id="saving needs no other rank"),
        pytest.param("def later():\n    test(model, val_loader)\ntry:\n    print(3)\nfinally:\n    print(4)\nlater()", id="another finally"),
    ],
)
def test_nothing_to_say(end: str) -> None:
    assert found("DPM515", **_end(end)) == []


@pytest.mark.parametrize("module_level", [False, True], ids=["function", "module"])
def test_found(module_level: bool) -> None:
    parts = {**_end("try:\n    print(3)\nfinally:\n    if True:\n        test(model, val_loader)"), "module_level": module_level}
    assert found("DPM515", **parts) == ["test(model, val_loader)"]
    (finding,) = hits("DPM515", **parts)
    assert not finding.edits and "behind the try" in finding.advice


def test_training_in_a_finally() -> None:
    text = (
        "import torch\nfrom torch.utils.data import DataLoader\nmodel = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "loader = DataLoader(data, batch_size=4)\ntry:\n    pass\nfinally:\n    for x in loader:\n        model(x).sum().backward()\n        opt.step()\n"
    )
    assert [f.span.line for f in findings(text) if f.code == "DPM515"] == [9]
