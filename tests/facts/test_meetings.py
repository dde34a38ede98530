"""Places beside the loops at which all ranks do something together."""

from __future__ import annotations

import ast

import pytest

from dpmigrate.facts.meetings import answers, late_loads, plateau_metrics
from tests.pipeline import script
from tests.rules.program import program


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param("", [], id="none"),
        pytest.param("print('ReduceLROnPlateau')", [], id="a word"),
        pytest.param("s = torch.optim.lr_scheduler.StepLR(optimizer, 3)\ns.step(1)", [], id="another scheduler"),
        pytest.param("s = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\ns.step()", [], id="without a metric"),
        pytest.param("s = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\ns.step(1)", ["1"], id="positional"),
        pytest.param("from torch.optim.lr_scheduler import ReduceLROnPlateau as R\nR(optimizer).step(metrics=k)", ["k"], id="keyword, alias"),
    ],
)
def test_plateau_metrics(lines: str, expected: list[str]) -> None:
    assert [ast.unparse(m) for m in plateau_metrics(script(program(end=lines)))] == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({"end": "input()"}, [], id="an answer that nobody uses"),
        pytest.param({"end": "print('input')"}, [], id="a word"),
        pytest.param({"defs": "def worker():\n    k = input()"}, [], id="a function that nobody calls"),
        pytest.param({"end": "k = input()"}, ["input()"], id="an answer"),
    ],
)
def test_answers(parts: dict[str, str], expected: list[str]) -> None:
    assert [ast.unparse(c) for c in answers(script(program(**parts)))] == expected  # type: ignore[arg-type]


_SAVE = "torch.save(model.state_dict(), 'a')"


@pytest.mark.parametrize(
    ("parts", "late"),
    [
        pytest.param({"end": "k = torch.load('a')"}, 0, id="nothing is saved"),
        pytest.param({"before": f"k = torch.load('a')\n{_SAVE}"}, 0, id="before training"),
        pytest.param({"end": _SAVE, "defs": "def f():\n    return torch.load('a')\nf()"}, 0, id="in a function that is called before"),
        pytest.param({"end": _SAVE, "defs": "def f(n):\n    f(n - 1)\n    return torch.load('a')"}, 0, id="in a function that only itself calls"),
        pytest.param({"end": f"{_SAVE}\nk = torch.load('a')"}, 1, id="after training"),
        pytest.param({"epoch_start": "if epoch:\n    k = torch.load('a')", "epoch_end": _SAVE}, 1, id="in the next epoch"),
        pytest.param({"defs": "def f():\n    return torch.load('a')", "end": f"{_SAVE}\nf()"}, 1, id="in a function that is called after"),
        pytest.param({"epochs": "if len(train_set) > 3:", "epoch_end": _SAVE, "end": "else:\n    k = torch.load('a')"}, 0, id="in the other branch"),
    ],
)  # fmt: skip
def test_late_loads(parts: dict[str, str], late: int) -> None:
    assert len(list(late_loads(script(program(**parts))))) == late  # type: ignore[arg-type]
